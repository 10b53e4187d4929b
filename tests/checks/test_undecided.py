"""What errors let a comparison, a cast or an index choose, and what they may not change."""

import ml_dtypes
import numpy as np
import onnx
import pytest

from wpk.checks.body import BodyOutput, NodeBody
from wpk.checks.bounded import FLOAT64, KERNELS, Arithmetic, Ball, Call
from wpk.checks.compare import compare
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.dtypes import DType

OPSETS = {"": 24}
U = 2.0**-24


def error_of(
    text: str, *inputs: Ball, place: int = 0, arithmetic: Arithmetic = KERNELS
) -> list[float] | None:
    """The bound of a node's output, e.g. of ``y = Less(a, b)``."""
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 24]> g (float x) => (float y) {{ {text} }}'
    )
    evaluate = NodeEvaluator(model.graph.node[0], OPSETS)
    outputs = evaluate([each.value for each in inputs])
    error = bound_error(Call(evaluate, inputs, outputs, U, arithmetic, place))
    return None if error is None else error.tolist()


def near(*pairs: tuple[float, float]) -> Ball:
    """Values with their errors."""
    return Ball(np.array([value for value, _ in pairs]), np.array([error for _, error in pairs]))


def flags(text: str) -> Ball:
    """Booleans: T and F, in lower case where they may be either."""
    value, either = [c in "Tt" for c in text], [float(c.islower()) for c in text]
    return Ball(np.array(value), np.array(either) if any(either) else None)


@pytest.mark.parametrize("operator", ["Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"])
def test_a_comparison_is_undecided_where_both_errors_reach_across(operator: str) -> None:
    a = near((0.0, 0.01), (0.0, 0.01), (0.0, 0.01), (0.5, 0.0))
    b = near((0.015, 0.01), (0.025, 0.01), (0.0, 0.0), (0.5, 0.0))
    assert error_of(f"y = {operator}(a, b)", a, b) == [1.0, 0.0, 1.0, 0.0]


def test_a_comparison_of_exact_numbers_is_decided() -> None:
    assert error_of("y = Less(a, b)", Ball(np.zeros(2)), Ball(np.zeros(2))) is None


def test_infinities_are_compared_for_certain() -> None:
    a = near((np.inf, np.inf), (-np.inf, 0.1))
    assert error_of("y = Less(a, b)", a, Ball(np.zeros(2))) is None


@pytest.mark.parametrize(
    ("operator", "expected"),
    [("And", [1.0, 0.0, 1.0, 1.0, 0.0]), ("Or", [0.0, 1.0, 1.0, 1.0, 0.0])],
)
def test_logic_is_undecided_where_an_undecided_input_matters(
    operator: str, expected: list[float]
) -> None:
    assert error_of(f"y = {operator}(a, b)", flags("tttff"[:4] + "T"), flags("TFtfT")) == expected


def test_the_opposite_of_the_undecided_is_undecided() -> None:
    assert error_of("y = Not(a)", flags("TtFf")) == [0.0, 1.0, 0.0, 1.0]


def test_an_undecided_choice_may_be_either_branch() -> None:
    x, y = near((1.0, 0.1), (1.0, 0.1), (1.0, 0.1)), near((3.0, 0.2), (3.0, 0.2), (3.0, 0.2))
    error = error_of("y = Where(c, x, y)", flags("TFt"), x, y)
    assert error == pytest.approx([0.1, 0.2, 2.3])


def test_any_input_of_a_choice_may_err_alone() -> None:
    c, x, y = Ball(np.array([[True], [False]])), Ball(np.ones(3)), Ball(np.array(4.0))
    off = Ball(x.value, np.array([0.1, 0.2, 0.3]))
    assert error_of("y = Where(c, x, y)", c, off, y) == [[0.1, 0.2, 0.3], [0.0] * 3]
    far = Ball(y.value, np.array(0.5))
    assert error_of("y = Where(c, x, y)", c, x, far) == [[0.0] * 3, [0.5] * 3]
    either = Ball(c.value, np.array([[0.0], [1.0]]))
    assert error_of("y = Where(c, x, y)", either, x, y) == [[0.0] * 3, [3.0] * 3]


