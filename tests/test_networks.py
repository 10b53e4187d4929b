"""Real exporters' networks through the command line: optimized, verified, within their budgets."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from subjects import exported
from support.networks.branching import Shuffled

from wpk.cli.main import main
from wpk.emulator import Emulator
from wpk.engine import Engine, random_inputs
from wpk.expression import Operand
from wpk.plan.plan import Plan
from wpk.plan.plan_file import read_plan
from wpk.problems import Convolution, Elementwise, Matmul

pytestmark = pytest.mark.usefixtures("as_users_compile")

RESNETS = ("tv_resnet18.dynamo", "tv_resnet18.script", "tv_resnet50.dynamo")

LAUNCHES = {
    "tv_resnet18.dynamo": 23,
    "tv_resnet18.script": 23,
    "tv_resnet50.dynamo": 55,
    "tv_mobilenet_v2.dynamo": 54,
    "tv_inception_v3.dynamo": 81,
    "tv_densenet121.dynamo": 123,
    "hf_distilbert.dynamo": 2 + 3 * 7,
}
"""Copies and memsets counted; DistilBERT has two launches of embedding and three layers."""


@dataclass(frozen=True)
class Limit:
    """Error of the output relative to its RMS: median and worst element."""

    median: float
    worst: float


def limit(network: str, precision: str) -> Limit:
    """What a network may differ by from ONNX Runtime in fp32."""
    resnet = network in RESNETS
    if precision == "fp32":
        return Limit(1e-5, 5e-5)
    if precision == "bf16":
        return Limit(6e-3, 5e-2) if resnet else Limit(3e-2, 2e-1)
    return Limit(2e-3, 1e-2) if resnet else Limit(5e-3, 4e-2)


SAMPLE = {
    ("tv_mobilenet_v2.dynamo", "fp32"),
    ("tv_resnet18.script", "fp16"),
    ("tv_mobilenet_v2.dynamo", "bf16"),
    ("hf_distilbert.dynamo", "tf32"),
}
"""Every precision; the rest is marked exhaustive."""

COMBINATIONS = [
    pytest.param(
        network,
        precision,
        marks=[pytest.mark.slow]
        if (network, precision) in SAMPLE
        else [pytest.mark.slow, pytest.mark.exhaustive],
    )
    for network in LAUNCHES
    for precision in ("fp32", "tf32", "fp16", "bf16")
]


def _write(network: str, folder: Path, seed: int = 0) -> Path:
    path = folder / f"{network}.{seed}.onnx"
    onnx.save(exported.refill(network, seed), path)
    return path


@pytest.mark.long
@pytest.mark.usefixtures("one_finalist")
@pytest.mark.parametrize(("network", "precision"), COMBINATIONS)
def test_network_is_right_within_its_budgets(tmp_path: Path, network: str, precision: str) -> None:
    _check_network(tmp_path, network, precision)


@pytest.mark.exhaustive
def test_a_network_that_is_searched_as_users_do_is_right(tmp_path: Path) -> None:
    """Others are so by default: those of the README's commands."""
    _check_network(tmp_path, "tv_resnet18.script", "fp16")


def _check_network(tmp_path: Path, network: str, precision: str) -> None:
    model, plan = _write(network, tmp_path), tmp_path / "network.plan"
    command = ["optimize", str(model), "-o", str(plan), "--target", "h200", "--check", "off"]
    assert main([*command, "--precision", precision]) == 0
    assert main(["verify", str(plan), str(model), "--device", "cpu", "--seeds", "1"]) == 0
    written = read_plan(plan).plan
    assert sum(len(step.launches) for step in written.steps) <= LAUNCHES[network]
    _check_units(written, precision)
    _check_layout(written)
    _check_outputs(plan, model, network, precision)


def _check_units(plan: Plan, precision: str) -> None:
    """Tensor cores wherever products of many rows are, never one tf32 pass where fp32 is promised."""
    for step in plan.steps:
        if step.candidate.maker.name == "gemm_skinny":  # bound by reading its matrix
            continue
        counts: dict[str, int] = {}
        for launch in step.launches:
            counts |= plan.kernels[launch.kernel].tensor_core_instructions
        if precision == "fp32":
            assert set(counts) <= {"hmma.tf32", "hgmma.tf32"}, step.operator.name
            assert all(count % 3 == 0 for count in counts.values()), step.operator.name
        elif isinstance(step.operator.problem, Convolution | Matmul):
            problem = step.operator.problem
            if not (isinstance(problem, Convolution) and problem.is_depthwise):
                suffix = {"fp16": "f16"}.get(precision, precision)
                assert len(counts) == 1, step.operator.name
                assert set(counts) <= {f"hmma.{suffix}", f"hgmma.{suffix}"}, step.operator.name


def _check_layout(plan: Plan) -> None:
    """Nothing only moves data, and the first operator reads the model's own layout."""
    moves = [s.operator for s in plan.steps if isinstance(s.operator.problem, Elementwise)]
    assert not [each.name for each in moves if isinstance(each.problem.expression, Operand)]
    assert plan.inputs[0].name in plan.steps[0].inputs


def _check_outputs(path: Path, model: Path, network: str, precision: str) -> None:
    """As ONNX Runtime's; and any order of the steps that memory allows gives the same to the bit."""
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    bundle = read_plan(path)
    inputs = random_inputs(bundle.plan, 5, bundle.plan.free)
    expected = session.run(None, inputs)[0]
    made = []
    for device in (Emulator(), Shuffled(0)):
        with Engine(bundle, device) as engine:
            (actual,) = engine.run(inputs).values()
            made.append(actual)
    np.testing.assert_array_equal(*made)
    errors = np.abs(made[0].astype(np.float64) - expected) / np.sqrt(np.mean(expected**2))
    allowed = limit(network, precision)
    assert np.median(errors) <= allowed.median
    assert errors.max() <= allowed.worst
