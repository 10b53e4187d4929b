"""No plan is written of what a wrong graph pass made: faults planted in every pass are found.

That each fault is one is shown without wpk's checks: on its model the pass rewrites, and the
rewritten graph gives other outputs than the model, as it does not without the fault.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from support.faults.graph_passes.broken_pass import BrokenPass, planted
from support.faults.graph_passes.kit import KIT
from support.plans.warm import Warm

from wpk.checks import Scope
from wpk.dtypes import Precision
from wpk.errors import VerificationError
from wpk.graph_passes import pass_groups, run_passes
from wpk.loading import load_graph
from wpk.options import BuildOptions
from wpk.pipeline import job, optimize
from wpk.plan import Outcome
from wpk.progress import silent
from wpk.search.loop import CacheFolder
from wpk.targets import find_target

LINES = {4: 5e-5, 2: 1e-2}
"""The project's own line for fp32, worst difference relative to an output's RMS; and one that roundings to 16 bits
of a few products do not reach. By bytes of an element."""

Outputs = list[NDArray[np.generic]]


PROVEN = 3
"""Of the models, as many share one of which the proof is made without the fault; the others are marked exhaustive."""

EVERY = 8
"""Of the models, as many share one of which a whole plan is made; the others are marked exhaustive."""


def _parameters(faults: Iterable[BrokenPass], every: int = 1) -> list[object]:
    return [
        pytest.param(
            fault,
            id=f"{fault.breaks}: {fault.name}",
            marks=[pytest.mark.exhaustive] if fault.is_network or number % every else [],
        )
        for number, fault in enumerate(faults)
    ]


MODELS = {(f.model, f.precision): f for f in KIT}.values()

_KEPT: set[tuple[str, str, Precision]] = set()
"""Models whose outputs the right passes were seen to keep."""

every_fault = pytest.mark.parametrize("fault", _parameters(KIT))
proven_models = pytest.mark.parametrize("fault", _parameters(MODELS, PROVEN))
some_models = pytest.mark.parametrize("fault", _parameters(MODELS, EVERY))


def test_every_pass_is_broken_somewhere() -> None:
    groups = pass_groups(Precision.FP32)
    usual = {each.name for group in groups for each in group if each.is_usual}
    assert {fault.breaks for fault in KIT} == usual  # of others see tests/lowering/test_forms.py


@every_fault
def test_the_fault_changes_an_output(fault: BrokenPass, tmp_path: Path) -> None:
    path = fault.write_model(tmp_path)
    session, line = _session(str(path)), LINES[fault.precision.storage.bytes]
    inputs = _drawn(session)
    right = session.run(None, inputs)
    model = (fault.model, fault.constants, fault.precision)
    if model not in _KEPT:  # many faults share one
        assert _difference(_run(_rewritten(fault, path)[0], fault, inputs), right) <= line
        _KEPT.add(model)
    with planted(fault):
        wrong, rewrites = _rewritten(fault, path)
    assert rewrites > 0
    assert _difference(_run(wrong, fault, inputs), right) > line


@every_fault
def test_nothing_is_written_of_what_a_wrong_pass_made(
    fault: BrokenPass, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one_finalist: None
) -> None:
    """The proof comes first, as it does for large models: what it refuses is not compiled."""
    monkeypatch.setattr(job, "most_beside_bytes", lambda: 0)
    _refused(fault, tmp_path)


def test_a_proof_beside_the_compiles_is_heeded(tmp_path: Path, one_finalist: None) -> None:
    fault = next(each for each in KIT if each.precision is Precision.FP32 and not each.is_network)
    _refused(fault, tmp_path)


def _refused(fault: BrokenPass, folder: Path) -> None:
    plan = folder / "model.plan"
    model = fault.write_model(folder)
    with planted(fault), pytest.raises(VerificationError) as refused:
        optimize(model, plan, target="h200", precision=fault.precision)
    assert not plan.exists()
    if fault.precision.storage.bytes == 4:  # the others show where values are rounded
        assert f"pass '{fault.breaks}'" in refused.value.what


@proven_models
def test_without_the_fault_the_proof_holds(fault: BrokenPass, tmp_path: Path) -> None:
    """What refuses the faulty pass, asked of the right one."""
    asked = job.Job(
        fault.write_model(tmp_path),
        BuildOptions(target="h200", precision=fault.precision.value),
        find_target("h200"),
        CacheFolder(None),
        silent,
        Scope(),
    )
    checks = asked.prove(asked.lower(), silent).checks
    assert {check.outcome for check in checks} == {Outcome.OK}


@some_models
def test_without_the_fault_a_plan_is_written(
    fault: BrokenPass, tmp_path: Path, warm_without_cubins: Warm
) -> None:
    del warm_without_cubins
    plan = tmp_path / "model.plan"
    optimize(fault.write_model(tmp_path), plan, target="h200", precision=fault.precision)
    assert plan.is_file()


def _rewritten(fault: BrokenPass, path: Path) -> tuple[onnx.ModelProto, int]:
    """The model after all passes, and how often the one of interest rewrote."""
    graph = load_graph(path)
    rewrites = {
        record.name: record.rewritten
        for group in pass_groups(fault.precision)
        for record in run_passes(graph, group)
    }
    model = gs.export_onnx(graph)
    model.ir_version = min(max(model.ir_version, 8), 10)  # functions need 8; onnxruntime reads 10
    return model, rewrites[fault.breaks]


def _run(
    model: onnx.ModelProto, fault: BrokenPass, inputs: dict[str, NDArray[np.generic]]
) -> Outputs:
    """Evaluate; ONNX Runtime's CPU leaves casts to 16 bits out where it likes, onnx does not."""
    if fault.precision.storage.bytes == 2:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(model).run(None, inputs))
    return _session(model.SerializeToString()).run(None, inputs)  # type: ignore[no-any-return]


def _session(model: str | bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _drawn(session: onnxruntime.InferenceSession) -> dict[str, NDArray[np.generic]]:
    rng = np.random.default_rng(1)
    inputs: dict[str, NDArray[np.generic]] = {}
    for port in session.get_inputs():
        shape = [dim if isinstance(dim, int) else 3 for dim in port.shape]
        integers = "int" in port.type
        inputs[port.name] = (
            rng.integers(0, 4, shape) if integers else rng.standard_normal(shape, np.float32)
        )
    return inputs


def _difference(actual: Outputs, expected: Outputs) -> float:
    """The worst difference over all outputs; infinite where only one is finite, or the shape differs."""
    worst = 0.0
    for y, right in zip(actual, expected, strict=True):
        if y.shape != right.shape:
            return np.inf
        rms = float(np.sqrt(np.mean(np.square(right, dtype=np.float64))))
        with np.errstate(invalid="ignore"):
            error = np.abs(y.astype(np.float64) - right)
        worst = max(worst, float(np.where(np.isnan(error), np.inf, error).max()) / rms)
    return worst
