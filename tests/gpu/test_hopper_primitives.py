"""What sm_90 has gives on the GPU what the emulator gives and the documents say, to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.faults.planter import Edit, change, put, whole
from support.hopper.catalogue import examples
from support.hopper.example import Array, Example, run
from support.hopper.on_gpu import OtherProcess

from wpk.device import CudaDevice
from wpk.emulator import Emulator
from wpk.execution import KernelImage

REPETITIONS = 20
"""Launches of each example: what is not ordered may come out right now and then."""

EXAMPLES = examples()

pytestmark = pytest.mark.gpu


@pytest.fixture(name="hopper", scope="module")
def fixture_hopper(cuda: CudaDevice) -> Iterator[OtherProcess]:
    """A process on the GPU, so that an example that fails fails alone."""
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    process = OtherProcess()
    yield process
    process.close()


def emulated(example: Example, edit: Edit = whole) -> Array:
    source = example.source(edit)
    return run(example, Emulator(), KernelImage(source.digest, source, b""))


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_agrees_with_the_emulator(hopper: OtherProcess, example: Example) -> None:
    expected = emulated(example)
    np.testing.assert_array_equal(expected, example.expected)
    for result in hopper.run(example.name, times=REPETITIONS):
        np.testing.assert_array_equal(result, expected)


def test_examples_can_fail(hopper: OtherProcess, record: Callable[[str, object], None]) -> None:
    """A descriptor with another swizzle gives other numbers on the GPU too, and the same as emulated."""
    example = next(e for e in EXAMPLES if e.entry == "gemm_cluster")
    edit = put("tile_of_a", "const auto a = wpk::matrixDescriptor<64>(ring.stage(step), 16, 1024);")
    (wrong,) = hopper.run(example.name, edit)
    assert not np.array_equal(wrong, example.expected)
    np.testing.assert_array_equal(wrong, emulated(example, edit))
    record("hopper_primitives", {"examples": len(EXAMPLES), "repetitions": REPETITIONS})


def test_a_box_that_begins_within_16_bytes_is_illegal_and_the_next_one_is_not(
    hopper: OtherProcess,
) -> None:
    """Why the emulator refuses it; and that an example that fails leaves the others alone."""
    example = next(e for e in EXAMPLES if e.entry == "copy_box_2")
    with pytest.raises(RuntimeError):
        hopper.run(example.name, change("box_copied", "{a, b}", "{a + 1, b}"))
    (after,) = hopper.run(example.name)
    np.testing.assert_array_equal(after, example.expected)
