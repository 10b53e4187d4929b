"""The operators that take far longer than their bound and a launch, in the order of what that costs."""

from collections.abc import Sequence
from dataclasses import dataclass

from wpk.plan import Plan
from wpk.problems import Problem, lifted
from wpk.problems.signs import TIMES
from wpk.report.plans.distance.causes import causes_of
from wpk.report.plans.distance.subject import Subject, target_of
from wpk.report.text import visible
from wpk.targets import DEPENDENT_LAUNCH_SECONDS

FAR = 3.0
"""Times the bound and a launch above which an operator is far from it: two thirds of its time are neither.

Of networks whose kernels are right for them, operators take 1 to 2.5 times as long by the models, whole engines
of ResNet-50 about 2 times (``floor.*`` of the benchmarks)."""

NOTICEABLE = 0.02
"""Part of the time of all operators below which nobody need look; equal operators together."""

_SHOWN_CAUSES = 3
_MOST_LINES = 6
_WORD, _NAME = "far", 32


@dataclass(frozen=True)
class DistantFacts:
    """Operators that take far longer than they should, and are equal but for numbers of quantised ones.

    Attributes:
        names: Of the operators.
        work: What each computes, in words.
        times: Time of one, by its bound and a launch.
        share: Part of all operators' time that they take together.
        beyond_us: Time beyond bound and launch that they take together.
        causes: Why, in words: what no schedule can change first.
    """

    names: tuple[str, ...]
    work: str
    times: float
    share: float
    beyond_us: float
    causes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """All of it in a line; causes that weigh less are left out."""
        more = f" and {len(self.names) - 1} equal to it" if len(self.names) > 1 else ""
        causes = "; ".join(self.causes[:_SHOWN_CAUSES])
        return (
            f"{visible(self.names[0], _NAME)}{more}, {self.share:.0%}: {self.times:.1f} {TIMES} "
            f"its bound and a launch: {causes}"
        )


def launch_floor(plan: Plan) -> float:
    """Return what a launch takes at least on the plan's GPU, in seconds; of an unknown one, what was measured elsewhere."""
    target = target_of(plan)
    return DEPENDENT_LAUNCH_SECONDS if target is None else target.launch_seconds


def distant_operators(plan: Plan, seconds: Sequence[float | None]) -> tuple[DistantFacts, ...]:
    """Return what is far from its bound and takes a noticeable part of the time; what costs most comes first.

    Args:
        plan: The plan.
        seconds: Of each of its steps, measured or estimated; None where neither is known.
    """
    floor, target = launch_floor(plan), target_of(plan)
    total = sum(each for each in seconds if each is not None)
    alike: dict[tuple[Problem, object], list[int]] = {}
    for number, step in enumerate(plan.steps):
        if seconds[number] is not None:
            key = lifted(step.operator.problem).problem, step.candidate
            alike.setdefault(key, []).append(number)
    found = []
    for numbers in alike.values():
        steps = [plan.steps[number] for number in numbers]
        taken = [seconds[number] or 0.0 for number in numbers]
        least = steps[0].evidence.bound_seconds + floor
        mean = sum(taken) / len(taken)
        if least <= 0 or mean <= FAR * least or sum(taken) < NOTICEABLE * total:
            continue
        found.append(
            DistantFacts(
                names=tuple(step.operator.name for step in steps),
                work=steps[0].operator.problem.words(),
                times=mean / least,
                share=sum(taken) / total,
                beyond_us=sum(each - least for each in taken) * 1e6,
                causes=causes_of(Subject(plan, steps[0], mean, target)),
            )
        )
    return tuple(sorted(found, key=lambda each: -each.beyond_us))


def distant_lines(distant: Sequence[DistantFacts], launch_us: float) -> list[tuple[str, str]]:
    """Return the sentences as lines of a summary; a report names what is left out."""
    title, *sentences = distant_sentences(distant, launch_us)
    left = len(sentences) - _MOST_LINES
    if left > 0:
        sentences = [*sentences[:_MOST_LINES], f"and {left} more: wpk report PLAN -o FILE.html"]
    return [(_WORD, line) for line in (title, *sentences)]


def distant_sentences(distant: Sequence[DistantFacts], launch_us: float) -> list[str]:
    """Say which operators are far from their bounds, and of each why; one sentence where there are none."""
    title = distant_words(distant, launch_us)
    return [f"{title}:" if distant else title, *(each.sentence for each in distant)]


def distant_words(distant: Sequence[DistantFacts], launch_us: float) -> str:
    """Say how many operators are far from their bounds, and the share of the time that they take.

    Args:
        distant: What `distant_operators` found.
        launch_us: What a launch takes at least, in microseconds.
    """
    limit = f"bound and a launch ({launch_us:.1f} µs)"
    if not distant:
        nothing = f"nothing: no operator with {NOTICEABLE:.0%} of the time takes more than"
        return f"{nothing} {FAR:.0f} {TIMES} its {limit}"
    count = sum(len(each.names) for each in distant)
    share = sum(each.share for each in distant)
    whose = "operator takes more than {} its" if count == 1 else "operators take more than {} their"
    return f"{count} {whose.format(f'{FAR:.0f} {TIMES}')} {limit}, {share:.0%} of the time"
