"""What the emulator sees of kernels that are launched early: memory touched, and threads ended, without a wait."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.faults.planter import Edit, Fault, before, change, drop, move, whole
from support.launches.on_arrays import guarded, launch_on_arrays

from wpk.emulator import CHECKING, FAST, EmulatorError, Mode
from wpk.emulator.build import compile_unit
from wpk.kernel_source import KernelSource

BLOCKS = 3
TOUCHED = "touched before waitForPrevious"
COPIED = "copied before waitForPrevious"
ENDED = "ends without waitForPrevious"
KERNEL = Path(__file__).parent / "kernels" / "early.cu"

Emulated = Callable[..., np.ndarray[Any, Any]]


@pytest.fixture(name="run")
def fixture_run() -> Emulated:
    """Runs a kernel of kernels/early.cu; weights are constants, x and y are not."""

    def run(entry: str, edit: Edit = whole, mode: Mode = CHECKING, seed: int = 0) -> Any:
        text = edit(KERNEL.read_text(encoding="utf-8"))
        source = KernelSource(entry, text)
        library = compile_unit(source, checking=mode.checking)
        rng = np.random.default_rng(3)
        x, weights = (guarded(rng.integers(0, 9, 64 * BLOCKS).astype(np.float32)) for _ in "xw")
        y = guarded(np.full(64 * BLOCKS, np.nan, np.float32))
        launch_on_arrays(
            *(library, entry, (BLOCKS, 1, 1), (64, 1, 1), 512, [x, weights, y], mode),
            seed=seed,
            awaited=[x, y],
        )
        np.testing.assert_array_equal(y, x + weights)
        return y

    return run


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("entry", ["all_wait", "one_waits", "copied", "brought"])
def test_kernels_that_wait_are_right(run: Emulated, entry: str, seed: int) -> None:
    run(entry, seed=seed)


FAULTS = [
    ("all_wait", Fault("no wait", drop("previous_awaited"), TOUCHED)),
    (
        "all_wait",
        Fault(
            "x is read before",
            change("weight_loaded", "weights[i]", "weights[i] + 0 * x[i]"),
            TOUCHED,
        ),
    ),
    ("all_wait", Fault("y is written before", before("previous_awaited", "y[i] = 0;"), TOUCHED)),
    (
        "all_wait",
        Fault("some threads do not wait", before("previous_awaited", "if (i % 7)"), TOUCHED),
    ),
    ("one_waits", Fault("no barrier behind the one that waits", drop("all_told"), TOUCHED)),
    (
        "one_waits",
        Fault("only one block waits", change("one_awaits_previous", "threadIdx.x", "i"), TOUCHED),
    ),
    (
        "copied",
        Fault(
            "copies before the wait", move("copies_await_previous", before="copies_awaited"), COPIED
        ),
    ),
    (
        "brought",
        Fault(
            "a bulk copy before",
            move("bulk_copy_awaits_previous", before="bulk_copy_asked"),
            COPIED,
        ),
    ),
]


@pytest.mark.parametrize(("entry", "fault"), FAULTS, ids=[fault.name for _, fault in FAULTS])
def test_a_fault_is_seen(run: Emulated, entry: str, fault: Fault) -> None:
    with pytest.raises(EmulatorError, match=fault.message):
        run(entry, fault.edit)
    run(entry, fault.edit, mode=FAST)  # one after the other, nothing of it shows


def test_a_thread_that_leaves_before_the_wait_is_seen(run: Emulated) -> None:
    with pytest.raises(EmulatorError, match=ENDED):
        run("all_wait", before("previous_awaited", "if (i == 70)\n return;"))


def test_memory_is_open_again_behind_a_launch_that_failed(run: Emulated) -> None:
    with pytest.raises(EmulatorError, match=TOUCHED):
        run("all_wait", drop("previous_awaited"))
    run("all_wait")
