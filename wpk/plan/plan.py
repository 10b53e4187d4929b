"""What a plan says: everything an engine needs, and the evidence for every choice.

These are the types of ``plan.json``; `wpk.plan.plan_file` writes and reads them, and
`wpk.plan.checks.whole_plan` says what must hold between them.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wpk.build import KernelResources
from wpk.candidate import Candidate, Kind
from wpk.dtypes import DType, Precision
from wpk.execution import LibraryImage
from wpk.launch import Launch
from wpk.lowering.program import Buffer, Operator, Value
from wpk.plan.forms import FormSearch
from wpk.plan.measurement import EngineMeasurement, Measurement
from wpk.plan.ports import KeptOutput, Port
from wpk.plan.provenance import Provenance
from wpk.problems import Fallback

SCHEMA = 12
"""Version of ``plan.json``; raised whenever an older reader would misunderstand it."""


@dataclass(frozen=True)
class Weight:
    """A constant as it is stored: packed for the kernels that read it.

    Attributes:
        name: Unique name in ``weights.safetensors``.
        constant: Name of the model's constant.
        packing: Name of the packing, or None where it is stored as it is.
        dtype: Element type.
        shape: Shape as stored.
        digest: SHA-256 of the bytes.
    """

    name: str
    constant: str
    packing: str | None
    dtype: DType
    shape: tuple[int, ...]
    digest: str


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel.

    Attributes:
        digest: Digest of its source (`wpk.kernel_source.KernelSource.digest`): one name for what
            the GPU and the CPU execute, and for its members ``kernels/<digest>.cubin`` and ``.cu``.
        entry: Name in the cubin.
        compiler: What built it, patch release included (`wpk.build.nvrtc.compiler_here`).
        cubin_digest: SHA-256 of the ``.cubin`` member.
        source_digest: SHA-256 of the ``.cu`` member.
        resources: Registers, shared memory and spills.
        tensor_core_instructions: Tensor-core instructions of the machine code by kind.
    """

    digest: str
    entry: str
    compiler: str
    cubin_digest: str
    source_digest: str
    resources: KernelResources
    tensor_core_instructions: dict[str, int]


@dataclass(frozen=True)
class Funnel:
    """How one template's space was narrowed for a problem.

    Attributes:
        template: Name of the template.
        refusal: Why it does not apply, in words; empty when it does.
        space: Combinations of all parameters.
        legal: Legal ones.
        kept: Kept by the score.
        compiled: Compiled to machine code.
    """

    template: str
    refusal: str
    space: int
    legal: int
    kept: int
    compiled: int


class Outcome(StrEnum):
    """What a check found."""

    OK = "ok"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"  # what was seen would be seen of a wrong engine, too


class CheckMode(StrEnum):
    """How thoroughly a plan is checked before it is written (`wpk.checks.scope`)."""

    ON = "on"
    QUICK = "quick"
    OFF = "off"


@dataclass(frozen=True)
class Check:
    """One check of a step or of the whole engine.

    Attributes:
        name: What was compared.
        outcome: What it found.
        detail: Numbers in words; where it is inconclusive, why.
    """

    name: str
    outcome: Outcome
    detail: str

    @property
    def failed(self) -> bool:
        """Whether it found something wrong."""
        return self.outcome is Outcome.FAILED


@dataclass(frozen=True)
class Evidence:
    """Why a step is what it is.

    Attributes:
        bound_seconds: Roofline time that nothing can beat.
        bound_by: What limits it, e.g. ``hbm``.
        estimate_seconds: Predicted time of the candidate; None for a library's, which nothing predicts.
        score: Score of the candidate, between 0 and 1; None for a library's.
        funnels: One for each template asked.
        checks: What was checked, by whom.
        measurement: Of the candidate; None where it was chosen without measuring.
        in_engine_seconds: Time of the step among its neighbours in the whole engine; None where that was not measured.
    """

    bound_seconds: float = 0.0
    bound_by: str = ""
    estimate_seconds: float | None = None
    score: float | None = None
    funnels: tuple[Funnel, ...] = ()
    checks: tuple[Check, ...] = ()
    measurement: Measurement | None = None
    in_engine_seconds: float | None = None


