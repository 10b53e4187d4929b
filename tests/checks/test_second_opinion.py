"""The float64 evaluator and ONNX Runtime agree on every operator; and it is told where they do not."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support.networks import node_cases
from support.networks.node_cases import NodeCase, ints, scalar

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


@pytest.mark.parametrize(
    "text",
    [
        *("Max(b, a)", "Min(b, a)", 'Clip(a, "", b)', "Relu(a)", "ReduceMax(a)", "ReduceMin(a)"),
        *("MaxPool<kernel_shape = [2]>(a)", "GlobalMaxPool(a)"),
    ],
)
def test_one_nan_is_enough_for_the_largest_to_be_undecidable(text: str) -> None:
    a = np.array([[[1.0, 2.0, np.nan]]], np.float32)
    b = np.array(2.0, np.float32)
    found = judged(NodeCase(text, (a, b), (18,)), 18)
    assert found.verdict is Verdict.CANNOT
    assert "largest of NaN" in found.why
    finite = NodeCase(text, (np.nan_to_num(a), b), (18,))
    assert judged(finite, 18).verdict is Verdict.AGREES


@pytest.mark.parametrize("text", ["Neg(a)", "Add(a, a)", "Sigmoid(a)"])
def test_nan_goes_through_other_operators_in_both(text: str) -> None:
    a = np.array([1.0, np.nan], np.float32)
    assert judged(NodeCase(text, (a,), (18,)), 18).verdict is Verdict.AGREES


@pytest.mark.parametrize("operator", ["Div", "Mod"])
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_only_an_integer_divisor_of_zero_is_undecidable(operator: str, dtype: type) -> None:
    def verdict(dividend: list[int], divisor: list[int]) -> Verdict:
        given = (np.array(dividend, dtype), np.array(divisor, dtype))
        return judged(NodeCase(f"{operator}(a, b)", given, (18,)), 18).verdict

    assert verdict([5, 6, 7], [2, 0, 3]) is Verdict.CANNOT
    assert verdict([5, 0, 7], [2, 4, 3]) is Verdict.AGREES


def test_floating_point_may_be_divided_by_zero() -> None:
    given = (np.array([5.0, -6.0], np.float32), np.array([2.0, 0.0], np.float32))
    assert judged(NodeCase("Div(a, b)", given, (18,)), 18).verdict is Verdict.AGREES


@pytest.mark.parametrize(("off", "verdict"), [(0.95, Verdict.AGREES), (1.2, Verdict.DIFFERS)])
def test_onnx_runtime_is_held_to_fp32_with_four_bits_less(off: float, verdict: Verdict) -> None:
    def node(alpha: float) -> NodeCase:
        return NodeCase(f"LeakyRelu<alpha = {alpha!r}>(a)", (-np.ones(1, np.float32),), (18,))

    case, other = node(0.5), node(0.5 + off * 2.0**-21)
    found = SecondOpinion({"": 18}).judge(
        case.node(), case.inputs(), NodeEvaluator(other.node(), {"": 18})
    )
    assert found is not None
    assert found.verdict is verdict


class _Flushing(NodeEvaluator):
    """Every number below 1e-30 is zero."""

    def __call__(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        return [np.where(each < 1e-30, 0.0, each) for each in super().__call__(arrays)]


@pytest.mark.parametrize(
    ("exponent", "verdict"),
    [(-87.4, Verdict.AGREES), (-86.5, Verdict.DIFFERS)],  # 0.94 and 2.3 times 2^-126
)
def test_what_is_less_than_the_smallest_normal_number_may_be_zero(
    exponent: float, verdict: Verdict
) -> None:
    case = NodeCase("Softmax(a)", (np.array([[0.0, exponent]], np.float32),), (18,))
    found = SecondOpinion({"": 18}).judge(
        case.node(), case.inputs(), _Flushing(case.node(), {"": 18})
    )
    assert found is not None
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("right", "wrong", "given", "outputs"),
    [
        ("Add(a, b)", "Mul(a, b)", (ints(5, 2), ints(1, 2)), 1),  # one less, once
        (
            "MaxPool<kernel_shape = [2, 3]>(a)",
            "MaxPool<kernel_shape = [2, 3], storage_order = 1>(a)",
            ((2, 3, 4, 5),),
            2,
        ),
    ],
)
def test_every_integer_of_every_output_counts(
    right: str, wrong: str, given: tuple[node_cases.Given, ...], outputs: int
) -> None:
    case, other = (NodeCase(text, given, (18,), outputs) for text in (right, wrong))
    found = SecondOpinion({"": 18}).judge(
        case.node(), case.inputs(), NodeEvaluator(other.node(), {"": 18})
    )
    assert found is not None
    assert found.verdict is Verdict.DIFFERS
    assert f"output {outputs - 1}" in found.why
    assert judged(case, 18).verdict is Verdict.AGREES


@pytest.mark.parametrize(("count", "kinds"), [(64, 2), (65, 1)])
def test_few_integers_are_parameters_and_many_are_data(count: int, kinds: int) -> None:
    witness, a, found = SecondOpinion({"": 18}), np.ones(3, np.float32), 0
    for index in (0, 2):
        case = NodeCase("Gather(a, b)", (a, np.full(count, index)), (18,))
        judgement = witness.judge(case.node(), case.inputs(), NodeEvaluator(case.node(), {"": 18}))
        found += judgement is not None
    assert found == kinds


def test_numbers_and_missing_inputs_make_kinds_as_they_should() -> None:
    witness = SecondOpinion({"": 18})

    def is_new(text: str, *given: np.ndarray) -> bool:
        case = NodeCase(text, given, (18,))
        evaluate = NodeEvaluator(case.node(), {"": 18})
        return witness.judge(case.node(), case.inputs(), evaluate) is not None

    one = np.ones(3, np.float32)
    assert is_new("Clip(a, b)", one, scalar(0.5))
    assert not is_new("Clip(a, b)", 2 * one, scalar(0.25))
    assert is_new('Clip(a, "", b)', one, scalar(0.5))
    resized, x = 'Resize(a, "", b)', np.ones(5, np.float32)
    assert is_new(resized, x, np.array([1.5], np.float32))
    assert is_new(resized, x, np.array([1.45], np.float32))
    assert not is_new(resized, x, np.array([1.45], np.float32))
    assert is_new("Neg(a)", np.ones(3, np.int32))
    assert is_new("Neg(a)", np.ones(3, np.int64))


def test_a_model_with_another_domain_is_judged() -> None:
    case = NodeCase("Neg(a)", ((2, 3),), (18,))
    opsets = {"": 18, "wpk": 1}
    found = SecondOpinion(opsets).judge(
        case.node(), case.inputs(), NodeEvaluator(case.node(), opsets)
    )
    assert found == Judgement(Verdict.AGREES)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_values_of_other_types_are_judged_as_fp32(dtype: Any) -> None:
    x = np.linspace(-3, 3, 7).astype(dtype)
    assert judged(NodeCase("Exp(a)", (x,), (18,)), 18).verdict is Verdict.AGREES


@pytest.mark.parametrize("to", [10, 11, 16])
@pytest.mark.parametrize("narrows", [False, True])
def test_an_evaluator_may_round_where_a_cast_does(to: int, narrows: bool) -> None:
    """As kernels do; ONNX Runtime is given a cast to fp32."""
    case = NodeCase(f"Cast<to = {to}>(a)", (np.array([1.0001, 2.0003, 7e-5]),), (18,))
    evaluate = NodeEvaluator(case.node(), {"": 18}, narrows=narrows)
    found = SecondOpinion({"": 18}).judge(case.node(), case.inputs(), evaluate)
    assert found == Judgement(Verdict.AGREES)


def test_a_number_that_is_that_of_a_type_stays() -> None:
    case = NodeCase("SpaceToDepth<blocksize = 10>(a)", ((2, 1, 20, 10),), (18,))
    assert judged(case, 18).verdict is Verdict.AGREES
