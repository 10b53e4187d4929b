"""How well the models choose on recorded problems, and what each of their constants has to do with it.

    python benchmarks/constants_study.py --recordings tests/replay/h100

Needs no GPU. Production measures three to five schedules of a problem where time is short, all templates together, in the
order of the estimate. Of each recorded problem it tells

- **rank**: the place of the fastest schedule in that order, from 1;
- **first three**: how many times the time of the fastest the best of the first three takes;
- **estimate**: what the fastest was estimated at, in units of its time.

Then each constant of the models is changed by a fifth, down and up, and the two means over all problems are told again: of
the first three (geometric), and of how far estimates of the fastest lie off (exponential of the mean of absolute
logarithms). A constant that moves neither is not known by these recordings. Nothing is chosen here: whoever changes a
constant says why, and runs this before and after.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType

import numpy as np

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from spaces.recorded import RecordedSpace, read_spaces

from wpk.performance import Floats
from wpk.report import format_table
from wpk.search.models import estimates

FIRST = 3
STEP = 0.2

CONSTANTS: dict[str, tuple[str, ...]] = {
    "wpk.performance.rates": (
        *("FILL_CYCLES", "SYNC_CYCLES", "COPY_CYCLES", "COPY_ENDS_CYCLES", "TURN_CYCLES"),
        *("LOAD_SLOTS", "GATHER_SLOTS", "STRAIGHT_SLOTS", "WARP_MMA_SHARE", "WARPGROUP_SHARE"),
    ),
    "wpk.performance.waves": (
        *("_MEETING_CYCLES", "_PART_BYTES", "_CLUSTER_CYCLES", "_CLUSTER_BYTES"),
        *("_MULTICAST_CYCLES", "_SM_GROUPS", "EARLY_BLOCK_SECONDS"),
        *("ACHIEVED_L2", "COPIED_L2", "OVERLAP", "OVERLAP_BESIDE"),
    ),
    "wpk.performance.estimate": (
        *("EARLY_SECONDS", "ACHIEVED_GLOBAL", "ACHIEVED_STRAIGHT", "SWEPT"),
    ),
    "wpk.schedules.wgmma.costs": ("_MEMORY_FETCHES", "_MOMENTS_WAIT"),
    "wpk.schedules.wgmma.attention_costs": (
        *("_FOLDED_SLOTS", "_STEP_SLOTS", "_RESCALED_SLOTS", "_END_SLOTS", "_STEP_CYCLES"),
    ),
    "wpk.schedules.wgmma.feed_forward_costs": (
        *("_ISSUE_CYCLES", "_END_SLOTS", "_STEP_SLOTS", "_STEP_CYCLES", "_TILE_CYCLES"),
    ),
    "wpk.schedules.wgmma.thin_costs": ("_ISSUE_CYCLES", "_OWN_CYCLES", "_AWAITED_CYCLES"),
    "wpk.schedules.tiles.groups": (
        *("_CHAIN_CYCLES", "_TILE_CYCLES", "_PRODUCT_CYCLES", "_NAN_CYCLES"),
    ),
    "wpk.schedules.attention_mma": ("_SCORE_SLOTS", "_STEP_CYCLES"),
}
"""By module: those that were fitted, or assumed; not what hardware or a listing says."""


@dataclass(frozen=True)
class Chosen:
    """How the models' order does on one problem.

    Attributes:
        name: Of the problem.
        rank: Place of the fastest in the order of the estimate, from 1.
        first: Time of the best of the first three, over that of the fastest.
        estimate: What the fastest was estimated at, over its time.
    """

    name: str
    rank: int
    first: float
    estimate: float


def by_problem(spaces: Sequence[RecordedSpace]) -> dict[str, list[RecordedSpace]]:
    """Return the templates of each problem that compete."""
    found: dict[str, list[RecordedSpace]] = {}
    for space in spaces:
        found.setdefault(space.name, []).append(space)
    return found


def chosen(name: str, spaces: Sequence[RecordedSpace]) -> Chosen:
    """Return how today's models do on what production searches of a problem."""
    told: list[Floats] = []
    for space in spaces:
        asked = space.problem, space.template, space.target, space.columns(space.kept)
        told.append(estimates(*asked))
    predicted = np.concatenate(told)
    costs = np.concatenate([space.costs[space.kept] for space in spaces])
    order = np.argsort(predicted, kind="stable")
    fastest = int(costs.argmin())
    return Chosen(
        name,
        1 + int(np.flatnonzero(order == fastest)[0]),
        float(costs[order[:FIRST]].min() / costs[fastest]),
        float(predicted[fastest] / costs[fastest]),
    )


