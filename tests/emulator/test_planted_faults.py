"""Faults planted in the two pipelined products, and which mode of the emulator sees them.

A fault is seen when the launch fails or the product of small integers is not exact. Operands always
lie between guard regions. The table says what the fast mode sees alone; all must be seen by checking,
except the ones that are known not to change what the kernel computes.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from wpk.emulator.errors import EmulatorError
from wpk.emulator.mode import CHECKING, FAST, Mode

SHARED_MMA = 3 * (64 * 32 + 32 * 64) * 2


@dataclass(frozen=True)
class Fault:
    """One planted fault.

    Attributes:
        name: What is wrong.
        old: Text in the kernel.
        new: What replaces it.
        fast: Whether the fast mode sees it.
        checking: Whether the checking mode does.
        shared_bytes: Dynamic shared memory, where that is the fault.
    """

    name: str
    old: str
    new: str
    fast: bool
    checking: bool = True
    shared_bytes: int | None = None


MMA = [
    Fault(
        "no barrier in the loop",
        "        __syncthreads();\n        const int ahead",
        "        const int ahead",
        fast=True,
    ),
    Fault("wait too weak", "waitCopies<kStages - 2>", "waitCopies<kStages - 1>", fast=False),
    Fault(
        "no commit in the prologue",
        "step * kBlockK);\n        wpk::commitCopies();",
        "step * kBlockK);",
        fast=False,
    ),
    Fault(
        "load into the stage being read",
        "const int ahead = step + kStages - 1;",
        "const int ahead = step + kStages;",
        fast=True,
    ),
    Fault("no guard along k of A", "m < operands.m && k < operands.k", "m < operands.m", fast=True),
    Fault(
        "matrix rows addressed wrongly",
        "step * 2 + lane / 16)",
        "step * 2 + lane / 8 % 2)",
        fast=True,
    ),
    Fault("no guard along m of C", "if (row < m && column < n)", "if (column < n)", fast=True),
    Fault("shared memory one stage short", "", "", fast=True, shared_bytes=SHARED_MMA * 2 // 3),
    # A row beyond k times a row of B that is zero: any finite value will do.
    Fault(
        "A not filled with zeros",
        "operands.a;\n        wpk::copyAsync<16>(stage + offsetA(row, column), source, inside ? 16 : 0);",
        "operands.a;\n        wpk::copyAsync<16>(stage + offsetA(row, column), source, 16);",
        fast=False,
        checking=False,
    ),
    # Used by the copy and by the load alike: another layout, not a wrong one.
    Fault(
        "another swizzle",
        "(chunk ^ (row % kChunksB))",
        "(chunk ^ (row % kChunksB) ^ (row == 3 ? 1 : 0))",
        fast=False,
        checking=False,
    ),
]

WGMMA = [
    Fault(
        "producer does not wait", "wpk::waitBarrier(empty + slot * 8, parity ^ 1);", "", fast=True
    ),
    Fault("consumer does not wait", "wpk::waitBarrier(full + slot * 8, parity);", "", fast=True),
    Fault("products not waited for", "        wpk::waitWgmma<0>(acc);\n", "", fast=False),
    Fault(
        "stage released before its products end",
        "wpk::waitWgmma<0>(acc);\n        wpk::arriveBarrier(empty + slot * 8);",
        "wpk::arriveBarrier(empty + slot * 8);\n        wpk::waitWgmma<0>(acc);",
        fast=False,
    ),
    Fault(
        "one arrival too many expected",
        "slot * 8, kConsumers)",
        "slot * 8, kConsumers + 1)",
        fast=True,
    ),
    Fault(
        "fewer bytes announced",
        "full + slot * 8, kBytesStage)",
        "full + slot * 8, kBytesA)",
        fast=True,
    ),
    Fault("wrong parity", "full + slot * 8, parity)", "full + slot * 8, parity ^ 1)", fast=True),
    Fault("descriptor steps too short", "a + k * 2, b", "a + k * 1, b", fast=True),
    Fault(
        "warpgroups read the same rows",
        "group * 64 * kBlockK * 2",
        "group * 32 * kBlockK * 2",
        fast=True,
    ),
    # The lane that is not waited for has 31 others in its warp that are, and their products are its own.
    Fault(
        "one arrival too few expected",
        "slot * 8, kConsumers)",
        "slot * 8, kConsumers - 1)",
        fast=False,
        checking=False,
    ),
]


def _sees(multiply, shape: tuple[int, int, int], fault: Fault, mode: Mode) -> bool:
    edits = [(fault.old, fault.new)] if fault.old else []
    try:
        product, expected, _ = multiply(shape, mode, edits, shared_bytes=fault.shared_bytes)
    except EmulatorError:
        return True
    return not np.array_equal(product, expected)


@pytest.mark.parametrize("fault", MMA, ids=lambda fault: fault.name)
def test_faults_of_the_mma_product(multiply_mma, fault: Fault):
    shape = (130, 200, 328)
    assert _sees(multiply_mma, shape, fault, FAST) == fault.fast
    assert _sees(multiply_mma, shape, fault, CHECKING) == fault.checking


@pytest.mark.parametrize("fault", WGMMA, ids=lambda fault: fault.name)
def test_faults_of_the_wgmma_product(multiply_wgmma, fault: Fault):
    shape = (256, 200, 520)
    assert _sees(multiply_wgmma, shape, fault, FAST) == fault.fast
    assert _sees(multiply_wgmma, shape, fault, CHECKING) == fault.checking


def test_at_least_seventeen_of_the_twenty_are_seen():
    assert len(MMA) + len(WGMMA) == 20
    assert sum(fault.checking for fault in (*MMA, *WGMMA)) >= 17
