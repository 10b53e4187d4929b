"""A network for every GPU that wpk compiles for: compiled, executed on the CPU and right."""

from pathlib import Path

import onnx
import pytest
from subjects import exported
from support.networks.drawn_weights import parse_model
from support.plans.quick_search import compile_one
from support.plans.warm import Warm

from wpk.cli.main import main
from wpk.dtypes import ASKED, Precision
from wpk.errors import TargetError
from wpk.plan.plan import Outcome, Plan
from wpk.plan.plan_file import read_plan
from wpk.targets import TARGETS, Target, require_compilable, why_precision_unsupported

SMALL = """
<ir_version: 8, opset_import: ["" : 17]>
residual (float[1, 3, 21, 17] x, float[24, 3, 5, 5] w1, float[40, 24, 3, 3] w2, float[24, 40, 1, 1] w3,
          float[24, 10] w4) => (float[1, 10] y)
{
  a = Conv<kernel_shape = [5, 5], strides = [2, 2], pads = [2, 2, 2, 2]>(x, w1)
  b = Relu(a)
  c = MaxPool<kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>(b)
  d = Conv<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(c, w2)
  e = Relu(d)
  f = Conv<kernel_shape = [1, 1]>(e, w3)
  g = Add(f, c)
  h = Relu(g)
  i = GlobalAveragePool(h)
  j = Flatten(i)
  k = MatMul(j, w4)
  y = Softmax(k)
}
"""
WEIGHTS = "w1 w2 w3 w4"


def _compilable(target: Target) -> bool:
    try:
        require_compilable(target)
    except TargetError:
        return False
    return True


COMPILABLE = [target for target in TARGETS if _compilable(target)]


def _offered(target: Target) -> list[Precision]:
    return [p for p in ASKED if why_precision_unsupported(target, p) is None]


def _combinations(*, sampled: bool) -> list[object]:
    """Each target with each precision that it has; of a sample the first of each architecture with one, in turns."""
    found: list[object] = []
    archs = list(dict.fromkeys(target.arch for target in COMPILABLE))
    first = {target.arch: target for target in reversed(COMPILABLE)}
    for target in COMPILABLE:
        offered = _offered(target)
        chosen = offered[archs.index(target.arch) % len(offered)]
        for precision in offered:
            inside = sampled and target == first[target.arch] and precision == chosen
            marks = [pytest.mark.slow] if inside else [pytest.mark.slow, pytest.mark.exhaustive]
            found.append(
                pytest.param(target, precision, marks=marks, id=f"{target.name}-{precision}")
            )
    return found


def _optimize(model: Path, plan: Path, target: Target, precision: Precision) -> Plan:
    """Compile with checks: every operator executed on the CPU, the whole against ONNX Runtime."""
    command = ["optimize", str(model), "-o", str(plan), "--target", target.name, "--check", "quick"]
    assert main([*command, "--precision", precision, "--search", "static"]) == 0
    return read_plan(plan).plan


def _check(plan: Plan, target: Target) -> None:
    assert (plan.target, plan.arch) == (target.name, target.arch)
    checks = [*plan.checks, *(check for step in plan.steps for check in step.evidence.checks)]
    assert len(checks) > len(plan.steps)
    assert {check.outcome for check in checks} == {Outcome.OK}
    for kernel in plan.kernels.values():
        assert target.has_async_copy or not kernel.tensor_core_instructions


@pytest.mark.parametrize(("target", "precision"), _combinations(sampled=True))
def test_a_small_network_is_right(
    tmp_path: Path, warm: Warm, target: Target, precision: Precision
) -> None:
    del warm
    model = tmp_path / "small.onnx"
    onnx.save(parse_model(SMALL, WEIGHTS), model)
    _check(_optimize(model, tmp_path / "small.plan", target, precision), target)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("target", "precision"), _combinations(sampled=False))
def test_resnet_50_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Target, precision: Precision
) -> None:
    compile_one(monkeypatch)
    model = tmp_path / "resnet50.onnx"
    onnx.save(exported.refill("tv_resnet50.dynamo"), model)
    plan = _optimize(model, tmp_path / "resnet50.plan", target, precision)
    _check(plan, target)
    assert len(plan.steps) == 55


@pytest.mark.parametrize(
    ("name", "precision", "words"),
    [
        ("t4", "fp16", "fp16 kernels copy to shared memory asynchronously (cp.async"),
        ("t4", "bf16", "NVIDIA T4 (sm_75) has no tensor-core product (mma) for bf16"),
        ("v100", "fp32", "known to the performance models only"),
    ],
)
def test_what_a_target_lacks_is_refused_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, precision: str, words: str
) -> None:
    model = tmp_path / "small.onnx"
    onnx.save(parse_model(SMALL, WEIGHTS), model)
    command = ["optimize", str(model), "-o", str(tmp_path / "no.plan"), "--target", name]
    assert main([*command, "--precision", precision]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert "fix: choose" in said
    assert not (tmp_path / "no.plan").exists()