def means(found: Sequence[Chosen]) -> tuple[float, float]:
    """Return the geometric mean of the first three's ratios, and the typical factor of the fastest one's estimate."""
    first = np.log([each.first for each in found])
    off = np.abs(np.log([each.estimate for each in found]))
    return float(np.exp(first.mean())), float(np.exp(off.mean()))


@contextmanager
def changed(module: str, name: str, factor: float) -> Iterator[None]:
    """Let a constant of the models be so many times as large, wherever it was imported or is a default.

    Raises:
        ValueError: It is no number.
    """
    before = getattr(import_module(module), name)
    if not isinstance(before, int | float):
        raise ValueError(f"{module}.{name} is {before!r}, no number")
    holders = [each for each in _models() if vars(each).get(name) is before]
    defaults = [
        function.__kwdefaults__
        for each in holders
        for function in vars(each).values()
        if isinstance(function, FunctionType) and function.__kwdefaults__
    ]
    places = [(vars(each), name) for each in holders]
    places += [(each, key) for each in defaults for key in each if each[key] is before]
    for holder, key in places:
        holder[key] = before * factor
    try:
        yield
    finally:
        for holder, key in places:
            holder[key] = before


def _models() -> list[ModuleType]:
    return [each for name, each in list(sys.modules.items()) if name.startswith("wpk.")]


def effects(problems: dict[str, list[RecordedSpace]]) -> Iterator[tuple[str, list[float]]]:
    """Yield each constant with both means where it is smaller, and where it is larger."""
    for module, names in CONSTANTS.items():
        for name in names:
            found: list[float] = []
            for factor in (1 - STEP, 1 + STEP):
                with changed(module, name, factor):
                    found += means([chosen(*each) for each in problems.items()])
            yield f"{module.removeprefix('wpk.')}.{name}", found


def main(arguments: Sequence[str] | None = None) -> None:
    """Study the recordings of a folder."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of record_spaces.py")
    parser.add_argument("--only", default="", help="part of the names of problems")
    options = parser.parse_args(arguments)
    spaces = [space for space in read_spaces(options.recordings) if options.only in space.name]
    problems = by_problem([space for space in spaces if len(space.kept)])
    if not problems:
        raise SystemExit(f"no recorded problem has {options.only} in its name")
    found = [chosen(*each) for each in problems.items()]
    rows = [[c.name, str(c.rank), f"{c.first:.3f}", f"{c.estimate:.2f}"] for c in found]
    print(format_table(["problem", "rank", "first three", "estimate"], rows))
    now = means(found)
    print(f"first three {now[0]:.4f}, estimates off by {now[1]:.3f}")
    heading = ["constant", *(f"{what}, {way}" for way in ("-20 %", "+20 %") for what in _MEANS)]
    table = [
        [name, *(_difference(value, now[place % 2]) for place, value in enumerate(values))]
        for name, values in effects(problems)
    ]
    print(format_table(heading, table))


_MEANS = ("first three", "estimates")


def _difference(value: float, now: float) -> str:
    return "" if value == now else f"{value - now:+.4f}"


if __name__ == "__main__":
    main()
