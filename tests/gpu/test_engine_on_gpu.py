"""An engine on the GPU: graphs, sizes, times."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import onnx
import onnxruntime
import pytest
from subjects import exported

from wpk.checks.operator_check import StepRunner
from wpk.cli.main import main
from wpk.device import CudaDevice, MemoryRange, Patience, measure
from wpk.dtypes import Precision
from wpk.engine import Engine, random_inputs, time_engine
from wpk.engine.placement import footprint
from wpk.plan.plan_file import read_plan
from wpk.plan.tensors import tensors_of
from wpk.trial import Regime

pytestmark = pytest.mark.gpu

FREE = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 8] x) => (float[batch, 5] y)
<float[8, 5] m = {
  1.0, 0.5, -1.0, 0.25, 2.0, 0.0, 1.5, -0.5, 1.0, 1.0, 0.125, -2.0, 1.0, 0.5, 0.75, -1.0, 0.0, 1.0,
  0.5, 0.5, 1.0, 1.0, 0.0, -1.5, 0.25, 2.0, -0.25, 0.5, 1.0, 1.0, 0.5, 1.5, -1.0, 0.0, 0.25, 1.0, 0.5,
  -0.75, 1.0, 2.0 }>
{ l = MatMul(x, m)  y = Softmax<axis = 1>(l) }
"""


def plan_of(model: Path, precision: str) -> Path:
    plan = model.with_suffix(".plan")
    options = ["--target", "h200", "--check", "off", "--search", "static"]
    assert main(["optimize", str(model), "-o", str(plan), "--precision", precision, *options]) == 0
    return plan


def test_sizes_take_turns_and_each_is_right(cuda: CudaDevice, tmp_path: Path) -> None:
    model = tmp_path / "free.onnx"
    onnx.save(onnx.parser.parse_model(FREE), model)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with Engine(read_plan(plan_of(model, "fp32")), cuda) as engine:
        for seed, batch in enumerate((1, 7, 1, 300, 7, 1)):
            inputs = random_inputs(engine.plan, seed, {"batch": batch})
            (expected,) = session.run(None, dict(inputs))
            assert np.abs(engine.run(inputs)["y"] - expected).max() < 1e-6  # probabilities


@pytest.mark.timed
def test_cold_operands_cost_more_than_those_in_l2(
    cuda: CudaDevice, tmp_path: Path, record: Callable[[str, object], None]
) -> None:
    """A matrix product of one row reads 16 MiB of weights: from L2 or from memory."""
    model = tmp_path / "gemv.onnx"
    weights = np.random.default_rng(0).standard_normal((2048, 2048), np.float32)
    graph = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[1, 2048] x) => (float[1, 2048] y)'
        "{ y = MatMul(x, w) }"
    )
    graph.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(graph, model)
    bundle = read_plan(plan_of(model, "fp32"))
    (step,) = bundle.plan.steps
    images = {v.buffer: np.zeros(footprint(v, {}), np.uint8) for v in bundle.plan.values.values()}
    runner = StepRunner(tensors_of(bundle), {}, cuda)
    with Engine(bundle, cuda), runner.placed(step, images) as placed:  # the engine loads kernels
        regions = [MemoryRange(*each) for each in placed.allocations.items()]
        times = {r: measure(cuda, placed.works, regions, r, Patience()) for r in Regime}
    record("regimes.gemv", {r.value: [t.median, t.noise] for r, t in times.items()})
    assert times[Regime.COLD].median > 1.2 * times[Regime.WARM].median
    assert times[Regime.COLD].median > weights.nbytes / 4.8e12


@pytest.mark.timed
@pytest.mark.parametrize("network", ["resnet18", "mobilenet_v2"])
def test_a_run_costs_what_its_graph_costs(
    cuda: CudaDevice, tmp_path: Path, record: Callable[[str, object], None], network: str
) -> None:
    name = next(n for n in exported.model_names() if network in n)
    model = tmp_path / f"{network}.onnx"
    onnx.save(exported.refill(name), model)
    bundle = read_plan(plan_of(model, Precision.FP16.value))
    times = time_engine(bundle, cuda)
    alone = sum(t.median for t in times.operators.values())
    bounds = sum(step.evidence.bound_seconds for step in bundle.plan.steps)
    record(
        f"engine.{network}.fp16",
        {"gpu": times.engine.median, "host": median(times.host), "alone": alone, "bound": bounds},
    )
    gpu = times.engine.median
    assert median(times.host) <= gpu + max(20e-6, 0.03 * gpu)
    assert gpu > bounds
    assert all(
        times.operators[step.operator.name].median >= step.evidence.bound_seconds
        for step in bundle.plan.steps
    )


@pytest.mark.timed
def test_bench_prints_what_it_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tmp_path / "free.onnx"
    onnx.save(onnx.parser.parse_model(FREE), model)
    plan = plan_of(model, "fp16")
    capsys.readouterr()
    assert main(["bench", str(plan), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert len(data["engine"]["seconds"]) >= 200
    assert data["engine"]["median"] <= data["engine"]["p99"]
    assert data["memory"]["total_bytes"] > 0
    assert set(data["operators_alone"]) == {s.operator.name for s in read_plan(plan).plan.steps}
    assert main(["bench", str(plan)]) == 0
    out = capsys.readouterr().out
    assert "whole engine" in out
    assert "MiB on the device" in out
