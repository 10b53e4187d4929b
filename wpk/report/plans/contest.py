"""What the last comparison of candidates showed, in words: who took part, who won, and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import geometric_mean

from wpk.candidate import GENERATED
from wpk.plan import Contestant, EngineVariant, Measurement, Ratio
from wpk.problems.signs import DASH, TIMES
from wpk.report.plans.words import schedule_words


@dataclass(frozen=True)
class ContestFacts:
    """Generated kernels and a library side by side, over a whole plan.

    Only operators count for which the library had a correct candidate.

    Attributes:
        library: Its name.
        operators: How many.
        generated: How many of them a generated kernel computes.
        share_by_number: The same as a part of the operators.
        share_by_time: The part of these operators' time, each alone, in which generated kernels run.
        faster: Operators whose best generated kernel is faster than the library's best, beyond
            noise.
        even: Operators for which both are equally fast within noise.
        slower: Slower, beyond noise, or without a generated kernel that ran.
        speedup: Geometric mean of how much faster the choices are than the library's best.
        generated_speedup: The same of the best generated kernels; None where one is missing.
    """

    library: str
    operators: int
    generated: int
    share_by_number: float
    share_by_time: float
    faster: int
    even: int
    slower: int
    speedup: float
    generated_speedup: float | None


def microseconds(seconds: float | None) -> str:
    """Return a time in microseconds; a dash where it is not known."""
    return DASH if seconds is None else f"{seconds * 1e6:.2f}"


def time_words(timed: Contestant | EngineVariant | Measurement) -> str:
    """Return a median in microseconds with its noise: ``7.12 ±0.3%``."""
    return f"{microseconds(timed.median_seconds)} ±{timed.noise:.1%}"


def ratio_words(ratio: Ratio) -> str:
    """Return a ratio with its noise band: ``1.12× (1.08 to 1.15)``."""
    return f"{ratio.median:.2f}{TIMES} ({ratio.low:.2f} to {ratio.high:.2f})"


def candidate_words(contestant: Contestant) -> str:
    """Return ``conv_mma: block 64×64×32, stages 4`` or ``cuDNN 9.19.0: engine 12``."""
    candidate = contestant.candidate
    return f"{candidate.maker.title}: {schedule_words(candidate.configuration)}"


def tally_words(measured: Measurement) -> str:
    """Return how many trials ended how: ``generated 59 ok, 5 wrong result; cuDNN 12 ok``."""
    return "; ".join(
        f"{tally.family} "
        + ", ".join(
            f"{count} {status.replace('_', ' ')}" for status, count in tally.statuses.items()
        )
        for tally in measured.tallies
    )


def roles(measured: Measurement) -> list[tuple[str, Contestant]]:
    """Return the candidates worth showing with their roles: the choice, the runner-up, the best of each family.

    A candidate that has several roles comes once, with all of them.
    """
    named = [
        ("chosen", measured.chosen),
        ("runner-up", measured.runner_up),
        *((f"{name}'s best", best) for name, best in measured.libraries.items()),
        ("generated best", measured.generated),
    ]
    found: dict[Contestant, list[str]] = {}
    for name, contestant in named:
        if contestant is not None:
            found.setdefault(contestant, []).append(name)
    return [(", ".join(names), contestant) for contestant, names in found.items()]


def speedup_over_library(measured: Measurement) -> Ratio | None:
    """Return the choice's speedup over the library's best, if that is another candidate that ran correctly."""
    library = measured.library
    if library is None or not measured.is_generated:
        return None
    return measured.chosen.speedup_over(library)


_FASTEST_ENGINES = {
    "models": "the models' own choices",
    "library": "the library wherever it can",
    "generated": "generated kernels only",
}
"""Variants of the whole engine in which no operator was chosen for itself, in words."""


def why_words(measured: Measurement, *, undone: bool = False, engine: str = "") -> str:
    """Say why the choice won, or why it was chosen although it lost.

    Args:
        measured: What was measured of the operator.
        undone: Whether its substitution was undone in the whole engine.
        engine: Name of the variant of the whole engine that the plan is, where that was measured.
    """
    rival, parts = measured.runner_up, [_against_rival(measured)]
    slower_alone = rival is not None and measured.median_seconds > rival.median_seconds
    if undone:
        parts.append("in the whole engine its rival did not pay, and was undone")
    elif engine in _FASTEST_ENGINES and slower_alone:
        parts.append(f"the whole engine was fastest with {_FASTEST_ENGINES[engine]}")
    return "; ".join(parts)


def _against_rival(measured: Measurement) -> str:
    """Compare the choice with the best of the other family, or else with the runner-up."""
    chosen = measured.chosen
    if not measured.is_generated:
        rival, name = measured.generated, "the best generated kernel"
        missing = "no generated kernel ran correctly"
    else:
        rival, name = measured.library, "the library's best"
        if rival is not None:
            name = f"{rival.candidate.family}'s best"
        reasons = ", ".join(measured.refusals)
        missing = f"the library offers nothing: {reasons}" if reasons else ""
    if rival is not None:
        return _verdict(chosen, rival, name)
    runner_up = measured.runner_up
    alone = "the only candidate that ran correctly"
    against = alone if runner_up is None else _verdict(chosen, runner_up, "the runner-up")
    return f"{missing}; {against}" if missing else against


def _verdict(chosen: Contestant, rival: Contestant, name: str) -> str:
    ratio = chosen.speedup_over(rival)
    ahead = abs(ratio.median - 1)
    apart = not (chosen.side_by_side and rival.side_by_side)
    caveat = " (not compared side by side)" if apart else ""
    if not ratio.beyond_noise:
        side = "ahead of" if ratio.median >= 1 else "behind"
        by_library = rival.candidate.family != GENERATED
        kept = ", and kept as the one that anyone can check" if by_library else ""
        return f"within noise of {name}, {ahead:.1%} {side} it{kept}{caveat}"
    if ratio.median > 1:
        return f"{ahead:.1%} faster than {name}, beyond noise{caveat}"
    slower = 1 / ratio.median - 1
    return f"{slower:.1%} slower alone than {name}, beyond noise{caveat}"


def contest_of(measurements: Iterable[Measurement | None]) -> ContestFacts | None:
    """Return the sums over the operators for which a library had a correct candidate; None without any."""
    pairs = [
        (each, each.library)
        for each in measurements
        if each is not None and each.library is not None
    ]
    if not pairs:
        return None
    own = [each for each, _ in pairs if each.is_generated]
    ratios = [
        each.generated.speedup_over(library)
        for each, library in pairs
        if each.generated is not None
    ]
    faster = sum(ratio.low > 1 for ratio in ratios)
    missing = len(pairs) - len(ratios)
    slower = sum(ratio.high < 1 for ratio in ratios) + missing
    return ContestFacts(
        library=" and ".join(sorted({library.candidate.family for _, library in pairs})),
        operators=len(pairs),
        generated=len(own),
        share_by_number=len(own) / len(pairs),
        share_by_time=_seconds(own) / _seconds(each for each, _ in pairs),
        faster=faster,
        even=len(pairs) - faster - slower,
        slower=slower,
        speedup=geometric_mean(
            library.median_seconds / each.median_seconds for each, library in pairs
        ),
        generated_speedup=(None if missing else geometric_mean(ratio.median for ratio in ratios)),
    )


def _seconds(measured: Iterable[Measurement]) -> float:
    return sum(each.median_seconds for each in measured)


def contest_sentences(contest: ContestFacts) -> list[str]:
    """Return the contest of a whole plan in sentences."""
    count, name = contest.operators, contest.library
    sentences = [
        (
            f"Generated kernels compute {contest.generated} of the {count} operators for which "
            f"{name} had a correct candidate: {contest.share_by_number:.0%} by number, "
            f"{contest.share_by_time:.0%} by time."
        ),
        (
            f"The best generated kernel is faster than {name}'s best, beyond noise, in "
            f"{contest.faster} of them, as fast within noise in {contest.even}, slower in "
            f"{contest.slower}."
        ),
        f"The choices are {contest.speedup:.2f} times as fast as {name}'s best, in the geometric mean",
    ]
    alone = contest.generated_speedup
    sentences[-1] += "." if alone is None else f"; generated kernels alone {alone:.2f} times."
    return sentences