def test_the_same_infinity_in_both_branches_is_certain() -> None:
    both = Ball(np.full(1, -np.inf))
    assert error_of("y = Where(c, x, y)", flags("t"), both, both) is None


def test_a_cast_to_bool_is_undecided_near_zero() -> None:
    x = near((0.0, 0.0), (0.0, 0.1), (-0.05, 0.1), (0.2, 0.1), (-0.1, 0.1))
    assert error_of("y = Cast <to = 9> (x)", x) == [0.0, 1.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("to", [onnx.TensorProto.INT32, onnx.TensorProto.INT64])
def test_a_cast_to_an_integer_is_undecided_near_a_whole_number(to: int) -> None:
    x = near((2.98, 0.03), (2.9, 0.03), (0.0, 0.03), (3.0, 0.0))
    assert error_of(f"y = Cast <to = {to}> (x)", x) == [1.0, 0.0, 0.0, 0.0]


def test_a_cast_beyond_the_type_may_give_anything() -> None:
    x = Ball(np.array([255.9, 256.0, -0.9, -1.0, np.nan]))
    assert error_of("y = Cast <to = 2> (x)", x) == [0.0, np.inf, 0.0, np.inf, np.inf]


@pytest.mark.parametrize("operator", ["Floor", "Ceil", "Round", "Sign"])
def test_a_rounding_is_undecided_at_its_step(operator: str) -> None:
    step = {"Floor": 3.0, "Ceil": 3.0, "Round": 3.5, "Sign": 0.0}[operator]
    x = near((step + 0.01, 0.02), (step + 0.05, 0.02))
    assert error_of(f"y = {operator}(x)", x) in ([1.0, 0.0], [2.0, 0.0])


def test_an_undecided_boolean_counts_as_a_number() -> None:
    assert error_of("y = Cast <to = 1> (c)", flags("TtF")) == [0.0, 1.0, 0.0]


def test_integers_do_not_round() -> None:
    big = Ball(np.array([2**53 + 1, 5]))
    assert error_of("y = Add(a, a)", big, big) is None
    off = Ball(np.array([2**53 + 1, 5]), np.array([0.0, 1.0]))
    assert error_of("y = Add(a, b)", off, big) == [0.0, 1.0]


def test_the_error_of_an_integer_stays_within_its_type() -> None:
    x = Ball(np.array([255, 0], np.uint8), np.array([1.0, 1.0]))
    assert error_of("y = Cast <to = 1> (x)", x) == [1.0, 1.0]


def test_an_undecided_index_may_be_its_neighbours() -> None:
    x = near((0.0, 0.1), (1.0, 0.1), (5.0, 0.4))
    index = Ball(np.array([0, 1, -1]), np.array([0.0, 1.0, 1.0]))
    assert error_of("y = Gather(x, i)", x, index) == pytest.approx([0.1, 4.4, 4.4])
    assert error_of("y = Gather(x, i)", x, Ball(np.array([2, 0]))) == pytest.approx([0.4, 0.1])


def test_an_index_of_an_element_has_the_neighbours_of_its_axis() -> None:
    x = Ball(np.array([[0.0, 1.0, 3.0], [0.0, 10.0, 40.0]]))
    index = Ball(np.array([[1], [-2]]), np.array([[1.0], [0.0]]))
    assert error_of("y = GatherElements <axis = 1> (x, i)", x, index) == [[2.0], [0.0]]
    pairs = Ball(np.array([[0, 1], [1, -1]]), np.array([[0.0, 1.0], [0.0, 0.0]]))
    assert error_of("y = GatherND(x, i)", x, pairs) == [2.0, 0.0]


def test_ranks_are_undecided_among_neighbours_within_their_errors() -> None:
    x = near((1.0, 0.3), (5.0, 0.3), (1.5, 0.3), (5.0, 0.0), (9.0, 0.0))
    inf = np.inf
    assert error_of("v, y = TopK(x, k)", x, Ball(np.array([4])), place=1) == [0.0, inf, inf, inf]
    assert error_of("v, y = TopK(x, k)", x, Ball(np.array([4])), place=0) == [0.3] * 4
    assert error_of("y = ArgMax(x)", x) is None
    assert error_of("y = ArgMin <keepdims = 0> (x)", x) == inf
    far = near((1.0, 0.0), (1.05, 0.0), (1.1, 1.0), (7.0, 0.5))  # the third passes by both
    assert error_of("v, y = TopK <largest = 0> (x, k)", far, Ball(np.array([4])), place=1) == [
        *(inf, inf, inf, 0.0)
    ]
    exact = Ball(np.array([2.0, 2.0, 1.0]))
    assert error_of("y = ArgMax(x)", exact) is None


def test_what_is_written_has_the_errors_of_what_is_left() -> None:
    x, index = near((1.0, 0.1), (2.0, 0.2), (4.0, 0.4)), Ball(np.array([[1], [1]]))
    updates = near((8.0, 0.5), (3.0, 0.25))
    assert error_of("y = ScatterND(x, i, u)", x, index, updates) == [0.1, 0.25, 0.4]
    for kind in ("max", "min"):
        text = f'y = ScatterND <reduction = "{kind}"> (x, i, u)'
        assert error_of(text, x, index, updates) == [0.1, 0.5, 0.4]
    moving = Ball(np.array([[1], [1]]), np.array([[1.0], [0.0]]))
    assert error_of("y = ScatterND(x, i, u)", x, moving, updates) == [np.inf] * 3


def test_sums_and_products_of_updates_round() -> None:
    x, index = Ball(np.array([1.0, 2.0])), Ball(np.array([[1], [1], [1], [1]]))
    updates = Ball(np.array([3.0, -4.0, 5.0, 2.0]))
    added = error_of('y = ScatterND <reduction = "add"> (x, i, u)', x, index, updates)
    assert added == [0.0, 4 * U * 2.0 * 16.0]
    product = error_of('y = ScatterND <reduction = "mul"> (x, i, u)', x, index, updates)
    assert product == [0.0, 4 * U * 2.0 * 240.0]


def test_an_index_that_may_be_anything_chooses_anything() -> None:
    index = Ball(np.array([0]), np.array([np.inf]))
    assert error_of("y = Gather(x, i)", Ball(np.arange(3.0)), index) == [np.inf]


def test_as_many_neighbours_of_an_index_are_looked_at_as_its_error_says() -> None:
    x = Ball(np.array([1.0, 2.0, 4.0, 8.0, 16.0, 0.0]), np.array([0.0, 0, 0, 0, 0.5, 0]))
    index = Ball(np.array([2, 2, 2, -2]), np.array([0.0, 1.0, 2.0, 1.0]))
    assert error_of("y = Gather(x, i)", x, index) == [0.0, 4.0, 12.0 + 0.5, 16.0 + 0.5]


@pytest.mark.parametrize(("reach", "far"), [(16.0, 16.0), (17.0, np.inf)])
def test_an_index_is_looked_at_sixteen_steps_away(reach: float, far: float) -> None:
    index = Ball(np.array([3]), np.array([reach]))
    assert error_of("y = Gather(x, i)", Ball(np.arange(40.0)), index) == [far]


def test_an_index_has_the_neighbours_of_its_axis() -> None:
    x = Ball(np.array([[0.0, 1.0, 3.0, 7.0], [0.0, 10.0, 30.0, 70.0]]))
    index = Ball(np.array([2, -1]), np.array([1.0, 1.0]))
    assert error_of("y = Gather <axis = 1> (x, i)", x, index) == [[4.0, 4.0], [40.0, 40.0]]
    assert error_of("y = Gather <axis = -1> (x, i)", x, index) == [[4.0, 4.0], [40.0, 40.0]]
    row = Ball(np.array(0), np.array(1.0))
    assert error_of("y = Gather(x, i)", x, row) == [0.0, 9.0, 27.0, 63.0]


def test_every_part_has_its_own_error() -> None:
    x = near((1.0, 0.1), (2.0, 0.2), (3.0, 0.3), (4.0, 0.4))
    text = "y, z = Split <num_outputs = 2> (x)"
    assert error_of(text, x, place=0) == pytest.approx([0.1, 0.2])
    assert error_of(text, x, place=1) == pytest.approx([0.3, 0.4])


def test_every_input_of_a_concatenation_brings_its_errors() -> None:
    parts = Ball(np.ones(2)), near((1.0, 0.1), (2.0, 0.2))
    assert error_of("y = Concat <axis = 0> (a, b)", *parts) == [0.0, 0.0, 0.1, 0.2]


def test_the_largest_errs_as_its_own_candidates_do() -> None:
    x = Ball(np.array([[1.0, 2.0], [5.0, 3.0]]), np.array([[0.1, 0.2], [0.3, 0.0]]))
    for operator in ("ReduceMax", "ReduceMin"):
        text = f"y = {operator} <keepdims = 0> (x, a)"
        assert error_of(text, x, Ball(np.array([1]))) == pytest.approx([0.2, 0.3])


@pytest.mark.parametrize(
    "text",
    ["y = Exp(x)", "y = MatMul(x, x)", "y = Softmax(x)", "y = ReduceMean <keepdims = 0> (x)"],
)
def test_bounds_scale_with_the_arithmetic(text: str) -> None:
    x = Ball(np.random.default_rng(0).standard_normal((4, 4)))
    inputs = [x, x] if "MatMul" in text else [x]
    coarse = np.array(error_of(text, *inputs))
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 24]> g (float x) => (float y) {{ {text} }}'
    )
    evaluate = NodeEvaluator(model.graph.node[0], OPSETS)
    outputs = evaluate([each.value for each in inputs])
    fine = bound_error(Call(evaluate, inputs, outputs, FLOAT64.roundoff, FLOAT64))
    np.testing.assert_allclose(fine, coarse * 2.0**-29, rtol=1e-6)


