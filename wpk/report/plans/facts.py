"""What a report says, whatever its form: the terminal, Markdown, JSON and HTML show these facts.

Times are microseconds: a bound is what nothing can beat, an estimate is predicted, not measured.
What was measured is kept as the plan has it, in seconds.
"""

from dataclasses import dataclass
from functools import cached_property

from wpk.candidate import Candidate
from wpk.plan import (
    Check,
    CheckMode,
    EngineMeasurement,
    FormSearch,
    Funnel,
    Measurement,
    Outcome,
    PassSummary,
    Ratio,
)
from wpk.report.plans.bodies import BodyFacts
from wpk.report.plans.check_words import outcome_word
from wpk.report.plans.contest import ContestFacts
from wpk.report.plans.distance import DistantFacts
from wpk.report.plans.memory import MemoryFacts
from wpk.report.plans.precision import PrecisionFacts
from wpk.report.plans.tracing import NodeFacts


@dataclass(frozen=True)
class LaunchFacts:
    """One kernel launch of an operator.

    Attributes:
        entry: Name of the kernel.
        cubin_source: Digest of the source that the cubin was compiled from.
        cpu_source: Digest of the source that the CPU device executes, generated again by this
            installation; empty where it would refuse, because it generates another.
        grid: Blocks, in words.
        block: Threads, in words.
        shared_bytes: Shared memory of a block, static and dynamic.
        registers: Of a thread.
        spill_bytes: Bytes that a thread spills to local memory.
        tensor_core_instructions: In the machine code, by kind.
    """

    entry: str
    cubin_source: str
    cpu_source: str
    grid: str
    block: str
    shared_bytes: int
    registers: int
    spill_bytes: int
    tensor_core_instructions: dict[str, int]


@dataclass(frozen=True)
class OperatorFacts:
    """One operator of the plan.

    Attributes:
        name: Its name.
        kind: Its family (`wpk.problems.family.Family`).
        work: What it computes, in words.
        note: Why it exists, where that is not obvious.
        nodes: ONNX nodes that it computes.
        inputs: Values and weights that it reads.
        outputs: Values that it writes.
        reads: Numbers of the operators that made its inputs.
        problem: Number of its problem in `ReportFacts.problems`.
        candidate: What computes it; a library's has no launches and no source.
        title: Its schedule template, or its library with the version.
        schedule: Its numbers, in words.
        score: Of the candidate, between 0 and 1; None for a library's.
        bound_us: What nothing can beat.
        bound_by: What limits the bound.
        estimate_us: Predicted time; None for a library's, which nothing predicts.
        measurement: How the choice was measured; None where it was chosen without measuring.
        in_engine_seconds: Its time among its neighbours; None where that was not measured.
        over_library: Speedup of the choice over the library's best; None where that is the choice,
            or where the library has no correct candidate.
        why: Why it won or lost, in words; empty where it was chosen without measuring.
        share: Part of the sum of all operators' times, measured ones where they are known.
        launches: Its kernels in sequence.
        state: What its checks found (`wpk.report.plans.check_words.state_word`).
        checks: The checks behind that word.
    """

    name: str
    kind: str
    work: str
    note: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reads: tuple[int, ...]
    problem: int
    candidate: Candidate
    title: str
    schedule: str
    score: float | None
    bound_us: float
    bound_by: str
    estimate_us: float | None
    measurement: Measurement | None
    in_engine_seconds: float | None
    over_library: Ratio | None
    why: str
    share: float
    launches: tuple[LaunchFacts, ...]
    state: str
    checks: tuple[Check, ...]

    @property
    def time_us(self) -> float:
        """The measured time of the choice: alone, or else among its neighbours; else its estimate."""
        if self.measurement is not None:
            return self.measurement.median_seconds * 1e6
        if self.in_engine_seconds is not None:
            return self.in_engine_seconds * 1e6
        return self.estimate_us or 0.0

    @property
    def of_peak(self) -> float:
        """The part of its time that nothing can beat: how much is used of what limits it."""
        return min(1.0, self.bound_us / self.time_us) if self.time_us > 0 else 0.0

    @property
    def headroom_us(self) -> float:
        """The time beyond the bound."""
        return max(0.0, self.time_us - self.bound_us)

    @property
    def registers(self) -> int:
        """Most registers of a thread in any launch."""
        return max((launch.registers for launch in self.launches), default=0)

    @property
    def shared_bytes(self) -> int:
        """Most shared memory of a block in any launch."""
        return max((launch.shared_bytes for launch in self.launches), default=0)

    @property
    def spill_bytes(self) -> int:
        """Most spilled bytes of a thread in any launch."""
        return max((launch.spill_bytes for launch in self.launches), default=0)

    @property
    def tensor_core_kinds(self) -> list[str]:
        """Kinds of tensor-core instructions in any launch, sorted."""
        return sorted({kind for each in self.launches for kind in each.tensor_core_instructions})


