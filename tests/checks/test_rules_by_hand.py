"""Error bounds of single nodes against what their formulas give by hand."""

from typing import Any

import numpy as np
import onnx
import pytest

from wpk.checks.bounded import FLOAT64, KERNELS, Arithmetic, Ball, Call, integer_limits
from wpk.checks.bounds.sums import SAFETY
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.checks.second_opinion import RUNTIME

U = 2.0**-24
OTHER_FORMS = Arithmetic(U, 2.0**-149, narrows=True, other_forms=True)


def error_of(
    text: str, *inputs: Any, place: int = 0, arithmetic: Arithmetic = KERNELS
) -> np.ndarray | None:
    """The bound of a node's output; an input that is no `Ball` is exact."""
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 22]> g (float x) => (float y) {{ {text} }}'
    )
    given = [v if v is None or isinstance(v, Ball) else Ball(np.array(v)) for v in inputs]
    evaluate = NodeEvaluator(model.graph.node[0], {"": 22})
    outputs = evaluate([None if each is None else each.value for each in given])
    return bound_error(Call(evaluate, given, outputs, U, arithmetic, place))


def errs(values: object, *errors: float) -> Ball:
    """Numbers with their errors."""
    return Ball(np.array(values, np.float64), np.array(errors))


def test_arithmetics_are_those_of_their_types() -> None:
    for arithmetic, dtype in ((KERNELS, np.float32), (FLOAT64, np.float64)):
        assert arithmetic.roundoff == np.finfo(dtype).eps / 2
        assert arithmetic.smallest == np.finfo(dtype).smallest_subnormal
    assert (RUNTIME.roundoff, RUNTIME.smallest) == (16 * U, np.finfo(np.float32).tiny)
    assert (KERNELS.narrows, FLOAT64.narrows, RUNTIME.narrows) == (True, False, True)


def test_limits_of_integers_are_numbers_that_float64_has() -> None:
    assert integer_limits(np.dtype(np.int8)) == (-128.0, 127.0)
    assert integer_limits(np.dtype(np.uint32)) == (0.0, 2.0**32 - 1)
    assert integer_limits(np.dtype(np.int64)) == (-(2.0**63), 2.0**63 - 1024)
    assert integer_limits(np.dtype(np.uint64)) == (0.0, 2.0**64 - 2048)


X = [-2.5, 0.75, 3.0]


@pytest.mark.parametrize(
    ("operators", "own"),
    [
        (["LeakyRelu"], lambda x, y: abs(y)),
        (["Reciprocal", "Exp", "Erf", "Tanh"], lambda x, y: 8 * abs(y)),
        (["Gelu", "Mish", "HardSwish", "Softsign"], lambda x, y: 8 * (abs(y) + abs(x))),
        (["Elu", "Selu", "Sigmoid", "HardSigmoid", "Softplus", "Sin", "Cos"], lambda x, y: 8 * (abs(y) + 1)),
    ],
)  # fmt: skip
def test_a_function_of_an_exact_number_errs_by_its_own_rounding(operators: Any, own: Any) -> None:
    x = np.array(X)
    for operator in operators:
        text = f"y = {operator}(x)"
        model = onnx.parser.parse_model(
            f'<ir_version: 10, opset_import: ["" : 22]> g (float x) => (float y) {{ {text} }}'
        )
        y = np.asarray(NodeEvaluator(model.graph.node[0], {"": 22})([x])[0])
        np.testing.assert_allclose(error_of(text, X), U * own(x, y), rtol=1e-12)


@pytest.mark.parametrize("operator", ["Abs", "Neg", "Sign", "Floor", "Ceil", "Round", "Relu"])
def test_a_choice_of_an_exact_number_is_exact(operator: str) -> None:
    assert error_of(f"y = {operator}(x)", X) is None


def test_sums_err_by_their_terms_and_not_by_what_is_left() -> None:
    found = error_of("y = Sum(a, b, c)", [1.0, 5.0], [-1.0, 2.0], [0.5, -8.0])
    assert found is not None
    assert found.tolist() == [2.5 * U, 15 * U]
    found = error_of("y = Sum(a, b)", errs([1.0, 2.0], 0.25, 0), errs([1.0, 2.0], 0.5, 0.125))
    assert found == pytest.approx([0.75, 0.125], rel=1e-5)


