"""Buffers for kernels: aligned, guarded, viewed."""

import gc
from ctypes import c_uint8

import numpy as np
import pytest
from support.launches.on_arrays import guarded

from wpk.emulator import EmulatorError
from wpk.emulator.memory import guarded_buffer, plain_buffer


@pytest.mark.parametrize("size", [0, 1, 100, 5000])
def test_plain_buffers_are_aligned_like_the_gpus(size: int):
    buffer = plain_buffer(size)
    assert buffer.address % 256 == 0
    assert buffer.nbytes == size


@pytest.mark.parametrize("alignment", [16, 256])
@pytest.mark.parametrize("size", [0, 1, 16, 100, 4096, 5000])
def test_guarded_buffers_end_at_their_guard(size: int, alignment: int):
    buffer = guarded_buffer(size, alignment)
    assert buffer.address % alignment == 0
    assert buffer.nbytes == size
    assert 0 <= -(buffer.address + size) % 4096 < alignment + (size == 0) * 4096
    assert (buffer.data == 0xFF).all()
    buffer.check_edges("it")


def test_edges_show_writes_on_either_side():
    for offset in (-1, 100):
        buffer = guarded_buffer(100)
        view = np.ctypeslib.as_array((c_uint8 * 1).from_address(buffer.address + offset))
        view[0] = 0
        with pytest.raises(EmulatorError, match="a write beside the output"):
            buffer.check_edges("the output")


def test_a_view_keeps_its_memory_alive():
    view = guarded_buffer(4096).view(100, 8)
    gc.collect()
    view.data[:] = 7
    assert view.data.tolist() == [7] * 8


def test_refuses_views_outside():
    with pytest.raises(EmulatorError, match=r"bytes 96\.\.104 of a buffer of 100"):
        plain_buffer(100).view(96, 8)


def test_a_guarded_array_is_a_copy():
    array = np.arange(10, dtype=np.int64)
    copy = guarded(array)
    np.testing.assert_array_equal(copy, array)
    assert copy.ctypes.data != array.ctypes.data
    assert (copy.ctypes.data + copy.nbytes) % 16 == 0