@dataclass(frozen=True)
class ProblemFacts:
    """A distinct problem: all operators that are it share one search.

    Attributes:
        work: In words.
        kind: Its family.
        operators: Names of its operators.
        chosen: The templates and libraries that compute them.
        bound_us: What nothing can beat.
        funnels: One for each template that was asked or refused.
        measurement: How its search went; None where nothing was measured.
    """

    work: str
    kind: str
    operators: tuple[str, ...]
    chosen: tuple[str, ...]
    bound_us: float
    funnels: tuple[Funnel, ...]
    measurement: Measurement | None


@dataclass(frozen=True)
class PortFacts:
    """An input or output of the model: name, element type, shape in words."""

    name: str
    dtype: str
    shape: str


@dataclass(frozen=True)
class ReportFacts:
    """Everything that a report says about a plan.

    Attributes:
        wpk: Version of the writer.
        model: File name of the model.
        model_digest: SHA-256 of the model file.
        opset: Opset of the model.
        target: The GPU compiled for.
        arch: What the cubins are built for.
        compilers: What built them.
        shapes: Shapes given, by input.
        free: Free dimensions with the values that were tuned for.
        skipped_passes: Passes skipped on request.
        inputs: What the caller gives.
        outputs: What the caller gets.
        bound_us: Sum of the bounds of operators that follow each other, where that is most.
        estimate_us: Sum of the operators' estimates.
        measurement: How the whole engine was measured.
        contest: Generated kernels and a library side by side; None where no library took part.
        launches: Kernel launches of one inference; besides these only library steps are enqueued.
        chain: The most operators that follow each other; others run beside them.
        library_steps: Operators that a library computes.
        operators: In execution order.
        problems: Distinct problems, in order of their first operator.
        nodes: The model's nodes.
        passes: What each graph pass did.
        memory: Device memory.
        precision: The precision that was really used.
        checks: Checks of the whole engine.
        check_mode: How thoroughly everything was checked.
        checked_on: What executed everything that was checked, in words; empty where nothing was.
        cpu_refusal: Why the CPU device of this installation would refuse the plan; empty if not.
        sources: Generated units by digest, where they were given.
        bodies: Bodies of control flow that are engines, where their plans were given.
        distant: Operators that take far longer than their bound and a launch, and why.
        launch_us: What a launch takes at least.
        forms: How the form of the model was found; None where only the usual one was looked at.
    """

    wpk: str
    model: str
    model_digest: str
    opset: int
    target: str
    arch: str
    compilers: tuple[str, ...]
    shapes: dict[str, str]
    free: dict[str, int]
    skipped_passes: tuple[str, ...]
    inputs: tuple[PortFacts, ...]
    outputs: tuple[PortFacts, ...]
    bound_us: float
    estimate_us: float | None
    measurement: EngineMeasurement | None
    contest: ContestFacts | None
    launches: int
    chain: int
    library_steps: int
    operators: tuple[OperatorFacts, ...]
    problems: tuple[ProblemFacts, ...]
    nodes: tuple[NodeFacts, ...]
    passes: tuple[PassSummary, ...]
    memory: MemoryFacts
    precision: PrecisionFacts
    checks: tuple[Check, ...]
    check_mode: CheckMode
    checked_on: str
    cpu_refusal: str
    sources: dict[str, str]
    bodies: tuple[BodyFacts, ...] = ()
    distant: tuple[DistantFacts, ...] = ()
    launch_us: float = 0.0
    forms: FormSearch | None = None

    @cached_property
    def measured_operators(self) -> list[tuple[OperatorFacts, Measurement]]:
        """The operators that were measured, with what was measured of each."""
        return [(each, each.measurement) for each in self.operators if each.measurement is not None]

    @property
    def is_measured(self) -> bool:
        """Whether the plan holds any measured time: of an operator, or of the whole engine."""
        return self.measurement is not None or bool(self.measured_operators)

    @property
    def legal_and_compiled(self) -> tuple[int, int]:
        """The numbers of schedules that were legal and that were compiled."""
        funnels = [funnel for problem in self.problems for funnel in problem.funnels]
        return sum(each.legal for each in funnels), sum(each.compiled for each in funnels)

    @property
    def right_operators(self) -> int:
        """The number of operators that were executed alone and are right."""
        return sum(each.state == outcome_word(Outcome.OK) for each in self.operators)

    @property
    def verdict(self) -> Outcome | None:
        """What all checks together found; None where nothing failed and not everything was checked."""
        each = (self.checks, *(operator.checks for operator in self.operators))
        found = {check.outcome for checks in each for check in checks}
        if Outcome.FAILED in found:
            return Outcome.FAILED
        if not all(each):
            return None
        return Outcome.INCONCLUSIVE if Outcome.INCONCLUSIVE in found else Outcome.OK

    @property
    def shows_measured(self) -> bool:
        """Whether there is anything to show of how the plan was found: times, or forms that models compared."""
        return self.is_measured or self.forms is not None
