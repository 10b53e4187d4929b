"""The models and the emulator count the same bank conflicts."""

from pathlib import Path

import numpy as np
import pytest
from support.launches.on_arrays import guarded, launch_on_arrays

from wpk.emulator import Mode
from wpk.emulator.build import compile_unit
from wpk.kernel_source import KernelSource
from wpk.performance.bank_conflicts import passes

KERNEL = Path(__file__).parent / "kernels" / "read_shared.cu"
SHARED_BYTES = 8192
COUNTING = Mode(count_banks=True)


@pytest.fixture(scope="module")
def library() -> Path:
    """The kernels, built for the CPU."""
    source = KernelSource("read_shared", KERNEL.read_text(encoding="utf-8"))
    return compile_unit(source, checking=COUNTING.checking)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_the_emulator_counts_the_same_passes(library: Path, size: int) -> None:
    random = np.random.default_rng(size)
    y = guarded(np.zeros(32, np.uint8))
    for span in (32, 64, 256, SHARED_BYTES // size):  # from many equal words to few
        for active in (1.0, 0.5, 0.1):
            slots = random.integers(0, min(span, SHARED_BYTES // size), 32)
            lanes = np.where(random.random(32) < active, slots * size, -1)
            done = launch_on_arrays(
                library,
                f"read_{size}",
                (1, 1, 1),
                (32, 1, 1),
                SHARED_BYTES,
                [y, guarded(lanes.astype(np.int32))],
                COUNTING,
                seed=0,
            )
            counted = done.phases["load"] + done.conflicts["load"]
            assert counted == int(passes(lanes[None], size)[0])
