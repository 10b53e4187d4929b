"""What the emulator sees of kernels that are launched early: memory touched, and threads ended, without a wait."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wpk.emulator.build import compile_unit
from wpk.emulator.errors import EmulatorError
from wpk.emulator.memory import guarded
from wpk.emulator.mode import CHECKING, FAST, Mode
from wpk.emulator.native import launch_kernel
from wpk.kernel_source import KernelSource

BLOCKS = 3
TOUCHED = "touched before waitForPrevious"
COPIED = "copied before waitForPrevious"
ENDED = "ends without waitForPrevious"
WAIT = "    wpk::waitForPrevious();\n"

Emulated = Callable[..., np.ndarray[Any, Any]]


@pytest.fixture(name="run")
def fixture_run(edited: Callable[..., str]) -> Emulated:
    """Runs a kernel of kernels/early.cu; weights are constants, x and y are not."""

    def run(entry: str, *edits: tuple[str, str], mode: Mode = CHECKING, seed: int = 0) -> Any:
        text = edited("early", ())
        head, body = text.split(f"WPK_KERNEL(64) {entry}(")
        for old, new in edits:
            assert old in body
            body = body.replace(old, new, 1)
        source = KernelSource(entry, f"{head}WPK_KERNEL(64) {entry}({body}")
        library = compile_unit(source, checking=mode.checking)
        rng = np.random.default_rng(3)
        x, weights = (guarded(rng.integers(0, 9, 64 * BLOCKS).astype(np.float32)) for _ in "xw")
        y = guarded(np.full(64 * BLOCKS, np.nan, np.float32))
        launch_kernel(
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


FAULTS = {
    "no wait": ("all_wait", [(WAIT, "")], TOUCHED),
    "x is read before": ("all_wait", [("weights[i];\n", "weights[i] + 0 * x[i];\n")], TOUCHED),
    "y is written before": ("all_wait", [(WAIT, "    y[i] = 0;\n" + WAIT)], TOUCHED),
    "some threads do not wait": ("all_wait", [(WAIT, "    if (i % 7)\n    " + WAIT)], TOUCHED),
    "a thread leaves before": ("all_wait", [(WAIT, "    if (i == 70)\n        return;\n" + WAIT)], ENDED),
    "no barrier behind the one that waits": ("one_waits", [("    __syncthreads();\n", "")], TOUCHED),
    "only one block waits": ("one_waits", [("threadIdx.x == 5", "i == 5")], TOUCHED),
    "copies before the wait": ("copied", [(WAIT, ""), ("    wpk::waitC", WAIT + "    wpk::waitC")], COPIED),
    "a bulk copy before": ("brought", [(WAIT, ""), ("    __sync", WAIT + "    __sync")], COPIED),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_seen(run: Emulated, name: str) -> None:
    entry, edits, message = FAULTS[name]
    with pytest.raises(EmulatorError, match=message):
        run(entry, *edits)
    if "return" not in str(edits):
        run(entry, *edits, mode=FAST)  # one after the other, nothing of it shows


def test_memory_is_open_again_behind_a_launch_that_failed(run: Emulated) -> None:
    with pytest.raises(EmulatorError, match=TOUCHED):
        run("all_wait", (WAIT, ""))
    run("all_wait")