def test_infinity_has_no_error() -> None:
    found = error_of("y = Exp(x)", errs([np.inf, 1e3, 0.0, -np.inf], 0.5, 0.5, 0.5, 0.5))
    assert found is not None
    assert found[[0, 1, 3]].tolist() == [0.0, 0.0, 0.0]
    assert found[2] == pytest.approx(np.exp(0.5) - 1, rel=1e-5)


@pytest.mark.parametrize("operator", ["Relu", "Max", "Min", "Clip"])
def test_a_limit_cuts_no_error_off_where_another_form_is_allowed(operator: str) -> None:
    text = "y = Relu(x)" if operator == "Relu" else f"y = {operator}(x, l)"
    limits: tuple[Any, ...] = () if operator == "Relu" else (0.0,)
    side = -1.0 if operator == "Min" else 1.0
    x = errs([-2.0 * side, 0.0625 * side, 3.0 * side], 0.5, 0.25, 0.125)
    assert error_of(text, x, *limits) == pytest.approx([0.0, 0.25, 0.125])
    wide = error_of(text, x, *limits, arithmetic=OTHER_FORMS)
    assert wide == pytest.approx([0.5, 0.25, 0.125])


def test_dropout_passes_its_data_and_a_mask_of_ones() -> None:
    x = errs([1.0, 2.0], 0.5, 0.25)
    for place, error in ((0, [0.5, 0.25]), (1, None)):
        found = error_of("y, m = Dropout(x)", x, place=place)
        assert (None if found is None else found.tolist()) == error


def test_what_no_kernel_computes_errs_as_other_inputs_would_have_it() -> None:
    found = error_of("y = Celu(x)", errs([0.0, 1.0, 0.0], 0.01, 0, 0.02))
    assert found is not None
    largest = SAFETY * 0.02
    own = 8 * U * np.array([0.0, 1.0, 0.0])
    np.testing.assert_allclose(found, largest + own, rtol=1e-4)
    found = error_of("y = Celu(x)", [0.0, 1.0])  # the second may be taken for what lies 8 u away
    assert found is not None
    np.testing.assert_allclose(found, [SAFETY * 8 * U, (SAFETY + 1) * 8 * U], rtol=1e-4)


def test_errors_of_random_signs_do_not_add_up() -> None:
    sums = 'y = Einsum <equation = "i,ij->j"> (x, a)'
    found = error_of(sums, errs([0.0] * 100, *[0.1] * 100), np.triu(np.ones((100, 100))))
    assert found is not None
    assert SAFETY * 0.1 * 3 < found.max() < SAFETY * 0.1 * 50


def test_what_no_kernel_computes_errs_by_its_numbers_wherever_they_stand() -> None:
    step = Ball(np.array(1.0), np.array(0.1))
    found = error_of("y = Range(s, e, d)", np.array(0.0), np.array(1.5), step)
    assert found is not None
    np.testing.assert_allclose(found, SAFETY * 0.1 + 8 * U * np.array([0.0, 1.0]), rtol=1e-5)
    found = error_of("y, i = Unique (x)", errs([1.0, 1.1], 0.2, 0.2), place=1)
    assert found is not None
    assert found.tolist() == [SAFETY, SAFETY]


def test_the_place_of_the_largest_is_any_where_another_may_be_as_large() -> None:
    places = "y, i = MaxPool <kernel_shape = [2], strides = [2]> (x)"
    x = Ball(
        np.array([[[1.0, 1.1, 3.0, 2.0, 5.0, 5.0]]]), np.array([[[0.2, 0.0, 0.4, 0.4, 0.0, 0.0]]])
    )
    found = error_of(places, x, place=1)
    assert found is not None
    assert found.tolist() == [[[np.inf, 0.0, 0.0]]]
    assert error_of(places, [[[1.0, 1.0 + U]]], place=1) is None


