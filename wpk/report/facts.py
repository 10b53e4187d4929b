"""What a report says, whatever its form: the terminal, Markdown, JSON and HTML show these facts.

Times are microseconds: a bound is what nothing can beat, an estimate is predicted, not measured.
What was measured is kept as the plan has it, in seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from wpk.candidate import Candidate
from wpk.plan import Check, CheckMode, EngineMeasurement, Measurement, Outcome, PassSummary, Ratio
from wpk.report.contest_facts import ContestFacts
from wpk.report.problem_facts import ProblemFacts


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
        over_library: Speedup of the choice over the library's best; None where that is the choice,
            or where the library has no correct candidate.
        why: Why it won or lost, in words; empty where it was chosen without measuring.
        share: Part of the sum of all operators' times, measured ones where they are known.
        launches: Its kernels in sequence.
        state: What its checks found (`wpk.report.check_words.state_word`).
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
    over_library: Ratio | None
    why: str
    share: float
    launches: tuple[LaunchFacts, ...]
    state: str
    checks: tuple[Check, ...]

    @property
    def time_us(self) -> float:
        """The measured time of the choice alone, or its estimate."""
        if self.measurement is not None:
            return self.measurement.median_seconds * 1e6
        return self.estimate_us or 0.0

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
    def tensor_core_instructions(self) -> dict[str, int]:
        """Tensor-core instructions of all launches by kind."""
        return added(launch.tensor_core_instructions for launch in self.launches)


@dataclass(frozen=True)
class NodeFacts:
    """A node of the model.

    Attributes:
        name: Its name.
        operator: ONNX operator.
        kind: Its family.
        operators: Numbers of the operators that compute it; empty where the passes removed it.
        near: For a removed node, number of the operator that its work most likely went to: one
            that the passes made at its place, else the first that reads what it led to; -1 where
            nothing reads it.
    """

    name: str
    operator: str
    kind: str
    operators: tuple[int, ...]
    near: int


@dataclass(frozen=True)
class BlockFacts:
    """A buffer's place in the arena and in time.

    Attributes:
        name: The buffer.
        values: What lies in it.
        kind: Family of the operator that writes it first; ``input`` for the model's inputs.
        offset: Bytes from the start of the arena.
        bytes: Its size.
        first: First step that it lives in; -1 where it is there before.
        last: Last step that it lives in; the number of steps where it stays.
    """

    name: str
    values: tuple[str, ...]
    kind: str
    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class MemoryFacts:
    """Device memory at the tuned sizes, in bytes."""

    arena_bytes: int
    peak_bytes: int
    weight_bytes: int
    workspace_bytes: int
    blocks: tuple[BlockFacts, ...]


@dataclass(frozen=True)
class PrecisionFacts:
    """The precision that was really used.

    Attributes:
        asked: What the user asked for.
        values: Number of activations by element type.
        instructions: Tensor-core instructions in all cubins by kind.
        on_tensor_cores: Matrix-like operators whose cubins hold tensor-core instructions.
        on_ordinary_cores: Matrix-like operators whose cubins hold none.
        depthwise: How many of those are depthwise, with one product for each channel and tap.
        by_library: Matrix-like operators that a library computes, with cores of its choice.
    """

    asked: str
    values: dict[str, int]
    instructions: dict[str, int]
    on_tensor_cores: tuple[str, ...]
    on_ordinary_cores: tuple[str, ...]
    depthwise: int
    by_library: tuple[str, ...]


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


def added(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    """Counts by name, summed."""
    total: dict[str, int] = {}
    for each in counts:
        for name, count in each.items():
            total[name] = total.get(name, 0) + count
    return total
