"""Run a case: optimize its model, execute the plan, compare; every way that this can end is an outcome."""

import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Literal

import onnx
from support.plans.warm import Warm

import wpk
from fuzzing.graphs import Case
from fuzzing.oracle import Finding, Reference, Verdict
from wpk.engine import Engine
from wpk.errors import GraphError, ScheduleError, VerificationError, WpkError
from wpk.plan.plan import Outcome as CheckOutcome
from wpk.plan.plan import Plan, PlanBundle
from wpk.plan.plan_file import read_plan

Check = Literal["on", "off", "both"]


class Outcome(StrEnum):
    """How a case ends."""

    RIGHT = "right"
    REFUSED = "refused"
    WRONG = "wrong"
    CAUGHT = "caught"
    FALSE_ALARM = "false alarm"
    ODD_REFUSAL = "odd refusal"
    TRACEBACK = "traceback"
    UNDECIDED = "undecided"
    INVALID = "invalid"
    HANG = "hang"
    DEATH = "death"


GOOD = (Outcome.RIGHT, Outcome.REFUSED, Outcome.UNDECIDED, Outcome.INVALID)


@dataclass(frozen=True)
class Result:
    """The outcome of a case.

    Attributes:
        outcome: How it ended.
        words: Why, where it is not right.
        where: The line that a traceback ends in, within wpk.
        planned: Whether there was a plan.
        seconds: What it took.
        passes: Graph passes that rewrote something.
        inconclusive: Whether a check of wpk said that it says nothing.
        unchecked: How it ends without checks, where both was asked for.
    """

    outcome: Outcome
    words: str = ""
    where: str = ""
    planned: bool = False
    seconds: float = 0.0
    passes: Counter[str] = field(default_factory=Counter)
    inconclusive: bool = False
    unchecked: Outcome | None = None


def run_case(case: Case, warm: Warm, *, check: Check) -> Result:
    """Run a case to its end; hangs and deaths are for whoever runs this in a process of its own.

    Args:
        case: The case.
        warm: The pipeline.
        check: Whether ``optimize`` checks its plan. Both ways: the outcome is that with checks, and
            `Result.unchecked` that without; checks change nothing of a plan but its evidence, so
            that it is run once.
    """
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wpk-fuzz-") as folder:
        result = _run(case, warm, Path(folder), check)
    return replace(result, seconds=time.monotonic() - begun)


def _run(case: Case, warm: Warm, folder: Path, check: Check) -> Result:
    path = folder / "model.onnx"
    onnx.save(case.model, path)
    try:
        reference = Reference(case.model, case.precision)
    except Exception as error:  # ONNX Runtime's share no base class
        return Result(Outcome.INVALID, str(error))
    result = _attempt(case, reference, warm, path, "off" if check == "off" else "on")
    if check != "both":
        return result
    unchecked = _UNCHECKED.get(result.outcome)
    if unchecked is None:
        unchecked = _attempt(case, reference, warm, path, "off").outcome
    return replace(result, unchecked=unchecked)


_UNCHECKED = {
    Outcome.RIGHT: Outcome.RIGHT,
    Outcome.FALSE_ALARM: Outcome.RIGHT,
    Outcome.WRONG: Outcome.WRONG,
    Outcome.CAUGHT: Outcome.WRONG,
    Outcome.UNDECIDED: Outcome.UNDECIDED,
}
"""What a plan's outcome says of the same plan without checks."""


def _attempt(case: Case, reference: Reference, warm: Warm, path: Path, mode: str) -> Result:
    plan, caught = path.with_suffix(".plan"), ""
    try:
        try:
            _optimize(case, path, plan, mode)
        except VerificationError as error:
            caught = error.what
            warm.drop_device()
            _optimize(case, path, plan, "off")
        bundle = read_plan(plan)
        finding = _execute(case, reference, warm, bundle)
    except (GraphError, ScheduleError) as error:
        return Result(Outcome.REFUSED, error.what)
    except WpkError as error:
        warm.drop_device()
        return Result(Outcome.ODD_REFUSAL, f"{type(error).__name__}: {error.what}", where(error))
    except Exception as error:
        warm.drop_device()
        return Result(Outcome.TRACEBACK, f"{type(error).__name__}: {error}", where(error))
    return Result(
        _outcome(finding, caught),
        _words(finding, caught),
        planned=True,
        passes=Counter({p.name: 1 for p in bundle.plan.provenance.passes if p.rewritten}),
        inconclusive=_is_inconclusive(bundle.plan),
    )


def _is_inconclusive(plan: Plan) -> bool:
    checks = [*plan.checks, *(check for step in plan.steps for check in step.evidence.checks)]
    return any(check.outcome is CheckOutcome.INCONCLUSIVE for check in checks)


def _optimize(case: Case, path: Path, plan: Path, mode: str) -> None:
    wpk.optimize(path, plan, target="h200", precision=case.precision, search="static", check=mode)


def _outcome(finding: Finding, caught: str) -> Outcome:
    match finding.verdict:
        case Verdict.RIGHT:
            return Outcome.FALSE_ALARM if caught else Outcome.RIGHT
        case Verdict.WRONG:
            return Outcome.CAUGHT if caught else Outcome.WRONG
    return Outcome.UNDECIDED


def _words(finding: Finding, caught: str) -> str:
    return " || ".join(each for each in (finding.words, caught) if each)


def _execute(case: Case, reference: Reference, warm: Warm, bundle: PlanBundle) -> Finding:
    """Run a plan on fresh inputs at every size, and compare."""
    worst = Finding(Verdict.RIGHT)
    with Engine(bundle, warm.device()) as engine:
        for seed, size in enumerate(case.sizes):
            inputs = case.inputs(size, 1000 + seed)
            try:
                reference.exact(inputs)
            except Exception:  # ONNX Runtime's share no base class; not a size of this model
                continue
            found = reference.compare(inputs, engine.run(inputs), seed)
            if found.verdict is Verdict.WRONG:
                return Finding(found.verdict, f"at {size}: {found.words}")
            worst = found if found.verdict is Verdict.UNDECIDED else worst
    return worst


def where(error: BaseException) -> str:
    """The innermost line of wpk that an exception went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        f
        for f in frames
        if "/wpk/" in f.filename or "_passes/" in f.filename or "/search/" in f.filename
    ]
    if not ours:
        return ""
    last = ours[-1]
    return f"{'/'.join(Path(last.filename).parts[-2:])}:{last.lineno}"