@dataclass(frozen=True)
class Step:
    """One operator with the candidate that computes it.

    Attributes:
        operator: Names, nodes and problem, as lowering made them.
        inputs: Values and weights in the order of the operator's inputs.
        candidate: What computes it.
        launches: Its kernels in sequence; none where a library, ONNX Runtime or engines of bodies compute it.
        workspace_bytes: Scratch memory that a library asks for; launches say themselves what they need.
        evidence: Why.
        bodies: SHA-256 of the ``plan.json`` of each body of control flow whose bodies are engines.
    """

    operator: Operator
    inputs: tuple[str, ...]
    candidate: Candidate
    launches: tuple[Launch, ...]
    workspace_bytes: int
    evidence: Evidence
    bodies: tuple[str, ...] = ()

    @property
    def fallback(self) -> Fallback | None:
        """What ONNX Runtime computes, or engines of bodies do; None where a kernel or a library does."""
        problem = self.operator.problem
        return problem if isinstance(problem, Fallback) else None

    @cached_property
    def image(self) -> LibraryImage | None:
        """What a library must make ready; None where no library computes the step."""
        maker = self.candidate.maker
        if maker.kind is not Kind.LIBRARY:
            return None
        problem, configuration = self.operator.problem, self.candidate.configuration
        return LibraryImage(maker.name, maker.version, problem, configuration)


@dataclass(frozen=True)
class Memory:
    """Device memory of the activations at the tuned sizes.

    Attributes:
        arena_bytes: Size of the arena.
        peak_bytes: Most bytes alive during one step; no plan can need less.
        weight_bytes: Bytes of all stored weights.
    """

    arena_bytes: int
    peak_bytes: int
    weight_bytes: int


@dataclass(frozen=True)
class Plan:
    """``plan.json``.

    Attributes:
        schema: `SCHEMA` of the writer.
        wpk: Version of the writer.
        target: Name of the GPU compiled for.
        arch: What the cubins are built for, e.g. ``sm_90a``.
        precision: What multiplications may use.
        free: Free dimensions with the values that were tuned for.
        inputs: What the caller gives.
        outputs: What the caller gets from the device's memory.
        values: Activations by name.
        buffers: Memory by name.
        weights: Stored constants by name.
        steps: In execution order.
        kernels: By digest.
        memory: At the tuned sizes.
        provenance: Model, passes, options.
        checks: Checks of the whole engine.
        check_mode: How thoroughly everything was checked.
        checked_on: Device that executed everything that was checked; empty where nothing was.
        measurement: Of the whole engine; None where nothing was measured.
        limits: The smallest and the largest size of free dimensions; one that is not named may have any.
        kept_outputs: What the caller gets from the machine's memory.
        forms: How its form was found; None where none but the usual one was looked at.
    """

    schema: int
    wpk: str
    target: str
    arch: str
    precision: Precision
    free: dict[str, int]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    values: dict[str, Value]
    buffers: dict[str, Buffer]
    weights: dict[str, Weight]
    steps: tuple[Step, ...]
    kernels: dict[str, Kernel]
    memory: Memory
    provenance: Provenance
    checks: tuple[Check, ...] = ()
    check_mode: CheckMode = CheckMode.OFF
    checked_on: str = ""
    measurement: EngineMeasurement | None = None
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    kept_outputs: tuple[KeptOutput, ...] = ()
    forms: FormSearch | None = None

    def sizes_of(self, name: str) -> tuple[int, int]:
        """The smallest and the largest size of a free dimension; without limits, any that 64 bits hold."""
        return self.limits.get(name, (1, 2**63 - 1))

    def __repr__(self) -> str:
        """What it is for, in a line: all of it takes a screen for each operator."""
        return (
            f"<Plan of {self.provenance.model} for {self.target} ({self.arch}), {self.precision}: "
            f"{len(self.steps)} operators>"
        )


@dataclass(frozen=True)
class PlanBundle:
    """A plan with the bytes that it names.

    Attributes:
        plan: What ``plan.json`` says.
        weights: Arrays by `Weight.name`.
        cubins: Machine code by kernel digest.
        sources: Units by kernel digest, to read.
        models: What ONNX Runtime executes, and control flow whose bodies are engines, by SHA-256.
        bodies: The plans of these bodies, by SHA-256 of their ``plan.json``.
    """

    plan: Plan
    weights: dict[str, NDArray[np.generic]]
    cubins: dict[str, bytes]
    sources: dict[str, str] = field(default_factory=dict)
    models: dict[str, bytes] = field(default_factory=dict)
    bodies: dict[str, "PlanBundle"] = field(default_factory=dict)

    def __repr__(self) -> str:
        """What it is for, and how large it is."""
        size = sum(array.nbytes for array in self.weights.values())
        size += sum(map(len, self.cubins.values()))
        return f"<PlanBundle: {self.plan!r}, {len(self.cubins)} kernels, {size / 2**20:.1f} MiB>"