@pytest.mark.parametrize(("arithmetic", "least"), [(KERNELS, 2.0**-149), (FLOAT64, 2.0**-1074)])
def test_what_is_less_than_the_smallest_number_may_be_nothing(
    arithmetic: Arithmetic, least: float
) -> None:
    x = Ball(np.array([0.0, -800.0]))
    error = error_of("y = Softmax(x)", x, arithmetic=arithmetic)
    assert error is not None
    assert error[1] == least


def test_float64_narrows_nowhere() -> None:
    x = Ball(np.array([1.1]))
    assert error_of("y = Cast <to = 10> (x)", x) == pytest.approx([2**-11 * 1.1], rel=1e-3)
    assert error_of("y = Cast <to = 10> (x)", x, arithmetic=FLOAT64) is None
    off = near((1.5, 0.25))
    assert error_of("y = Cast <to = 10> (x)", off, arithmetic=FLOAT64) == [0.25]


def stored(x: np.ndarray) -> BodyOutput:
    """Whether each row of a product is above zero."""
    function = onnx.parser.parse_function(
        """<opset_import: ["" : 24], domain: "wpk"> above (x, w) => (y)
        { p = MatMul(x, w)  z = Constant <value = float {0.0}> ()  y = Greater(p, z) }"""
    )
    body = NodeBody(
        onnx.helper.make_node("above", ["x", "w"], ["y"], domain="wpk"), function, OPSETS
    )
    (result,) = body([x, np.ones((2, 1), np.float32)], [1], 0.0, [DType.BOOL])
    return result


