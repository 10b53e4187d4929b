"""A comparison of two plans, in a terminal."""

from wpk.plan import Ratio
from wpk.problems.signs import TIMES
from wpk.report.blocks import Block, Table
from wpk.report.plans.compare import ESTIMATED, MEASURED, Pair, PlanComparison, Side
from wpk.report.text import visible

_NAME, _WORK = 28, 36


def compare_text(comparison: PlanComparison, first: str, second: str) -> list[Block]:
    """Return tables of what differs, of the operators, and of the sums.

    Args:
        comparison: What was found.
        first: What to call the first plan, e.g. its file name.
        second: What to call the second.
    """
    differences = [[each.what, each.first, each.second] for each in comparison.differences]
    head = f"A  {visible(first)}\nB  {visible(second)}\nof {visible(comparison.model)}"
    parts: list[Block] = [head]
    if differences:
        parts.append(Table(["differs", "A", "B"], differences))
    return [*parts, _operators(comparison), _sums(comparison), _words(comparison)]


def _operators(comparison: PlanComparison) -> Block:
    header = ["operator", "computes", "A", "B", "A µs", "B µs", "bound µs", "B is", "by"]
    rows = [_row(pair) for pair in comparison.pairs]
    return Table(header, rows, ("bound µs", "by", "computes", "A", "B"))


def _row(pair: Pair) -> list[object]:
    sides = [side for side in (pair.first, pair.second) if side is not None]
    bounds = dict.fromkeys(f"{side.bound_seconds * 1e6:.2f}" for side in sides)
    return [
        visible(" / ".join(dict.fromkeys(side.operator for side in sides)), _NAME),
        visible(pair.work, _WORK),
        _choice(pair.first),
        "the same" if pair.same_choice else _choice(pair.second),
        _time(pair.first, pair.compared),
        _time(pair.second, pair.compared),
        " / ".join(bounds),
        "" if pair.speedup is None else _speed_words(pair.speedup),
        pair.compared,
    ]


def _choice(side: Side | None) -> str:
    return "-" if side is None else f"{side.maker}: {side.configuration}"


def _time(side: Side | None, compared: str) -> str:
    if side is None:
        return "-"
    seconds = side.seconds(compared)
    if seconds is None:
        return "-" if side.estimate_seconds is None else f"~{side.estimate_seconds * 1e6:.2f}"
    return f"{'~' * (compared == ESTIMATED)}{seconds * 1e6:.2f}"


def _speed_words(ratio: Ratio) -> str:
    """``1.25 times as fast`` in signs, with the band where there is one; ``even`` where the band holds 1."""
    band = "" if ratio.low == ratio.high else f" [{ratio.low:.2f}, {ratio.high:.2f}]"
    if not ratio.beyond_noise:
        return f"even{band}"
    return f"{ratio.median:.2f}{TIMES} as fast{band}"


def _sums(comparison: PlanComparison) -> Block:
    rows: list[list[object]] = [
        [
            f"{total.pairs} operators, {total.kind}",
            f"{total.first * 1e6:.2f}",
            f"{total.second * 1e6:.2f}",
            f"{total.first / total.second:.2f}{TIMES} as fast",
        ]
        for total in comparison.totals
    ]
    engine = comparison.engine
    speedup = "" if engine.speedup is None else _speed_words(engine.speedup)
    times = [
        "not measured" if each is None else f"{each * 1e6:.2f}"
        for each in (engine.first, engine.second)
    ]
    return Table(["sum", "A µs", "B µs", "B is"], [*rows, ["whole engine", *times, speedup]])


def _words(comparison: PlanComparison) -> str:
    pairs = comparison.pairs
    same = sum(pair.same_choice for pair in pairs)
    alone = sum(pair.first is None or pair.second is None for pair in pairs)
    told = [pair.speedup for pair in pairs if pair.speedup and pair.compared == MEASURED]
    faster = sum(ratio.low > 1 for ratio in told)
    slower = sum(ratio.high < 1 for ratio in told)
    lines = [f"{same} of {len(pairs)} operators have the same choice; {alone} have no partner"]
    if told:
        even = len(told) - faster - slower
        lines += [
            f"beyond noise B is faster in {faster}, slower in {slower}, even in {even}",
            "each plan's times were measured when it was written, not side by side with the other's",
        ]
    if any(pair.compared == ESTIMATED for pair in pairs):
        lines.append("~ a time that models predict; nothing was measured")
    return "\n".join(lines)
