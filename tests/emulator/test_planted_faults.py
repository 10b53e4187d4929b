"""Faults planted in the two pipelined products, and which mode of the emulator sees them.

A fault is seen when the launch fails or the product of small integers is not exact. Operands always
lie between guard regions. The table says what the fast mode sees alone; all must be seen by checking,
except the ones that are known not to change what the kernel computes.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from support.faults.planter import Fault, change, drop, move, put, whole

from wpk.emulator import CHECKING, FAST, EmulatorError, Mode

SHARED_MMA = 3 * (64 * 32 + 32 * 64) * 2


@dataclass(frozen=True)
class Case:
    """A fault, and who sees it.

    Attributes:
        fault: What is wrong.
        fast: Whether the fast mode sees it.
        checking: Whether the checking mode does.
        shared_bytes: Dynamic shared memory, where that is the fault.
    """

    fault: Fault
    fast: bool
    checking: bool = True
    shared_bytes: int | None = None


MMA = [
    Case(Fault("no barrier in the loop", drop("stage_there")), fast=True),
    Case(Fault("wait too weak", change("stage_awaited", "- 2", "- 1")), fast=False),
    Case(Fault("no commit in the prologue", drop("first_committed")), fast=False),
    Case(
        Fault(
            "load into the stage being read",
            put("stage_ahead", "const int ahead = step + kStages;"),
        ),
        fast=True,
    ),
    Case(Fault("no guard along k of A", change("inside_a", "&& k < operands.k", "")), fast=True),
    Case(
        Fault("matrix rows addressed wrongly", change("a_loaded", "lane / 16", "lane / 8 % 2")),
        fast=True,
    ),
    Case(Fault("no guard along m of C", change("inside_c", "row < m &&", "")), fast=True),
    Case(
        Fault("shared memory one stage short", whole), fast=True, shared_bytes=SHARED_MMA * 2 // 3
    ),
    # A row beyond k times a row of B that is zero: any finite value will do.
    Case(
        Fault("A not filled with zeros", change("a_copied", "inside ? 16 : 0", "16")),
        fast=False,
        checking=False,
    ),
    # Used by the copy and by the load alike: another layout, not a wrong one.
    Case(
        Fault(
            "another swizzle",
            change("place_in_b", "(row % kChunksB)", "(row % kChunksB) ^ (row == 3 ? 1 : 0)"),
        ),
        fast=False,
        checking=False,
    ),
]

WGMMA = [
    Case(Fault("producer does not wait", drop("slot_awaited")), fast=True),
    Case(Fault("consumer does not wait", drop("tiles_awaited")), fast=True),
    Case(Fault("products not waited for", drop("products_done")), fast=False),
    Case(
        Fault(
            "stage released before its products end", move("slot_released", before="products_done")
        ),
        fast=False,
    ),
    Case(
        Fault(
            "one arrival too many expected",
            change("arrivals_expected", "kConsumers", "kConsumers + 1"),
        ),
        fast=True,
    ),
    Case(
        Fault("fewer bytes announced", change("bytes_expected", "kBytesStage", "kBytesA")),
        fast=True,
    ),
    Case(Fault("wrong parity", change("tiles_awaited", "parity", "parity ^ 1")), fast=True),
    Case(
        Fault("descriptor steps too short", change("products", "a + k * 2", "a + k * 1")), fast=True
    ),
    Case(
        Fault("warpgroups read the same rows", change("rows_of_group", "* 64", "* 32")), fast=True
    ),
    # The lane that is not waited for has 31 others in its warp that are, and their products are its own.
    Case(
        Fault(
            "one arrival too few expected",
            change("arrivals_expected", "kConsumers", "kConsumers - 1"),
        ),
        fast=False,
        checking=False,
    ),
]


def _sees(multiply, shape: tuple[int, int, int], case: Case, mode: Mode) -> bool:
    try:
        product, expected, _ = multiply(
            shape, mode, case.fault.edit, shared_bytes=case.shared_bytes
        )
    except EmulatorError:
        return True
    return not np.array_equal(product, expected)


@pytest.mark.parametrize("case", MMA, ids=lambda case: case.fault.name)
def test_faults_of_the_mma_product(multiply_mma, case: Case):
    shape = (130, 200, 328)
    assert _sees(multiply_mma, shape, case, FAST) == case.fast
    assert _sees(multiply_mma, shape, case, CHECKING) == case.checking


@pytest.mark.parametrize("case", WGMMA, ids=lambda case: case.fault.name)
def test_faults_of_the_wgmma_product(multiply_wgmma, case: Case):
    shape = (256, 200, 520)
    assert _sees(multiply_wgmma, shape, case, FAST) == case.fast
    assert _sees(multiply_wgmma, shape, case, CHECKING) == case.checking


def test_at_least_seventeen_of_the_twenty_are_seen():
    assert len(MMA) + len(WGMMA) == 20
    assert sum(case.checking for case in (*MMA, *WGMMA)) >= 17
