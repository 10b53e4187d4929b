"""The float64 evaluator and ONNX Runtime agree on every operator; and it is told where they do not."""

from collections import Counter
from collections.abc import Callable, Iterator

import node_cases
import numpy as np
import pytest
from node_cases import NodeCase

from wpk.checks.float64_nodes import NodeEvaluator
from wpk.checks.second_opinion import Judgement, SecondOpinion, Verdict

KINDS = [
    node_cases.elementwise,
    node_cases.logic,
    node_cases.products,
    node_cases.pools,
    node_cases.reductions,
    node_cases.normalisations,
    node_cases.movement,
    node_cases.resizes,
]


def judged(case: NodeCase, opset: int) -> Judgement:
    node, opsets = case.node(), {"": opset}
    evaluate = NodeEvaluator(node, opsets)
    found = SecondOpinion(opsets).judge(node, case.inputs(), evaluate)
    assert found is not None
    return found


@pytest.mark.parametrize("cases", KINDS)
def test_evaluator_and_onnx_runtime_agree(cases: Callable[[], Iterator[NodeCase]]) -> None:
    found = Counter[Verdict]()
    for case in cases():
        for opset in {case.opsets[0], case.opsets[-1]}:
            judgement = judged(case, opset)
            assert judgement.verdict is not Verdict.DIFFERS, (case, judgement.why)
            found[judgement.verdict] += 1
    assert found[Verdict.CANNOT] <= found[Verdict.AGREES] / 20


WRONG = [
    (
        "Conv<pads = [1, 1, 1, 1]>(a, b)",
        "Conv<pads = [0, 0, 2, 2]>(a, b)",
        ((1, 2, 5, 5), (3, 2, 3, 3)),
    ),
    ("Softmax<axis = 1>(a)", "Softmax<axis = 0>(a)", ((4, 4),)),
    ("Transpose<perm = [1, 0, 2]>(a)", "Transpose<perm = [0, 1, 2]>(a)", ((3, 3, 2),)),
    ("Transpose<perm = [1, 0]>(a)", "Identity(a)", ((3, 4),)),
    ("Floor(a)", "Ceil(a)", ((9,),)),
    ("Less(a, b)", "LessOrEqual(a, b)", (np.ones(3, np.float32), np.ones(3, np.float32))),
    ("LayerNormalization<epsilon = 0.1>(a, b)", "LayerNormalization(a, b)", ((3, 8), (8,))),
    ('Gelu<approximate = "tanh">(a)', "Gelu(a)", ((99,),)),
    ("Cast<to = 7>(a)", "Cast<to = 1>(a)", ((9,),)),
]


@pytest.mark.parametrize(("right", "wrong", "given"), WRONG)
def test_an_evaluator_of_another_function_is_found(
    right: str, wrong: str, given: tuple[node_cases.Given, ...]
) -> None:
    case, other = (NodeCase(text, given, (23,)) for text in (right, wrong))
    opsets = {"": 23}
    evaluate = NodeEvaluator(other.node(), opsets)
    found = SecondOpinion(opsets).judge(case.node(), case.inputs(), evaluate)
    assert found is not None
    assert found.verdict is Verdict.DIFFERS
    assert found.why
    agreeing = SecondOpinion(opsets).judge(
        case.node(), case.inputs(), NodeEvaluator(case.node(), opsets)
    )
    assert agreeing == Judgement(Verdict.AGREES)


def test_each_kind_is_judged_once() -> None:
    witness = SecondOpinion({"": 18})

    def verdict(text: str, *given: node_cases.Given) -> Verdict | None:
        case = NodeCase(text, given, (18,))
        found = witness.judge(case.node(), case.inputs(), NodeEvaluator(case.node(), {"": 18}))
        return None if found is None else found.verdict

    assert verdict("Relu(a)", (2, 3)) is Verdict.AGREES
    assert verdict("Relu(a)", (2, 3)) is None
    assert verdict("Relu(a)", (3, 2)) is Verdict.AGREES
    assert verdict("LeakyRelu<alpha = 0.1>(a)", (2, 3)) is Verdict.AGREES
    assert verdict("LeakyRelu<alpha = 0.2>(a)", (2, 3)) is Verdict.AGREES
    assert verdict("Reshape(a, b)", (2, 3), np.array([3, 2])) is Verdict.AGREES
    assert verdict("Reshape(a, b)", (2, 3), np.array([6, 1])) is Verdict.AGREES
    assert verdict("Reshape(a, b)", (2, 3), np.array([6, 1])) is None


@pytest.mark.parametrize(
    ("text", "given", "why"),
    [
        ("Div(a, b)", (np.array([1, 2]), np.array([1, 0])), "divided by zero"),
        ("MaxPool<kernel_shape = [2]>(a)", (np.full((1, 1, 3), np.nan),), "largest of NaN"),
        ("IsNaN(a)", (np.ones(2, np.int64),), "ONNXRuntimeError"),
    ],
)
def test_where_onnx_runtime_is_no_witness_it_says_why(
    text: str, given: tuple[np.ndarray, ...], why: str
) -> None:
    found = judged(NodeCase(text, given, (18,)), 18)
    assert found.verdict is Verdict.CANNOT
    assert why in found.why


def test_narrow_types_are_judged_as_fp32() -> None:
    case = NodeCase("Cast<to = 10>(a)", (np.array([1.00001, 70000.0, 1e-9]),), (18,))
    assert judged(case, 18).verdict is Verdict.AGREES
