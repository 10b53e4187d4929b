"""The emulator as a device: load, allocate, write, launch, read; here and in a child process."""

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from wpk.emulator import (
    CHECKING,
    FAST,
    Emulator,
    EmulatorError,
    EmulatorProcess,
    EmulatorTimeoutError,
)
from wpk.errors import CompileError
from wpk.execution import BoundLaunch, KernelImage, Pointer
from wpk.kernel_source import KernelSource

pytestmark = pytest.mark.usefixtures("own_processes")

SAXPY = KernelSource(
    "saxpy",
    """
#include <wpk/kernels/portable.cuh>
WPK_KERNEL(64) saxpy(const float* x, float* y, int scale, int n)
{
    const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n)
        y[i] += static_cast<float>(scale) * x[i];
}
WPK_EXPORT(saxpy)
""",
)
SPIN = KernelSource(
    "spin",
    """
#include <wpk/kernels/portable.cuh>
WPK_KERNEL(32) spin(volatile int* y)
{
    while (y[0] == 0)
    {
    }
}
WPK_EXPORT(spin)
""",
)
# Stacks, registers and the interpreter itself: nothing may be relied on afterwards.
TRAMPLE = KernelSource(
    "trample",
    """
#include <wpk/kernels/portable.cuh>
#include <stdlib.h>
WPK_KERNEL(1) trample(int* y)
{
    abort();
}
WPK_EXPORT(trample)
""",
)


def _image(source: KernelSource) -> KernelImage:
    return KernelImage(source.digest, source, b"")


def _launch(source: KernelSource, arguments: tuple[Pointer | int, ...], blocks: int = 1):
    return BoundLaunch(
        kernel=source.digest,
        entry=source.entry,
        grid=(blocks, 1, 1),
        block=(64 if source is SAXPY else 1, 1, 1),
        cluster=(1, 1, 1),
        shared_bytes=0,
        arguments=arguments,
        attributes=(),
    )


@pytest.fixture(params=["fast", "checking", "process"])
def device(request) -> Iterator[Emulator | EmulatorProcess]:
    if request.param == "process":
        with EmulatorProcess(FAST) as process:
            yield process
    else:
        yield Emulator({"fast": FAST, "checking": CHECKING}[request.param])


def test_executes_a_kernel_on_its_own_memory(device):
    x, y = np.arange(100, dtype=np.float32), np.ones(100, np.float32)
    at_x, at_y = device.allocate(400), device.allocate(400)
    assert at_x % 256 == at_y % 256 == 0
    device.load(_image(SAXPY))
    device.load(_image(SAXPY))
    device.write(at_x, x.view(np.uint8))
    device.write(at_y, y.view(np.uint8))
    device.launch(_launch(SAXPY, (Pointer(at_x), Pointer(at_y), 3, 100), blocks=2))
    np.testing.assert_array_equal(device.read(at_y, 400).view(np.float32), 1 + 3 * x)
    np.testing.assert_array_equal(device.read(at_x + 40, 4).view(np.float32), [10.0])
    assert device.statistics is not None


def test_refuses_what_no_allocation_holds(device):
    address = device.allocate(100)
    with pytest.raises(EmulatorError, match="no allocation holds 8 bytes"):
        device.read(address + 96, 8)
    device.free(address)
    with pytest.raises(EmulatorError, match="no allocation holds"):
        device.write(address, np.zeros(4, np.uint8))
    with pytest.raises(EmulatorError, match="no allocation begins"):
        device.free(address)


def test_refuses_a_kernel_that_was_not_loaded(device):
    with pytest.raises(EmulatorError, match="not loaded"):
        device.launch(_launch(SAXPY, (0, 0, 0, 0)))


def test_refuses_clusters_that_do_not_divide_the_grid(device):
    device.load(_image(SAXPY))
    with pytest.raises(EmulatorError, match="clusters of 2 x 1 x 1 blocks do not divide"):
        device.launch(replace(_launch(SAXPY, (0, 0, 0, 0)), cluster=(2, 1, 1)))


def test_an_illegal_address_is_an_error_and_the_device_goes_on(device):
    device.load(_image(SAXPY))
    with pytest.raises(EmulatorError, match=r"saxpy: illegal address .*thread \(0, 0, 0\)"):
        device.launch(_launch(SAXPY, (Pointer(0), Pointer(0), 1, 100)))
    address = device.allocate(256)
    device.write(address, np.zeros(256, np.uint8))
    device.launch(_launch(SAXPY, (Pointer(address), Pointer(address), 1, 64)))


def test_a_kernel_that_does_not_compile_is_a_compile_error(device):
    device.load(_image(wrong := KernelSource("wrong", "WPK_KERNEL(32) wrong() {}")))
    with pytest.raises(CompileError, match="failed to compile kernel wrong"):
        device.launch(_launch(wrong, ()))


def test_guards_see_a_write_between_the_end_of_a_buffer_and_its_guard():
    device = Emulator(CHECKING)
    device.load(_image(SAXPY))
    address = device.allocate(200)  # the guard begins behind the 256th byte
    device.write(address, np.zeros(200, np.uint8))
    with pytest.raises(EmulatorError, match="a write beside the buffer"):
        device.launch(_launch(SAXPY, (Pointer(address), Pointer(address + 4), 1, 50)))


def test_guarded_memory_begins_as_nan():
    device = Emulator(CHECKING)
    assert np.isnan(device.read(device.allocate(64), 64).view(np.float32)).all()


def test_a_kernel_that_hangs_costs_its_time_limit_only():
    with EmulatorProcess(FAST, time_limit_seconds=1.0) as process:
        process.load(_image(SPIN))
        address = process.allocate(256)
        process.write(address, np.zeros(256, np.uint8))
        begin = time.monotonic()
        with pytest.raises(EmulatorTimeoutError, match="launch did not end within 1 s"):
            process.launch(_launch(SPIN, (Pointer(address),)))
        assert time.monotonic() - begin < 30
        with pytest.raises(EmulatorError, match="has ended"):
            process.allocate(1)


@pytest.mark.parametrize("where", ["request", "half a request", "answer"])
def test_an_interrupted_request_leaves_no_process(monkeypatch, where):
    def interrupted(*arguments):
        if where == "half a request":
            process._child._channel._end.sendall(b"half")
        raise KeyboardInterrupt

    with EmulatorProcess(FAST) as process:
        step = "receive_answer" if where == "answer" else "ask"
        monkeypatch.setattr(process._child._channel, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            process.allocate(256)
        assert not process.is_alive
        process.free(0)


def test_a_kernel_that_kills_its_process_is_an_error():
    with EmulatorProcess(FAST) as process:
        process.load(_image(TRAMPLE))
        with pytest.raises(EmulatorError, match=r"died in launch \(status -6\)"):
            process.launch(_launch(TRAMPLE, (0,)))
