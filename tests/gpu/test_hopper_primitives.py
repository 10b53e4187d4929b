"""What sm_90 has gives on the GPU what the emulator gives and the documents say, to the bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hopper_example import Example, run
from hopper_examples import examples

from wpk.build.nvrtc import load_nvrtc
from wpk.device.cuda import CudaDevice
from wpk.emulator.emulator import Emulator
from wpk.execution import KernelImage

REPETITIONS = 20
"""Launches of each example: what is not ordered may come out right now and then."""

EXAMPLES = examples()

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_agrees_with_the_emulator(cuda: CudaDevice, example: Example) -> None:
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    source = example.source()
    cubin = load_nvrtc().compile(source, "sm_90a").cubin
    image = KernelImage(source.digest, source, cubin)
    emulated = run(example, Emulator(), image)
    np.testing.assert_array_equal(emulated, example.expected)
    for _ in range(REPETITIONS):
        np.testing.assert_array_equal(run(example, cuda, image), emulated)


def test_examples_can_fail(cuda: CudaDevice, record: Callable[[str, object], None]) -> None:
    """A descriptor with another swizzle gives other numbers on the GPU too, and the same as emulated."""
    if cuda.capability != (9, 0):
        pytest.skip(f"needs a GPU of compute capability 9.0, this is {cuda.name}")
    example = next(e for e in EXAMPLES if e.entry == "gemm_cluster")
    source = example.source(
        (
            (
                "swizzledDescriptor<128>(ring.stage(step));",
                "matrixDescriptor<64>(ring.stage(step), 16, 1024);",
            ),
        )
    )
    image = KernelImage(source.digest, source, load_nvrtc().compile(source, "sm_90a").cubin)
    wrong = run(example, cuda, image)
    assert not np.array_equal(wrong, example.expected)
    np.testing.assert_array_equal(wrong, run(example, Emulator(), image))
    record("hopper_primitives", {"examples": len(EXAMPLES), "repetitions": REPETITIONS})
