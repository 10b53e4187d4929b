"""What instructions take beside products of warpgroups: why hidden numbers and epilogues are hardly hidden behind products.

Nothing is held to a goal: models and decisions refer to the figures
(docs/decisions/0105-what-products-contend-with.md).
"""

from __future__ import annotations

from dataclasses import asdict

from subjects.contention import INSTRUCTIONS, WIDTHS, Contention, Cycles

from rows.base import Context, Outcome, Row
from wpk.backends import open_gpu

WARPS, GROUPS = 2, (0, 1, 2)
"""Warps of each scheduler that issue, and warpgroups that multiply beside them."""


def rows() -> list[Row]:
    """One."""
    claim = "cycles of instructions and of wgmma products, alone and beside each other"
    return [Row("contention", claim, _measure)]


def _measure(context: Context) -> Outcome:
    found: dict[str, dict[str, Cycles]] = {}
    with open_gpu() as device:
        subject = Contention(device)
        for width in WIDTHS:
            for instruction in INSTRUCTIONS:
                found[f"{instruction} beside 64 x {width} x 16"] = {
                    f"{warps} warps, {groups} warpgroups": subject.measure(
                        instruction, width, warps, groups
                    )
                    for warps in (0, WARPS)
                    for groups in GROUPS
                    if warps + groups
                }
    return judge(found)


def judge(found: dict[str, dict[str, Cycles]]) -> Outcome:
    """Tell how much of the instructions and of the products an SM does at once, each in shares of what it does of them alone."""
    alone, both = (f"{WARPS} warps, {groups} warpgroups" for groups in (0, GROUPS[-1]))
    products = f"0 warps, {GROUPS[-1]} warpgroups"
    told = []
    for name, cycles in found.items():
        own, other, together = cycles[alone].instruction, cycles[products].product, cycles[both]
        if own and other and together.instruction and together.product:
            at_once = own / together.instruction + other / together.product
            told.append(f"{name} {at_once:.2f}")
    figures = {
        name: {how: asdict(each) for how, each in cycles.items()} for name, cycles in found.items()
    }
    return Outcome(True, f"work at once, of 2 at the most: {', '.join(told)}", figures)
