"""What became of a backend test: passed, refused with a reason, or what must never be."""

import re
import traceback
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from backend_cases import Case
from backend_forms import Form, forms

import wpk
from wpk.errors import EngineError, GraphError, VerificationError, WpkError
from wpk.plan.plan import Outcome, Plan
from wpk.runtime import RefusedInputsError

ROUNDOFFS = 8
"""Results of fp16 and bf16 may lie this many units of roundoff off: both sides round on the way."""

ABSOLUTE = 1e-5
"""What sums of some tens of fp32 numbers around 1 may miss where they cancel: 168 units of roundoff."""

MOST_REASONS = 4
"""That an expectation names; a model has as many as it has nodes."""

_UNIT_ROUNDOFF = {np.dtype(np.float16): 2.0**-11, np.dtype(ml_dtypes.bfloat16): 2.0**-8}


ALONE = " (ONNX Runtime alone passes)"
"""Behind a refusal of what ONNX Runtime by itself computes as the suite asks."""


class Kind(StrEnum):
    """How a test may end."""

    PASSED = "passed"
    HANDED = "passed by fallback"  # ONNX Runtime executes what no kernel computes
    AS_RUNTIME = "as onnxruntime"  # by fallback, and off as ONNX Runtime by itself is
    REFUSED = "refused"
    WRONG = "wrong"
    CRASHED = "crashed"
    FALSE_ALARM = "false alarm"  # right numbers that the checks of `wpk.optimize` do not accept


@dataclass(frozen=True)
class Result:
    """How a test ended.

    Attributes:
        kind: How.
        words: The form that passed, or why it was refused; the expectation holds these.
        evidence: Of what must never be, in full.
        handed: Whether ONNX Runtime executed a part of it: not where the host drives bodies of kernels.
    """

    kind: Kind
    words: str = ""
    evidence: str = ""
    handed: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}" if self.words else self.kind


def judge(case: Case, folder: Path) -> Result:
    """Run a test in its forms until one is not refused, first by kernels alone, then with fallback.

    The last refusal says what is lacking, and whether ONNX Runtime by itself passes.

    Args:
        case: The test.
        folder: Where its model and plan are written.
    """
    result = Result(Kind.REFUSED)
    for fallback in ("off", "on"):
        for form in forms(case):
            result = _judge(form, case.rtol, folder, fallback)
            if result.kind is Kind.WRONG and result.handed and not onnxruntime_passes(case):
                return Result(Kind.AS_RUNTIME, form.words, result.evidence)
            if result.kind is not Kind.REFUSED:
                return result
    if onnxruntime_passes(case):
        return Result(Kind.REFUSED, f"{result.words}{ALONE}", result.evidence)
    return result


