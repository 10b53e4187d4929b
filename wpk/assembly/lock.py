"""The lock file: every choice of a plan, so that the plan can be built again without a search.

JSON in a fixed order, to read and to compare line by line: where it holds, then what was chosen, then
the evidence. The evidence goes along because it is part of the plan: what was measured once cannot be
had again without measuring. `plan` is the digest of the plan's own ``plan.json``, which names every
weight and kernel by digest: a plan that was built again is either the same, byte for byte, or refused.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wpk.assembly.evidence import EvidenceBook
from wpk.build import compiler_here
from wpk.candidate import Candidate
from wpk.codec import FieldError, decode, encode
from wpk.dtypes import Precision
from wpk.errors import EngineError
from wpk.options import BuildOptions
from wpk.plan import (
    Check,
    CheckMode,
    EngineMeasurement,
    Evidence,
    FormSearch,
    PlanBundle,
    Step,
    atomic_file,
    plan_digest,
)
from wpk.search.store import problem_digest
from wpk.shape_ranges import ShapeRange
from wpk.version import VERSION

_WIDTH = 180
"""Characters of a line within which values are not broken."""

SCHEMA = 8
"""Version of the file; raised whenever an older reader would misunderstand it."""


@dataclass(frozen=True)
class LockStep:
    """What computes one operator.

    Attributes:
        operator: Its name.
        problem: Digest of its problem.
        candidate: What was chosen.
        workspace_bytes: Scratch memory that a library asks for.
        kernels: Digests of the kernels' sources, in the order of its launches.
        bodies: Digests of the plans of its bodies.
    """

    operator: str
    problem: str
    candidate: Candidate
    workspace_bytes: int
    kernels: tuple[str, ...]
    bodies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lock:
    """A lock file.

    Attributes:
        lock: `SCHEMA` of the writer.
        wpk: Version of the writer.
        compiler: NVRTC, patch release included.
        model: File name of the model.
        model_digest: SHA-256 of the model file.
        target: The GPU compiled for.
        arch: What the cubins are built for.
        precision: What multiplications may use.
        shapes: Shapes given, by input.
        skipped_passes: Passes skipped on request.
        fallback: Whether ONNX Runtime might execute what no kernel computes.
        plan: SHA-256 of ``plan.json``.
        steps: In execution order.
        evidence: Why each step is what it is, in the same order.
        checks: Checks of the whole engine.
        check_mode: How thoroughly everything was checked.
        checked_on: Device that executed what was checked.
        measurement: Of the whole engine.
        changed_sites: The form: keys of the sites that passes decide otherwise than usually.
        forms: How it was found.
        bodies: Locks of the plans of bodies, by the digests of these.
    """

    lock: int
    wpk: str
    compiler: str
    model: str
    model_digest: str
    target: str
    arch: str
    precision: Precision
    shapes: dict[str, ShapeRange]
    skipped_passes: tuple[str, ...]
    fallback: bool
    plan: str
    steps: tuple[LockStep, ...]
    evidence: tuple[Evidence, ...]
    checks: tuple[Check, ...]
    check_mode: CheckMode
    checked_on: str
    measurement: EngineMeasurement | None
    changed_sites: tuple[str, ...] = ()
    forms: FormSearch | None = None
    bodies: "dict[str, Lock]" = field(default_factory=dict)

    @property
    def build(self) -> BuildOptions:
        """What the plan was asked to be."""
        return BuildOptions(
            target=self.target,
            precision=self.precision.value,
            shapes=self.shapes,
            skip_passes=self.skipped_passes,
            changed_sites=self.changed_sites,
            fallback="on" if self.fallback else "off",
        )

    @property
    def book(self) -> EvidenceBook:
        """The evidence that was locked."""
        return EvidenceBook(
            self.evidence,
            self.checks,
            self.check_mode,
            self.checked_on,
            self.measurement,
            self.forms,
        )


def lock_of(bundle: PlanBundle) -> Lock:
    """The lock of a plan that this process has compiled."""
    plan = bundle.plan
    origin = plan.provenance
    return Lock(
        lock=SCHEMA,
        wpk=plan.wpk,
        compiler=compiler_here(),
        model=origin.model,
        model_digest=origin.model_digest,
        target=plan.target,
        arch=plan.arch,
        precision=plan.precision,
        shapes=origin.shapes,
        skipped_passes=origin.skipped_passes,
        fallback=origin.fallback,
        plan=plan_digest(plan),
        steps=tuple(map(lock_step, plan.steps)),
        evidence=tuple(step.evidence for step in plan.steps),
        checks=plan.checks,
        check_mode=plan.check_mode,
        checked_on=plan.checked_on,
        measurement=plan.measurement,
        changed_sites=origin.changed_sites,
        forms=plan.forms,
        bodies={digest: lock_of(body) for digest, body in sorted(bundle.bodies.items())},
    )


def lock_step(step: Step) -> LockStep:
    """What a lock says of a step."""
    kernels = tuple(launch.kernel for launch in step.launches)
    digest = problem_digest(step.operator.problem)
    return LockStep(
        step.operator.name, digest, step.candidate, step.workspace_bytes, kernels, step.bodies
    )


def write_lock(path: Path, bundle: PlanBundle) -> None:
    """Write the lock of a plan, completely or not at all.

    Raises:
        OutputError: The file cannot be written.
    """
    text = _text(encode(lock_of(bundle), Lock), "")
    with atomic_file(path) as stream:
        stream.write(text.encode() + b"\n")


def _text(data: Any, indent: str) -> str:
    """JSON with everything short on one line: a schedule is read, and compared, as a whole."""
    line = json.dumps(data, ensure_ascii=False, allow_nan=False)
    inner = indent + " "
    if len(line) + len(indent) <= _WIDTH or not isinstance(data, dict | list):
        return line
    if isinstance(data, dict):
        parts = [f"{inner}{json.dumps(k)}: {_text(v, inner)}" for k, v in data.items()]
        return "{\n" + ",\n".join(parts) + f"\n{indent}}}"
    parts = [f"{inner}{_text(each, inner)}" for each in data]
    return "[\n" + ",\n".join(parts) + f"\n{indent}]"


def read_lock(path: Path) -> Lock:
    """Read a lock file.

    Raises:
        EngineError: It is missing, damaged, or of another schema; names the field.
    """
    try:
        data = json.loads(path.read_bytes(), parse_constant=_refuse_constant)
    except OSError as error:
        raise EngineError(
            f"{path} cannot be read: {error.strerror or error}",
            fix="give the path of a file that wpk optimize --lock wrote",
        ) from error
    except (ValueError, RecursionError) as error:
        raise _damaged(path, f"no JSON of a lock: {error}") from error
    if not isinstance(data, dict) or "lock" not in data:
        raise _damaged(path, "no lock file")
    if data["lock"] != SCHEMA:
        raise EngineError(
            f"{path} has schema {str(data['lock'])[:40]}, this wpk {VERSION} reads {SCHEMA} "
            f"(written by wpk {str(data.get('wpk'))[:40]})",
            fix="use the version that wrote it, or write it again: wpk optimize --lock",
        )
    try:
        lock = decode(data, Lock, "lock")
    except FieldError as error:
        raise _damaged(path, f"field {error.path}: {error.what}") from error
    _check_evidence(path, lock)
    return lock


def _check_evidence(path: Path, lock: Lock) -> None:
    if len(lock.evidence) != len(lock.steps):
        raise _damaged(path, f"{len(lock.steps)} steps, {len(lock.evidence)} entries of evidence")
    for body in lock.bodies.values():
        _check_evidence(path, body)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"bare {name}")


def _damaged(path: Path, what: str) -> EngineError:
    return EngineError(
        f"{path}: {what}", fix="copy the lock again, or write it again: wpk optimize --lock"
    )
