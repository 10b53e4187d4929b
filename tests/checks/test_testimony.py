"""What ONNX Runtime says, and where it says nothing."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.networks.silent_models import AMPLIFIES, DEAD_HEAD, save_silent

from wpk.checks.pass_proof import prove_passes
from wpk.checks.scope import Scope, scope_of
from wpk.checks.testimony import Witness
from wpk.checks.verification import Verification, verify
from wpk.checks.witness import ModelReference, WitnessError
from wpk.emulator import Emulator
from wpk.lowering.flat_graph import FlatGraph
from wpk.lowering.model import lower_model
from wpk.pipeline import optimize
from wpk.plan.plan import Check, Outcome
from wpk.plan.plan_file import read_plan
from wpk.progress import silent

pytestmark = pytest.mark.usefixtures("one_cubin")

Save = Callable[[str], Path]


@pytest.fixture
def save(tmp_path: Path) -> Save:
    """Writes a model given as text."""
    return lambda text: save_silent(tmp_path / "model.onnx", text)


def verified(model: Path, scope: Scope | None = None, precision: str = "fp32") -> Verification:
    plan = model.with_suffix(".plan")
    bundle = optimize(model, plan, target="h200", precision=precision, check="off")
    lowered = lower_model(model, {}, bundle.plan.precision)
    proof = prove_passes(lowered, scope or Scope(), silent)
    return verify(read_plan(plan), proof, Emulator(), silent)


def compared(found: Verification) -> list[Check]:
    """The checks beside ONNX Runtime."""
    return [check for check in found.whole if check.name.startswith("ONNX Runtime")]


def outcomes(found: Verification) -> set[Outcome]:
    return {check.outcome for check in compared(found)}


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_a_model_that_amplifies_rounding_is_inconclusive(save: Save, precision: str) -> None:
    found = verified(save(AMPLIFIES), precision=precision)
    assert outcomes(found) == {Outcome.INCONCLUSIVE}
    assert all("the model amplifies rounding" in check.detail for check in compared(found))
    assert {each.check.outcome for each in found.operators} == {Outcome.OK}
    assert found.passed


def test_a_head_of_zeros_is_inconclusive(save: Save) -> None:
    for scope in (Scope(), scope_of("quick"), Scope(seeds=5)):
        found = verified(save(DEAD_HEAD), scope)
        assert outcomes(found) == {Outcome.INCONCLUSIVE}
        assert all("it should be zero for all inputs tried" in c.detail for c in compared(found))


def test_what_onnxruntime_has_no_kernel_for_is_inconclusive(save: Save) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (bfloat16[2, 8] x) => (bfloat16[2, 8] y)'
    found = verified(save(text + "{ y = Relu(x) }"))
    assert outcomes(found) == {Outcome.INCONCLUSIVE}
    assert ["NOT_IMPLEMENTED" in check.detail for check in compared(found)] == [True] * 3
    assert {each.check.outcome for each in found.operators} == {Outcome.OK}


def test_types_that_python_cannot_hand_to_onnxruntime_are_inconclusive(save: Save) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (bfloat16[2, 8] x) => (float[2, 8] y)'
    found = verified(save(text + "{ a = Cast<to = 1>(x)  y = Relu(a) }"))
    assert outcomes(found) == {Outcome.INCONCLUSIVE}
    assert all("ONNX Runtime cannot execute the model" in check.detail for check in compared(found))


def test_a_constant_among_the_outputs_is_right_or_wrong(save: Save) -> None:
    text = (
        '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 8] x) => (float[2, 8] y, float[2] c)'
    )
    found = verified(save(text + "{ y = Relu(x)  c = Constant<value_floats = [1.0, 2.0]>() }"))
    assert outcomes(found) == {Outcome.OK}


def test_an_output_that_is_the_same_whatever_the_weights_are_is_right_or_wrong(save: Save) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 8] x) => (float[2, 8] y)'
    found = verified(save(text + "{ a = MatMul(x, m)  b = Abs(a)  c = Neg(b)  y = Relu(c) }"))
    assert outcomes(found) == {Outcome.OK}


@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_nothing_is_divided_by_a_drawn_zero(save: Save, operator: str) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (uint8[64] x, uint8[64] z) => (uint8[64] y)'
    found = verified(save(text + f"{{ y = {operator}(x, z) }}"))
    assert outcomes(found) == {Outcome.OK}


def test_onnxruntime_rewrites_nothing(save: Save) -> None:
    text = """<ir_version: 7, opset_import: ["" : 12]> g (float x) => (float[1] y)
    <float root = {1.4142135}, float one = {1}, float[1] half = {0.5}>
    { d = Div(x, root)  e = Erf(d)  o = Add(one, e)  p = Mul(o, x)  y = Mul(p, half) }"""
    outputs = ModelReference(save(text))({"x": np.array(0.5, np.float32)})
    assert outputs["y"].shape == (1,)  # its fusion of Gelu would lose what the last constant adds


def test_inputs_that_onnxruntime_refuses_are_said_in_words(save: Save) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (int32[4] x, int32[4] z) => (int32[4] y)'
    reference = ModelReference(save(text + "{ y = Div(x, z) }"))
    with pytest.raises(WitnessError, match="Integer division by zero"):
        reference({"x": np.ones(4, np.int32), "z": np.zeros(4, np.int32)})


def test_a_model_that_cannot_be_loaded_is_said_by_whoever_waits(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []), ir_version=99), path)
    with ThreadPoolExecutor(1) as beside:
        witness = Witness(beside, path, FlatGraph((), {}, (), (), 17))
        with pytest.raises(WitnessError, match="cannot load"):
            witness._submit({}).result()