def onnxruntime_passes(case: Case) -> bool:
    """Tell whether ONNX Runtime by itself gives the suite's numbers."""
    try:
        session = onnxruntime.InferenceSession(
            case.model.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        names = [each.name for each in session.get_inputs()]
        for inputs, expected in case.data:
            seen = session.run(None, dict(zip(names, inputs, strict=True)))
            for info, mine, right in zip(case.model.graph.output, seen, expected, strict=True):
                if difference(info.name, np.asarray(mine), np.asarray(right), case.rtol):
                    return False
    except Exception:  # onnxruntime's exceptions share no base class
        return False
    return True


def _judge(form: Form, rtol: float, folder: Path, fallback: str) -> Result:
    try:
        plan, differences = _run(form, rtol, folder, check="on", fallback=fallback)
    except VerificationError as error:
        return _alarm(form, rtol, folder, str(error), fallback)
    except RefusedInputsError as error:
        return Result(Kind.REFUSED, "ONNX Runtime does not execute it on these inputs", str(error))
    except EngineError as error:
        if "expected" in error.what:  # empty data, or the converter has changed an input's shape
            return Result(Kind.REFUSED, "the data do not fit the model")
        return Result(Kind.CRASHED, form.words, traceback.format_exc())
    except GraphError as error:
        if "bug" not in error.fix:  # as what a pass did not expect
            return Result(Kind.REFUSED, refusal(error))
        return Result(Kind.CRASHED, form.words, traceback.format_exc())
    except Exception:
        return Result(Kind.CRASHED, form.words, traceback.format_exc())
    handed = fallback == "on" and any(step.fallback for step in plan.steps)
    if differences:
        seen = "the checks saw nothing; " + "; ".join(differences)
        return Result(Kind.WRONG, form.words, seen, handed)
    doubt = ["inconclusive"] if _is_inconclusive(plan) else []
    return Result(
        Kind.HANDED if handed else Kind.PASSED,
        ", ".join([form.words, *doubt] if form.words else doubt),
    )


def _alarm(form: Form, rtol: float, folder: Path, said: str, fallback: str) -> Result:
    try:
        plan, differences = _run(form, rtol, folder, check="off", fallback=fallback)
    except WpkError:
        return Result(Kind.CRASHED, form.words, traceback.format_exc())
    if differences and any(step.fallback for step in plan.steps):
        return Result(Kind.REFUSED, "the checks find ONNX Runtime wrong", said)
    kind = Kind.WRONG if differences else Kind.FALSE_ALARM
    return Result(kind, form.words, "; ".join([said, *differences]))


def _is_inconclusive(plan: Plan) -> bool:
    checks = [*plan.checks, *(each for step in plan.steps for each in step.evidence.checks)]
    return any(each.outcome is Outcome.INCONCLUSIVE for each in checks)


def _run(
    form: Form, rtol: float, folder: Path, *, check: str, fallback: str
) -> tuple[Plan, list[str]]:
    """The plan of a form, and where its numbers are not the suite's."""
    model, path = folder / "model.onnx", folder / "model.plan"
    onnx.save(form.model, model)
    given = [inputs for inputs, _ in form.data] if check == "on" else []
    how = {"target": "h200", "search": "static", "fallback": fallback}
    wpk.optimize(model, path, check=check, inputs=given, **how)
    found = []
    with wpk.load(path, device="cpu") as engine:
        for inputs, expected in form.data:
            outputs = engine.run(inputs)
            for info, right in zip(form.model.graph.output, expected, strict=True):
                found += difference(info.name, outputs[info.name], np.asarray(right), rtol)
        return engine.plan, found


def difference(name: str, seen: Any, right: Any, rtol: float) -> list[str]:
    """Where an output differs from the suite's, in words; empty where it does not.

    Types and shapes are equal, integers and booleans too. The suite's absolute tolerance, 1e-7, is
    below what fp32 sums of numbers around 1 can keep; its relative one below the roundoff of bf16.
    """
    if (seen.dtype, seen.shape) != (right.dtype, right.shape):
        return [f"{name}: {seen.dtype}{seen.shape}, expected {right.dtype}{right.shape}"]
    if np.issubdtype(right.dtype, np.integer) or right.dtype == np.bool_:
        equal = seen == right
    else:
        unit = _UNIT_ROUNDOFF.get(right.dtype, 0.0)
        limit = {"rtol": max(rtol, ROUNDOFFS * unit), "atol": max(ABSOLUTE, unit)}
        numbers = seen.astype(np.float64), right.astype(np.float64)
        equal = np.isclose(*numbers, **limit, equal_nan=True)
    if np.all(equal):
        return []
    place = tuple(int(i) for i in np.argwhere(~equal)[0])
    count = f"{np.count_nonzero(~equal)} of {equal.size}"
    return [f"{name}: {count} differ; at {list(place)} {seen[place]} for {right[place]}"]


def refusal(error: GraphError) -> str:
    """Why wpk does not carry a model, without what is particular to it: names, paths, numbers."""
    first, *rows = error.what.splitlines()
    if "(node, operator, why)" in first:
        words = [_lacking(*re.split(r"\s{2,}", row.strip(), maxsplit=2)[1:]) for row in rows]
    elif "inputs or outputs" in first:
        words = [f"type {row.rpartition(': ')[2].lower()}" for row in rows]
    elif "ONNX does not define" in first:
        words = [": ".join(row.split(": ")[1:]) for row in rows]
    else:
        words = [first.partition(": ")[0]]
    found = sorted({_general(each) for each in words if each})
    more = [f"{len(found) - MOST_REASONS} more"] if len(found) > MOST_REASONS else []
    return "; ".join([*found[:MOST_REASONS], *more])


def _lacking(operator: str, why: str) -> str:
    """What a row of the table names; nothing where it only follows from another row."""
    if "is made by nothing that is supported" in why:
        return ""
    return operator if why == f"operator {operator} is not supported" else why


def _general(words: str) -> str:
    words = re.sub(r"\S*/\S*\.onnx", "the model", words)
    words = re.sub(r"'[^']*'", "…", words)
    return re.sub(r"[(\[][-\d., ]*[)\]]|-?\b\d+(\.\d+)?(e-?\d+)?\b", "n", words)
