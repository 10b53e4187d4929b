"""Floors lie nowhere above the error bounds that they stand for, and accept nothing that these refuse."""

from fractions import Fraction
from math import sqrt

import numpy as np
import onnx
import pytest

from wpk.checks import floors
from wpk.checks.body import NodeBody
from wpk.checks.bounded import Ball, Call, Floats, U
from wpk.checks.bounds import sums
from wpk.checks.compare import compare, compare_by_floor
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.checks.floors import has_floors, least_error
from wpk.dtypes import DType

OPSETS = {"": 21}
K = 300  # of which 8 sqrt(K) are not half

BODIES = {
    "product": "(x, w, b) => (y) { p = MatMul(x, w) y = Add(p, b) }",
    "gelu": "(x, w, b) => (y) { p = MatMul(x, w) q = Add(p, b) y = Gelu(q) }",
    "normed": """(x, w, b) => (y) { n = LayerNormalization(x, b) h = Cast<to = 10>(n) f = Cast<to = 1>(h)
        p = MatMul(f, w) y = Gelu(p) }""",
    "silu": "(x, w, b) => (y) { p = MatMul(x, w) s = Sigmoid(p) y = Mul(p, s) }",
    "tanh": "(x, w, b) => (y) { p = MatMul(x, w) t = Tanh(p) e = Exp(t) y = Max(e, b) }",
    "attention": """(x, w, b) => (y) { p = MatMul(x, w) s = Softmax<axis = -1>(p) h = Cast<to = 10>(s)
        f = Cast<to = 1>(h) q = MatMul(f, w) r = Relu(q) y = Sub(b, r) }""",
    "gathered": """(x, w, b) => (y) { p = MatMul(x, w) i = Constant<value_ints: ints = [2, 0, 1, 2]>()
        g = Gather<axis = 1>(p, i) y = Add(g, b) }""",
    "moments": """(x, w, b) => (y) { p = MatMul(x, w) q = Mul(p, p) c = Clip(q) r = Sqrt(c) y = Div(r, b) }""",
}


def _arrays(scale: float, seed: int) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((3, 5, K)) * scale, rng.standard_normal((K, K)) / sqrt(K)
    x[0, 0], x[0, 1, ::2] = 0.0, 0.0
    b = rng.standard_normal(K) * scale
    b[:7] = 0.0
    return [each.astype(np.float16) for each in (x, w, b)]


def _body(text: str) -> NodeBody:
    function = onnx.parser.parse_function(f'<opset_import: ["" : 21], domain: "wpk"> f {text}')
    call = onnx.helper.make_node("f", [*function.input], [*function.output], domain="wpk")
    return NodeBody(call, function, OPSETS)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("name", BODIES)
def test_no_element_of_a_body_has_a_floor_above_its_tolerance(name: str, scale: float) -> None:
    asked = _arrays(scale, len(name)), (1, 2), U, [DType.FP32]
    (whole,), least = _body(BODIES[name])(*asked), _body(BODIES[name]).at_least(*asked)
    assert least is not None
    (floor,) = least
    np.testing.assert_array_equal(floor.value, whole.value)
    np.testing.assert_array_equal(floor.memory, whole.memory)
    known = np.isfinite(whole.tolerance)
    assert known.mean() > 0.9
    assert (floor.tolerance <= whole.tolerance)[known].all()
    assert np.median(floor.tolerance[known] / whole.tolerance[known]) > 0.01  # and it is of use


