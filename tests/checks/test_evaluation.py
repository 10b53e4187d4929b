"""Nodes of a graph are evaluated, and what ONNX Runtime says of the evaluator is told in one check."""

import numpy as np
import onnx

from wpk.checks.evaluation import Evaluation, Opinions
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.plan.plan import Outcome

X = np.array([[1.0, -2.5, 3.0]])


def node(operator: str, *outputs: str, **attributes: int) -> onnx.NodeProto:
    return onnx.helper.make_node(
        operator, ["x"], outputs or ["y"], name=f"the {operator}", **attributes
    )


def asked(opinions: Opinions, right: str, evaluated: str, opset: int = 18) -> None:
    evaluate = NodeEvaluator(node(evaluated), {"": opset})
    opinions.ask(node(right), [X], evaluate, opset)


def test_a_node_is_evaluated_by_the_version_of_its_graph() -> None:
    x = np.zeros((2, 3, 4))
    for opset, row in ((12, 12), (13, 4)):
        (y,) = Evaluation(opset, None).run(node("Softmax"), [x])
        np.testing.assert_allclose(y, np.full_like(x, 1 / row), rtol=1e-15)


def test_a_node_has_one_evaluator_that_its_first_output_names() -> None:
    nodes = Evaluation(18, None)
    negated, other = node("Neg", "a"), node("Abs", "b")
    assert nodes.of(negated) is nodes.of(negated)
    assert nodes.of(other) is not nodes.of(negated)
    assert nodes.run(negated, [X])[0].tolist() == (-X).tolist()
    assert nodes.run(other, [X])[0].tolist() == abs(X).tolist()
    masked = node("Dropout", "", "mask")
    assert nodes.of(masked) is nodes.of(masked)
    assert nodes.of(node("Neg", "mask")) is nodes.of(masked)


def test_every_node_that_is_evaluated_is_asked_about() -> None:
    opinions = Opinions()
    nodes = Evaluation(18, opinions)
    for operator in ("Neg", "Abs", "Neg"):
        nodes.run(node(operator, f"of {operator}"), [X])
    assert opinions.check().outcome is Outcome.OK
    assert opinions.check().detail == "2 kinds of nodes agree"


def test_versions_are_asked_about_one_by_one() -> None:
    opinions = Opinions()
    for opset in (12, 13, 12):
        asked(opinions, "Softmax", "Softmax", opset)
    assert opinions.check().detail == "2 kinds of nodes agree"


def test_the_first_difference_is_named_and_the_others_are_counted() -> None:
    opinions = Opinions()
    asked(opinions, "Neg", "Neg")
    asked(opinions, "Floor", "Ceil")
    check = opinions.check()
    assert check.outcome is Outcome.FAILED
    assert check.detail.startswith("'the Floor' (Floor): 1 of 3 elements")
    assert "more)" not in check.detail
    asked(opinions, "Abs", "Exp")
    asked(opinions, "Sign", "Exp")
    assert opinions.check().detail.startswith("'the Floor' (Floor)")
    assert opinions.check().detail.endswith(" (and 2 more)")


def test_where_onnx_runtime_says_nothing_the_outcome_is_open() -> None:
    opinions = Opinions()
    assert opinions.check().outcome is Outcome.OK
    nan = np.array([np.nan, 1.0])
    for operator in ("Relu", "GlobalMaxPool"):
        of = node(operator)
        x = nan if operator == "Relu" else nan[None, None]
        opinions.ask(of, [x], NodeEvaluator(of, {"": 18}), 18)
    check = opinions.check()
    assert check.outcome is Outcome.INCONCLUSIVE
    assert check.detail == (
        "0 kinds of nodes agree; ONNX Runtime cannot say of GlobalMaxPool, Relu"
    )
    asked(opinions, "Neg", "Neg")
    assert opinions.check().outcome is Outcome.OK
    assert "1 kinds of nodes agree; ONNX Runtime cannot say of" in opinions.check().detail
    asked(opinions, "Abs", "Neg")
    assert opinions.check().outcome is Outcome.FAILED