def test_what_is_unpooled_errs_where_it_is_written() -> None:
    unpooled = "y = MaxUnpool <kernel_shape = [2], strides = [2]> (x, i)"
    x = Ball(np.array([[[3.0, -2.0]]]), np.array([[[0.1, 0.2]]]))
    found = error_of(unpooled, x, np.array([[[3, 0]]]))
    assert found is not None
    assert found.tolist() == [[[0.2, 0.0, 0.0, 0.1]]]
    assert error_of(unpooled, x.value, np.array([[[3, 0]]])) is None
    moved = error_of(unpooled, x.value, Ball(np.array([[[3, 0]]]), np.ones((1, 1, 2))))
    assert moved is not None
    assert np.isinf(moved).all()


def test_running_sums_and_products_round_as_their_rows_are_long() -> None:
    x = np.array([3.0, -2.0, 0.5, 4.0])
    found = error_of("y = CumSum(x, a)", x, np.array(0))
    assert found is not None
    np.testing.assert_allclose(found, SAFETY * U * 2.0 * np.array([3.0, 5.0, 5.5, 9.5]), rtol=1e-6)
    found = error_of("y = CumSum <reverse = 1> (x, a)", errs(x, 0.0, 0.1, 0.0, 0.2), np.array(0))
    assert found is not None
    np.testing.assert_allclose(found, [0.3, 0.3, 0.2, 0.2], rtol=1e-4)
    found = error_of("y = CumProd(x, a)", errs(x, 0.0, 0.1, 0.0, 0.0), np.array(0))
    assert found is not None
    np.testing.assert_allclose(found, [SAFETY * U * 4.0 * 3.0, 0.3, 0.15, 0.6], rtol=1e-4)
    assert error_of("y = CumSum(x, a)", np.array([5, 7]), np.array(0)) is None


def test_a_comparison_reaches_as_far_as_both_errors() -> None:
    a, b = (
        errs([3.0, -1, 0, 5, 5], 0.01, 1, 0.5, 0.5, 0.5),
        errs([3.015, 1, 1, 6, 4], 0.01, 0.5, 0.5, 0, 1),
    )
    for operator in ("Less", "Equal"):
        found = error_of(f"y = {operator}(a, b)", a, b)
        assert found is not None
        assert found.tolist() == [1.0, 0.0, 1.0, 0.0, 1.0]


def test_a_choice_between_exact_numbers_is_off_by_all_that_lies_between() -> None:
    either = Ball(np.array([True, False, True]), np.array([1.0, 1.0, 0.0]))
    found = error_of("y = Where(c, x, y)", either, [1.0, 2, 3], [5.0, -1, 7])
    assert found is not None
    assert found.tolist() == [4.0, 3.0, 0.0]
    found = error_of("y = Where(c, x, y)", [True, False], errs([1.0, 2], 0.5, 0.25), [5.0, -1])
    assert found is not None
    assert found.tolist() == [0.5, 0.0]


def test_a_number_as_large_as_its_error_may_be_false() -> None:
    found = error_of("y = Cast <to = 9> (x)", errs([0.5, -0.5, 0.5, 0.0], 0.5, 0.5, 0.25, 0))
    assert found is not None
    assert found.tolist() == [1.0, 1.0, 0.0, 0.0]


def test_a_number_that_reaches_no_further_than_its_type_has_an_integer() -> None:
    found = error_of("y = Cast <to = 2> (x)", errs([254.5, 255.5, 0.5, -0.5], 1, 1, 1, 1))
    assert found is not None
    assert found.tolist() == [1.0, np.inf, 1.0, np.inf]


def test_what_errs_may_round_to_one_side_while_the_reference_rounds_to_the_other() -> None:
    found = error_of("y = Cast <to = 10> (x)", errs([1.5, -3.0], 0.01, 0.0))
    np.testing.assert_allclose(
        found, [0.01 + 2 * (1.5 * 2.0**-11 + 2.0**-25), 2 * (3 * 2.0**-11 + 2.0**-25)]
    )
    found = error_of("y = Cast <to = 10> (x)", errs([1.5, -3.0], 0.01, 0.0), arithmetic=FLOAT64)
    np.testing.assert_allclose(found, [0.01, 0.0])