def test_convolutions_and_their_groups() -> None:
    rng = np.random.default_rng(0)
    for channels, groups in ((96, 1), (96, 4)):
        x = rng.standard_normal((2, channels, 6, 5)).astype(np.float16)
        w = rng.standard_normal((8, channels // groups, 3, 3)).astype(np.float16)
        body = _body(f"(x, w) => (y) {{ c = Conv<group = {groups}>(x, w) y = Relu(c) }}")
        asked = [x, w], (1,), 0.0, [DType.FP16]
        (whole,), least = body(*asked), body.at_least(*asked)
        assert least is not None
        assert (least[0].tolerance <= whole.tolerance).all()


UNARY = ["Exp", "Gelu", "HardSigmoid", "HardSwish", "Relu", "Sigmoid", "Sqrt", "Tanh", "Erf"]


@pytest.mark.parametrize("op", UNARY)
def test_floors_of_less_errors_lie_below_bounds_at_every_argument(op: str) -> None:
    """Slopes included: over all arguments, and errors from the least to those as large as the arguments."""
    node = onnx.helper.make_node(op, ["x"], ["y"])
    evaluate, x = NodeEvaluator(node, OPSETS), np.linspace(-12.0, 12.0, 4801)
    x = x[x > 0] if op == "Sqrt" else x
    outputs = evaluate([x])
    for size in 10.0 ** np.arange(-12, 2, 0.5):
        error = np.full(x.shape, size)
        bound = bound_error(Call(evaluate, [Ball(x, error)], outputs, U))
        assert bound is not None
        for part in (1.0, 0.3, 1e-3):
            floor = least_error(Call(evaluate, [Ball(x, part * error)], outputs, U))
            assert floor is not None
            assert (floors.MARGIN * floor <= bound).all(), (op, size, part)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_floors_of_two_operands(op: str) -> None:
    rng = np.random.default_rng(1)
    evaluate = NodeEvaluator(onnx.helper.make_node(op, ["a", "b"], ["y"]), OPSETS)
    a, b = (rng.standard_normal(20000) * 10.0 ** rng.integers(-6, 6, 20000) for _ in range(2))
    first, second = (np.abs(each) * 10.0 ** rng.uniform(-9, 1, 20000) for each in (a, b))
    outputs = evaluate([a, b])
    bound = bound_error(Call(evaluate, [Ball(a, first), Ball(b, second)], outputs, U))
    part = rng.uniform(0, 1, 20000)
    floor = least_error(Call(evaluate, [Ball(a, part * first), Ball(b, part * second)], outputs, U))
    assert bound is not None
    assert floor is not None
    assert (floors.MARGIN * floor <= bound).all()


def test_a_product_counts_a_part_of_its_terms_in_exact_arithmetic() -> None:
    rng = np.random.default_rng(2)
    x, w = rng.integers(-9, 10, (2, K)), rng.integers(-9, 10, (K, 3))
    evaluate = NodeEvaluator(onnx.helper.make_node("MatMul", ["x", "w"], ["y"]), OPSETS)
    balls = [Ball(each.astype(np.float64)) for each in (x, w)]
    call = Call(evaluate, balls, evaluate([each.value for each in balls]), U)
    floor, bound = least_error(call), bound_error(call)
    assert floor is not None
    assert bound is not None
    roundoff = Fraction(4 * (U + U * sqrt(K)))
    for i, j in np.ndindex(2, 3):
        terms = [Fraction(int(abs(x[i, k] * w[k, j]))) for k in range(K)]
        assert roundoff * sum(terms[: int(8 * sqrt(K))]) <= Fraction(float(floor[i, j]))
        assert Fraction(float(floor[i, j])) < roundoff * sum(terms)
        assert float(bound[i, j]) == pytest.approx(float(roundoff * sum(terms)), rel=1e-12)


def test_a_floor_above_the_bound_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: of the test of whole bodies."""

    def doubled(call: Call) -> Floats:
        return 2.0 * sums.products(call)

    monkeypatch.setitem(floors._RULES, "MatMul", doubled)
    with pytest.raises(AssertionError):
        test_no_element_of_a_body_has_a_floor_above_its_tolerance("product", 1.0)


def test_bodies_without_floors_are_bounded_at_once() -> None:
    assert not has_floors([onnx.helper.make_node("Transpose", ["x"], ["y"])])
    assert not has_floors([onnx.helper.make_node(op, ["x"], ["y"]) for op in ("Relu", "CumSum")])
    body = _body("(x) => (y, i) { y, i = TopK(x, x) }")
    assert body.at_least([np.ones(3, np.float32)], (), U, [DType.FP32, DType.INT64]) is None
    assert _body("(x) => (i) { r = Relu(x) i = Cast<to = 7>(r) }").at_least(
        [np.ones(3, np.float32)], (), U, [DType.INT64]
    ) is None  # fmt: skip


def test_what_is_computed_in_fp64_has_no_floor() -> None:
    body = _body("(x) => (y) { y = Relu(x) }")
    assert body.at_least([np.ones(3)], (), U, [DType.FP64]) is None
    assert body.at_least([np.ones(3, np.float32)], (), U, [DType.FP32]) is not None


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_a_floor_accepts_its_tolerance_accepts(dtype: type) -> None:
    rng = np.random.default_rng(3)
    expected = rng.standard_normal(20000) * 10.0 ** rng.integers(-8, 5, 20000)
    whole = np.abs(expected) * 1e-3 + 1e-7
    floor = whole * rng.uniform(0, 1, expected.size)
    decided = 0
    for size in (1e-6, 0.01, 0.3, 1.2):
        noise = size * rng.uniform(-1, 1, expected.size)
        for _ in range(20):
            some = rng.choice(expected.size, 3)
            actual = (expected[some] + noise[some] * whole[some]).astype(dtype)
            found = compare_by_floor(actual, expected[some], floor[some])
            right = compare(actual, expected[some], whole[some])
            if found is not None:
                decided += 1
                assert right.passed
                assert right.worst <= found.worst
                assert found.at_most
    assert decided > 5


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_left_to_the_tolerance(odd: float) -> None:
    expected, floor = np.zeros(70000), np.ones(70000)
    actual = np.zeros(70000, np.float32)
    assert compare_by_floor(actual, expected, floor) is not None
    actual[66000] = odd
    assert compare_by_floor(actual, expected, floor) is None
    assert compare_by_floor(actual, expected, np.full(70000, np.inf)) is None
    expected[66000] = odd
    assert compare_by_floor(actual, expected, floor) is None
