"""Run a case as far as its graph passes: the rewritten graph, in ONNX Runtime, against the original.

No plan is built, so it takes a tenth of the time; precisions that ONNX Runtime cannot execute on a CPU
become fp32.
"""

import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import onnx
import onnx_graphsurgeon as gs
import onnxruntime

from fuzzing.evaluation import options
from fuzzing.graphs import Case
from fuzzing.oracle import Finding, Reference, Verdict
from fuzzing.running import Outcome, Result, where
from wpk.dtypes import Precision
from wpk.errors import GraphError
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model

_NEWEST_IR = 10
"""What every ONNX Runtime that is supported reads."""


def run_rewritten(case: Case) -> Result:
    """Rewrite and lower a model, and compare what the passes made of it."""
    begun = time.monotonic()
    return replace(_run(case), seconds=time.monotonic() - begun)


def _run(case: Case) -> Result:
    if case.precision == "bf16":
        case = replace(case, precision="fp32")
    try:
        reference = Reference(case.model, case.precision)
    except Exception as error:  # ONNX Runtime's share no base class
        return Result(Outcome.INVALID, str(error))
    with tempfile.TemporaryDirectory(prefix="wpk-fuzz-") as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(case.model, path)
        try:
            lowered = lower_model(path, {}, Precision(case.precision))
            finding = _compared(case, reference, lowered)
        except GraphError as error:
            return Result(Outcome.REFUSED, error.what)
        except Exception as error:
            return Result(Outcome.TRACEBACK, f"{type(error).__name__}: {error}", where(error))
    passes = Counter({each.name: 1 for each in lowered.passes if each.rewritten})
    outcomes = {
        Verdict.RIGHT: Outcome.RIGHT,
        Verdict.WRONG: Outcome.WRONG,
        Verdict.UNDECIDED: Outcome.UNDECIDED,
    }
    return Result(outcomes[finding.verdict], finding.words, planned=True, passes=passes)


def _compared(case: Case, reference: Reference, lowered: LoweredModel) -> Finding:
    model = gs.export_onnx(lowered.graph)
    model.ir_version = min(model.ir_version, _NEWEST_IR)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    worst = Finding(Verdict.RIGHT)
    for seed, size in enumerate(case.sizes):
        inputs = case.inputs(size, 1000 + seed)
        try:
            reference.exact(inputs)
        except Exception:  # ONNX Runtime's share no base class; not a size of this model
            continue
        given = {each.name for each in session.get_inputs()}
        fed = {name: array for name, array in inputs.items() if name in given}
        actual = dict(zip(names, session.run(names, fed), strict=True))
        found = reference.compare(inputs, actual, seed)
        if found.verdict is Verdict.WRONG:
            return Finding(found.verdict, f"at {size}: {found.words}")
        worst = found if found.verdict is Verdict.UNDECIDED else worst
    return worst
