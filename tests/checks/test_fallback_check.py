"""Steps that ONNX Runtime executes, checked: right ones, wrong ones, and those that nobody else executes."""

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.networks.fallback_models import LEFT_ALONE, lstm_model, text_model

import wpk
from wpk.backends import open_device
from wpk.checks import Scope, prove_passes, verify
from wpk.checks.evaluation import Evaluation, EvaluationError
from wpk.checks.fallback_check import NAME
from wpk.dtypes import Precision
from wpk.lowering.flat_graph import read_names
from wpk.lowering.model import lower_model
from wpk.plan import Check, Outcome, PlanBundle
from wpk.plan.plan_file import read_plan
from wpk.progress import silent

pytestmark = pytest.mark.usefixtures("one_cubin")

TURNED = """g (float[3, 10] x) => (float[3, 10] y) <int64[10] lens = {3, 2, 1, 1, 2, 3, 3, 2, 1, 1}>
    { a = Relu (x)  y = ReverseSequence<time_axis = 0, batch_axis = 1> (a, lens) }"""


def optimized(model: onnx.ModelProto, folder: Path, check: str) -> tuple[Path, PlanBundle]:
    path = folder / "m.onnx"
    onnx.save(model, path)
    wpk.optimize(
        *(path, folder / "m.plan"),
        target="h200",
        search="static",
        check=check,
        skip_passes=LEFT_ALONE,
    )
    return path, read_plan(folder / "m.plan")


def handed_checks(bundle: PlanBundle) -> list[Check]:
    steps = [step for step in bundle.plan.steps if step.fallback is not None]
    return [check for step in steps for check in step.evidence.checks]


def test_a_step_that_computes_something_else_is_found(tmp_path: Path) -> None:
    path, bundle = optimized(text_model(TURNED), tmp_path, "off")
    ((digest, data),) = bundle.models.items()
    model = onnx.load_model_from_string(data)
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.full(10, 2), "lens"))
    wrong = model.SerializeToString()
    index = next(i for i, step in enumerate(bundle.plan.steps) if step.fallback is not None)
    step = bundle.plan.steps[index]
    problem = replace(step.operator.problem, model=hashlib.sha256(wrong).hexdigest())
    step = replace(step, operator=replace(step.operator, problem=problem))
    steps = (*bundle.plan.steps[:index], step, *bundle.plan.steps[index + 1 :])
    forged = replace(bundle, plan=replace(bundle.plan, steps=steps), models={problem.model: wrong})
    lowered = lower_model(path, {}, Precision.FP32, LEFT_ALONE, fallback=True)
    operators = (
        *lowered.program.operators[:index],
        step.operator,
        *lowered.program.operators[index + 1 :],
    )
    lowered = replace(lowered, program=replace(lowered.program, operators=operators))
    proof = prove_passes(lowered, Scope(quick=True, seeds=1), silent)
    with open_device("cpu") as device:
        outcome = verify(forged, proof, device, silent)
    (found,) = outcome.of(step.operator.name)
    assert (found.name, found.outcome) == (NAME, Outcome.FAILED)
    assert any(check.failed for check in outcome.whole)
    assert digest != problem.model


def test_what_onnxs_reference_leaves_out_is_not_checked_independently(tmp_path: Path) -> None:
    _, bundle = optimized(lstm_model(), tmp_path, "quick")
    checks = handed_checks(bundle)
    assert len(checks) == 2  # a direction each
    for check in checks:
        assert check.outcome is Outcome.INCONCLUSIVE
        assert "not checked independently: onnx's reference does not execute LSTM" in check.detail
        assert "an LSTM whose input and forget gates are coupled" in check.detail
    # ONNX Runtime on the untouched model agrees all the same.
    assert [each.outcome for each in bundle.plan.checks] == [Outcome.OK, Outcome.OK]


def test_random_numbers_are_said_to_be_no_witnesses(tmp_path: Path) -> None:
    text = """g (float[64] x) => (float[64] y, float[64] z)
        { r = RandomNormalLike (x)  y = Add (r, x)  z = Exp (x) }"""
    _, bundle = optimized(text_model(text), tmp_path, "quick")
    (check,) = handed_checks(bundle)
    assert check.outcome is Outcome.INCONCLUSIVE
    assert "RandomNormalLike: its numbers are drawn" in check.detail
    whole = bundle.plan.checks[-1]
    assert (whole.outcome, "draws random numbers" in whole.detail) == (Outcome.INCONCLUSIVE, True)


def test_drawn_inputs_that_nobody_can_use_are_inconclusive(tmp_path: Path) -> None:
    # Sizes are drawn as 0 and 1, and the shape must have as many elements as x.
    text = "g (float[6] x, int64[2] s) => (float[a, b] y) { r = Relu (x)  y = Reshape (r, s) }"
    _, bundle = optimized(text_model(text), tmp_path, "quick")
    assert {check.outcome for check in bundle.plan.checks} == {Outcome.INCONCLUSIVE}
    with wpk.load(tmp_path / "m.plan", device="cpu") as engine:
        y = engine.run({"x": np.arange(6, dtype=np.float32), "s": np.array([2, 3])})["y"]
    np.testing.assert_array_equal(y, np.arange(6).reshape(2, 3))


def loop(trips: str, condition: str, rounds: int) -> list[np.ndarray]:
    text = f"""g (float[2] x, int64 m, bool c) => (float[2] y, float[r, 2] z)
        {{ y, z = Loop ({trips}, {condition}, x) <body = b (int64 i, bool k, float[2] v) =>
            (bool d, float[2] w, float[2] s)
            {{ two = Constant<value_int = {rounds - 1}> ()  d = Less (i, two)  w = Add (v, v)  s = Add (v, x) }}> }}"""
    node = text_model(text).graph.node[0]
    given = {"x": np.array([1.0, 3.0]), "m": np.array(4), "c": np.array(True)}
    inputs = [given[name] if name else None for name in read_names(node)]
    return Evaluation(17, None).run(node, inputs)


@pytest.mark.parametrize(
    ("trips", "condition", "rounds"), [("m", "c", 9), ("m", "c", 2), ("m", "", 3), ("", "c", 3)]
)
def test_a_loop_stacks_what_its_rounds_give(trips: str, condition: str, rounds: int) -> None:
    x, done = np.array([1.0, 3.0]), min(rounds, 4) if trips else rounds
    y, z = loop(trips, condition, rounds)
    np.testing.assert_array_equal(y, x * 2**done)
    np.testing.assert_array_equal(z, [x * 2**number + x for number in range(done)])


def test_what_nobody_executes_is_said_with_both_reasons() -> None:
    node = onnx.helper.make_node("Reshape", ["x", "s"], ["y"], name="bad")
    with pytest.raises(EvaluationError, match=r"nobody executes 'bad' \(Reshape\).*ONNX Runtime: "):
        Evaluation(17, None).run(node, [np.ones(6), np.array([4, 4])])
