"""Two plans of one model, operator by operator: what differs, and which is faster.

Operators are partners if they compute the same ONNX nodes, but for nodes that only one of the plans
has, such as casts; of operators without such nodes, those of one name. Other fusions may leave some
without a partner.

Times are compared only where they are of one kind: both measured under the same regime, else both
estimated by the models, which is no measurement and has no band of noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wpk.errors import EngineError
from wpk.plan import EngineMeasurement, Plan, Ratio, Step, library_images
from wpk.report.plans.words import schedule_words
from wpk.shape_ranges import range_words

MEASURED, ESTIMATED = "measured", "estimated"

_DIGEST = 12


@dataclass(frozen=True)
class Side:
    """What one of the plans says of an operator. Times in seconds.

    Attributes:
        operator: Its name.
        maker: Template or library.
        version: Its version.
        configuration: Its numbers, in words.
        bound_seconds: What nothing can beat.
        estimate_seconds: Predicted; None where a library computes it.
        measured_seconds: Median, alone; None where it was not measured.
        regime: What the caches held when it was measured; empty where it was not.
    """

    operator: str
    maker: str
    version: str
    configuration: str
    bound_seconds: float
    estimate_seconds: float | None
    measured_seconds: float | None
    regime: str

    def seconds(self, kind: str) -> float | None:
        """Return its time of a kind: the estimate for `ESTIMATED`, else the measured one."""
        return self.estimate_seconds if kind == ESTIMATED else self.measured_seconds


@dataclass(frozen=True)
class Pair:
    """An operator of either plan, or of both.

    Attributes:
        work: What it computes, in words.
        nodes: ONNX nodes.
        first: The operator of the first plan; None where it has no such operator.
        second: The operator of the second plan, likewise.
        same_choice: Whether both execute the same.
        compared: `MEASURED`, `ESTIMATED`, or why the times cannot be compared, in words.
        speedup: Time of the first by that of the second: above 1 where the second is faster; without
            a band (its ends are the median) for estimates. None where nothing is compared.
    """

    work: str
    nodes: tuple[str, ...]
    first: Side | None
    second: Side | None
    same_choice: bool
    compared: str
    speedup: Ratio | None


@dataclass(frozen=True)
class PlanDifference:
    """Something that the plans say differently."""

    what: str
    first: str
    second: str


@dataclass(frozen=True)
class Total:
    """A sum over the pairs whose times are of one kind. Seconds.

    Attributes:
        kind: `MEASURED` or `ESTIMATED`.
        pairs: How many.
        first: The first plan's sum.
        second: The second plan's sum.
    """

    kind: str
    pairs: int
    first: float
    second: float


@dataclass(frozen=True)
class EnginePair:
    """The whole engines, each as measured when it was written. Seconds.

    Attributes:
        first: Median of one inference; None where it was not measured.
        second: The second plan's median.
        speedup: How many times as fast the second is; None where one was not measured.
    """

    first: float | None
    second: float | None
    speedup: Ratio | None


@dataclass(frozen=True)
class PlanComparison:
    """All that there is to say about two plans.

    Attributes:
        model: File name of the model.
        model_digest: Its SHA-256.
        differences: What the plans say differently of themselves.
        pairs: In the order of the first plan; those of the second without a partner at the end.
        totals: Sums, one a kind of times.
        engine: The whole engines.
    """

    model: str
    model_digest: str
    differences: tuple[PlanDifference, ...]
    pairs: tuple[Pair, ...]
    totals: tuple[Total, ...]
    engine: EnginePair


def compare_plans(first: Plan, second: Plan) -> PlanComparison:
    """Compare two plans of one model.

    Raises:
        EngineError: They are of different models; names both.
    """
    one, other = first.provenance, second.provenance
    if one.model_digest != other.model_digest:
        raise EngineError(
            f"the plans are of different models: {one.model} ({one.model_digest[:_DIGEST]}…) and "
            f"{other.model} ({other.model_digest[:_DIGEST]}…)",
            fix="compare plans that were written from the same ONNX file",
        )
    pairs = tuple(_pair(*each) for each in _partners(first.steps, second.steps))
    traits = zip(_traits(first), _traits(second), strict=True)
    return PlanComparison(
        model=one.model,
        model_digest=one.model_digest,
        differences=tuple(PlanDifference(what, a, b) for (what, a), (_, b) in traits if a != b),
        pairs=pairs,
        totals=tuple(total for kind in (MEASURED, ESTIMATED) for total in _totals(pairs, kind)),
        engine=_engines(first.measurement, second.measurement),
    )


def _partners(
    first: Sequence[Step], second: Sequence[Step]
) -> list[tuple[Step | None, Step | None]]:
    """Each step with its partner; of several with the same nodes, in their order."""
    common = _nodes(first) & _nodes(second)
    waiting: dict[tuple[str, ...], list[Step]] = {}
    for step in second:
        waiting.setdefault(_identity(step, common), []).append(step)
    pairs: list[tuple[Step | None, Step | None]] = []
    for step in first:
        queue = waiting.get(_identity(step, common), [])
        pairs.append((step, queue.pop(0) if queue else None))
    alone = {id(step) for queue in waiting.values() for step in queue}
    return pairs + [(None, step) for step in second if id(step) in alone]


def _nodes(steps: Sequence[Step]) -> set[str]:
    return {node for step in steps for node in step.operator.nodes}


def _identity(step: Step, common: set[str]) -> tuple[str, ...]:
    return tuple(sorted(common.intersection(step.operator.nodes))) or ("", step.operator.name)


def _pair(first: Step | None, second: Step | None) -> Pair:
    operator = next(step.operator for step in (first, second) if step is not None)
    speedup, compared, same_choice = None, "no partner", False
    if first is not None and second is not None:
        speedup, compared = _speedup(first, second)
        same_choice = first.candidate == second.candidate
    return Pair(
        work=operator.problem.words(),
        nodes=operator.nodes,
        first=None if first is None else _side(first),
        second=None if second is None else _side(second),
        same_choice=same_choice,
        compared=compared,
        speedup=speedup,
    )


def _side(step: Step) -> Side:
    maker, evidence = step.candidate.maker, step.evidence
    measured = evidence.measurement
    return Side(
        operator=step.operator.name,
        maker=maker.name,
        version=maker.version,
        configuration=schedule_words(step.candidate.configuration),
        bound_seconds=evidence.bound_seconds,
        estimate_seconds=evidence.estimate_seconds,
        measured_seconds=None if measured is None else measured.median_seconds,
        regime="" if measured is None else measured.regime,
    )


def _speedup(first: Step, second: Step) -> tuple[Ratio | None, str]:
    one, other = first.evidence.measurement, second.evidence.measurement
    if one is not None and other is not None:
        if one.regime != other.regime:
            return None, f"one {one.regime}, one {other.regime}"
        return other.chosen.speedup_over(one.chosen), MEASURED
    before, after = first.evidence.estimate_seconds, second.evidence.estimate_seconds
    if before is None or after is None:
        return None, "one not measured"
    return Ratio(*[before / after] * 3), ESTIMATED


def _totals(pairs: Sequence[Pair], kind: str) -> list[Total]:
    same = [pair for pair in pairs if pair.compared == kind]
    first, second = (
        sum(side.seconds(kind) or 0.0 for side in sides if side is not None)
        for sides in ([pair.first for pair in same], [pair.second for pair in same])
    )
    return [Total(kind, len(same), first, second)] if same else []


def _engines(first: EngineMeasurement | None, second: EngineMeasurement | None) -> EnginePair:
    return EnginePair(
        first=None if first is None else first.median_seconds,
        second=None if second is None else second.median_seconds,
        speedup=None if not (first and second) else second.plan.speedup_over(first.plan),
    )


def _traits(plan: Plan) -> list[tuple[str, str]]:
    """What a plan says of itself, in words."""
    origin = plan.provenance
    libraries = {f"{image.library} {image.version}" for image in library_images(plan)}
    shapes = [f"{n}:{range_words(given)}" for n, given in sorted(origin.shapes.items())]
    compilers = {kernel.compiler for kernel in plan.kernels.values()}
    return [
        ("wpk", plan.wpk),
        ("compiler", ", ".join(sorted(compilers))),
        ("libraries", ", ".join(sorted(libraries)) or "none"),
        ("model", origin.model),
        ("target", f"{plan.target} ({plan.arch})"),
        ("precision", plan.precision.value),
        ("shapes", ", ".join(shapes) or "as the model"),
        ("free dimensions", ", ".join(f"{n} at {size}" for n, size in plan.free.items()) or "none"),
        ("skipped passes", ", ".join(origin.skipped_passes) or "none"),
        ("operators", str(len(plan.steps))),
        ("kernel launches", str(sum(len(step.launches) for step in plan.steps))),
    ]