def test_a_boolean_behind_a_product_may_be_either_on_its_tie_alone() -> None:
    x = np.array([[1.0, -1.0], [1.0, -0.5], [-1.0, 0.5]], ml_dtypes.bfloat16)
    result = stored(x)
    assert result.memory.tolist() == [[False], [True], [False]]
    assert result.tolerance.tolist() == [[1.0], [0.0], [0.0]]
    for tie in (False, True):
        y = np.array([[tie], [True], [False]])
        assert compare(y, result.value, result.tolerance).passed
    y = np.array([[False], [False], [False]])
    assert compare(y, result.value, result.tolerance).wrong == 1


def test_a_body_rounds_at_its_casts_as_kernels_do() -> None:
    function = onnx.parser.parse_function(
        """<opset_import: ["" : 24], domain: "wpk"> whole (x) => (y)
        { h = Cast <to = 10> (x)  y = Floor(h) }"""
    )
    body = NodeBody(onnx.helper.make_node("whole", ["x"], ["y"], domain="wpk"), function, OPSETS)
    x = np.array([2.9999, 2.5, 1e6], np.float32)
    (result,) = body([x], [], 0.0, [DType.FP32])
    assert result.value.tolist() == [3.0, 2.0, np.inf]
    assert compare(np.array([2.0, 2.0, np.inf], np.float32), result.value, result.tolerance).passed
