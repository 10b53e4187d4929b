"""Bounds of sums against their formulas, written here once more for plain arrays."""

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from onnx import helper

from wpk.checks.bounded import Ball, Call
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.checks.reference.resize import resampling

U = 2.0**-24
RNG = np.random.default_rng(20261123)


def bounded(
    node: onnx.NodeProto, inputs: Sequence[Ball | None], u_mul: float = U, opset: int = 24
) -> Ball:
    """A node's result with its bound; one without error has zeros."""
    evaluate = NodeEvaluator(node, {"": opset})
    outputs = evaluate([None if each is None else each.value for each in inputs])
    error = bound_error(Call(evaluate, inputs, outputs, u_mul))
    return Ball(outputs[0], np.zeros(outputs[0].shape) if error is None else error)


def drawn(*shape: int) -> Ball:
    """A value with an error that is far above all rounding."""
    return Ball(RNG.standard_normal(shape), RNG.uniform(1e-3, 2e-3, shape))


def exact(*shape: int) -> Ball:
    return Ball(RNG.standard_normal(shape))


def errors(*given: Ball) -> list[np.ndarray]:
    return [np.zeros(g.value.shape) if g.error is None else g.error for g in given]


def close(result: Ball, expected: np.ndarray) -> None:
    assert result.error is not None
    np.testing.assert_allclose(result.error, expected, rtol=1e-9)


@pytest.mark.parametrize("wrong", [(), (0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 2.0), (-0.5, 2.0), (0.5, -2.0)])
@pytest.mark.parametrize(("trans", "u_mul"), [(0, U), (1, 2.0**-11), (0, 0.0)])
def test_products(
    wrong: tuple[int, ...], alpha: float, beta: float, trans: int, u_mul: float
) -> None:
    shapes = [(3, 5), (7, 5) if trans else (5, 7), (7,)]
    x, w, b = (drawn(*s) if i in wrong else exact(*s) for i, s in enumerate(shapes))
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=alpha, beta=beta, transB=trans)
    result = bounded(node, [x, w, b], u_mul)
    (ex, ew, eb), turned = errors(x, w, b), (lambda a: a.T if trans else a)
    size, wide = np.abs(x.value), np.abs(x.value) + ex
    weight = np.abs(turned(w.value))
    roundoff = 4 * (u_mul + U * np.sqrt(5))
    if u_mul != U:
        roundoff += 5 / 8 * 2 * U
    expected = roundoff * (abs(alpha) * size @ weight + abs(beta) * np.abs(b.value))
    expected = expected + abs(alpha) * (ex @ weight + wide @ turned(ew)) + abs(beta) * eb
    close(result, expected)


@pytest.mark.parametrize(
    ("op", "weight", "terms", "attributes"),
    [
        ("Conv", (6, 2, 3, 3), 2 * 9, {"group": 2}),
        ("ConvTranspose", (4, 3, 3, 3), 4 // 2 * 9, {"group": 2}),
    ],
)
def test_sums_of_a_convolution(
    op: str, weight: tuple[int, ...], terms: int, attributes: dict[str, int]
) -> None:
    x, w = exact(2, 4, 6, 5), exact(*weight)
    node = helper.make_node(op, ["x", "w"], ["y"], **attributes)
    sizes = [Ball(np.abs(each.value)) for each in (x, w)]
    magnitudes = bounded(node, sizes).value
    close(bounded(node, [x, w]), 4 * (U + U * np.sqrt(terms)) * magnitudes)


@pytest.mark.parametrize(
    ("given", "alpha", "beta"), [({}, 1, 1), ({"alpha": -0.5}, -0.5, 1), ({"beta": -2.0}, 1, -2)]
)
def test_factors_of_a_gemm_are_one_where_it_does_not_say(
    given: dict[str, float], alpha: float, beta: float
) -> None:
    x, w, b = exact(3, 5), exact(5, 7), exact(3, 1)
    result = bounded(helper.make_node("Gemm", ["x", "w", "b"], ["y"], **given), [x, w, b])
    sizes = abs(alpha) * np.abs(x.value) @ np.abs(w.value) + abs(beta) * np.abs(b.value)
    close(result, 4 * U * (1 + np.sqrt(5)) * sizes)


def test_products_of_a_batch() -> None:
    x, w = drawn(2, 3, 4, 6), drawn(3, 6, 5)
    (ex, ew), size, weight = errors(x, w), np.abs(x.value), np.abs(w.value)
    expected = 4 * U * (1 + np.sqrt(6)) * (size @ weight) + ex @ weight + (size + ex) @ ew
    close(bounded(helper.make_node("MatMul", ["x", "w"], ["y"]), [x, w]), expected)


@pytest.mark.parametrize("op", ["Conv", "ConvTranspose"])
def test_a_convolution_without_groups_and_with_a_bias(op: str) -> None:
    x, b = exact(2, 4, 6, 5), drawn(3)
    w, terms = (exact(3, 4, 2, 3), 4 * 6) if op == "Conv" else (exact(4, 3, 2, 3), 4 * 6)
    node = helper.make_node(op, ["x", "w", "b"], ["y"])
    sizes = bounded(node, [Ball(np.abs(each.value)) for each in (x, w, b)]).value
    expected = 4 * (U + U * np.sqrt(terms)) * sizes + errors(b)[0].reshape(3, 1, 1)
    close(bounded(node, [x, w, b]), expected)
    without = helper.make_node(op, ["x", "w", ""], ["y"])
    same = bounded(helper.make_node(op, ["x", "w"], ["y"]), [x, w])
    assert same.error is not None
    close(bounded(without, [x, w, None]), same.error)


ROWS = pytest.mark.parametrize("rows", [(5, 12), (1, 12), (5, 1)])


@ROWS
@pytest.mark.parametrize("op", ["ReduceMean", "ReduceSum", "ReduceL1"])
def test_sums(op: str, rows: tuple[int, int]) -> None:
    x, length = drawn(*rows), rows[1]
    count = length if op == "ReduceMean" else 1
    axes = Ball(np.array([1], np.int64))
    result = bounded(helper.make_node(op, ["x", "a"], ["y"], keepdims=0), [x, axes])
    (e,) = errors(x)
    expected = (4 * U * np.sqrt(length) * np.abs(x.value).sum(1) + e.sum(1)) / count
    close(result, expected)


def test_averages_of_windows() -> None:
    x = drawn(2, 3, 4, 6)
    node = helper.make_node("AveragePool", ["x"], ["y"], kernel_shape=[2, 3], strides=[2, 3])
    (e,) = errors(x)

    def windows(a: np.ndarray) -> np.ndarray:
        return np.asarray(a.reshape(2, 3, 2, 2, 2, 3).mean(axis=(3, 5)))

    close(bounded(node, [x]), 4 * U * np.sqrt(6) * windows(np.abs(x.value)) + windows(e))


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_the_largest_and_the_least(op: str) -> None:
    x, axes = drawn(5, 12), Ball(np.array([1], np.int64))
    node = helper.make_node(op, ["x", "a"], ["y"], keepdims=0)
    assert x.error is not None
    close(bounded(node, [x, axes]), x.error.max(1))
    assert not np.any(bounded(node, [Ball(x.value), axes]).error)


def test_a_window_in_the_padding_has_no_error() -> None:
    x = drawn(1, 1, 2)
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[1], pads=[1, 1])
    (e,) = errors(x)
    close(bounded(node, [x]), np.pad(e, ((0, 0), (0, 0), (1, 1))))


@ROWS
@pytest.mark.parametrize("op", ["ReduceSumSquare", "ReduceL2"])
def test_squares(op: str, rows: tuple[int, int]) -> None:
    x, axes = exact(*rows), Ball(np.array([1], np.int64))
    result = bounded(helper.make_node(op, ["x", "a"], ["y"], keepdims=0), [x, axes])
    close(result, np.abs(result.value) * 4 * U * (np.sqrt(rows[1]) + 2))


def test_errors_of_squares_are_tried_in_both_directions() -> None:
    x, axes = Ball(np.array([[1.0, 2.0]]), np.full((1, 2), 0.1)), Ball(np.array([1]))
    node = helper.make_node("ReduceSumSquare", ["x", "a"], ["y"], keepdims=0)
    close(bounded(node, [x, axes]), np.array([1.1**2 + 2.1**2 - 5.0]) + 5 * 4 * U * (2**0.5 + 2))


@ROWS
@pytest.mark.parametrize("scale", [1.0, 1e-4])
def test_what_vanishes_of_a_product_may_be_multiplied_by_the_rest(
    rows: tuple[int, int], scale: float
) -> None:
    x, axes = Ball(RNG.uniform(0.5, 4.0, rows) * scale), Ball(np.array([1], np.int64))
    result = bounded(helper.make_node("ReduceProd", ["x", "a"], ["y"], keepdims=0), [x, axes])
    lost = rows[1] * 2.0**-149 * np.maximum(x.value, 1.0).prod(1)
    close(result, np.abs(result.value) * 4 * U * (np.sqrt(rows[1]) + 2) + lost)


@ROWS
def test_the_logarithm_of_a_sum(rows: tuple[int, int]) -> None:
    x = Ball(RNG.uniform(0.5, 2.0, rows), RNG.uniform(1e-3, 2e-3, rows))
    axes = Ball(np.array([1], np.int64))
    result = bounded(helper.make_node("ReduceLogSum", ["x", "a"], ["y"], keepdims=0), [x, axes])
    total, (e,) = x.value.sum(1), errors(x)
    relative = (4 * U * np.sqrt(rows[1]) * total + e.sum(1)) / total
    close(result, -np.log1p(-relative) + 4 * U * np.abs(np.log(total)))


def test_a_sum_that_may_be_nothing_has_any_logarithm() -> None:
    x, axes = Ball(np.full((1, 2), 1e-3), np.full((1, 2), 1.0)), Ball(np.array([1]))
    result = bounded(helper.make_node("ReduceLogSum", ["x", "a"], ["y"], keepdims=0), [x, axes])
    assert np.isposinf(result.error).all()


OPSETS = pytest.mark.parametrize(
    ("opset", "given", "axes"),
    [
        *((opset, {"axis": 1}, (1,)) for opset in (13, 24)),
        *((opset, {"axis": 1}, (1, 2)) for opset in (11, 12)),
        (13, {}, (2,)),
        (12, {}, (1, 2)),
        (24, {"axis": -3}, (0,)),
        (11, {"axis": -1}, (2,)),
    ],
)


@OPSETS
def test_softmax_of_exact_values(opset: int, given: dict[str, int], axes: tuple[int, ...]) -> None:
    x = exact(4, 5, 6)
    result = bounded(helper.make_node("Softmax", ["x"], ["y"], **given), [x], opset=opset)
    count = np.prod([x.value.shape[axis] for axis in axes])
    depth = np.abs(x.value - x.value.max(axis=axes, keepdims=True))
    expected = result.value * 4 * U * (np.sqrt(count) + depth + 4) + 2.0**-149
    close(result, expected)


def test_an_exponential_may_vanish() -> None:
    x = Ball(np.array([[0.0, -200.0]]))
    result = bounded(helper.make_node("Softmax", ["x"], ["y"], axis=1), [x])
    assert result.error is not None
    assert result.error[0, 1] == pytest.approx(2.0**-149)


def test_errors_move_a_softmax_to_the_ends_of_what_the_others_leave() -> None:
    x = Ball(np.array([[0.0, 1.0, 1.5], [2.0, -2.0, 0.0]]), np.array([[0.5, 0.0, 0.25]] * 2))
    result = bounded(helper.make_node("Softmax", ["x"], ["y"], axis=1), [x])
    (e,) = errors(x)
    expected = np.zeros((2, 3))
    for i, j in np.ndindex(2, 3):
        ends = []
        for side in (-1, 1):
            row = x.value[i] - side * e[i]
            row[j] += 2 * side * e[i, j]
            ends.append(abs(np.exp(row[j]) / np.exp(row).sum() - result.value[i, j]))
        expected[i, j] = max(ends)
    assert result.error is not None
    np.testing.assert_allclose(result.error, expected, atol=100 * U)


def test_no_probability_is_off_by_more_than_one() -> None:
    x = Ball(np.array([[0.0, -30.0]]), np.full((1, 2), 25.0))
    result = bounded(helper.make_node("Softmax", ["x"], ["y"], axis=1), [x])
    assert result.error is not None
    assert result.error[0, 0] == 1.0
    assert result.error[0, 1] == pytest.approx(1.0)


def test_errors_move_a_log_softmax_by_their_own_and_by_the_logarithm_of_the_sum() -> None:
    x = Ball(np.array([[0.0, 1.0, 1.5], [2.0, -2.0, 0.0]]), np.array([[0.5, 0.0, 0.25]] * 2))
    result = bounded(helper.make_node("LogSoftmax", ["x"], ["y"], axis=1), [x])
    (e,) = errors(x)
    low, right, high = (
        np.log(np.exp(x.value + side * e).sum(axis=1, keepdims=True)) for side in (-1, 0, 1)
    )
    assert result.error is not None
    expected = e + np.maximum(high - right, right - low)
    np.testing.assert_allclose(result.error, expected, atol=100 * U)


@OPSETS
def test_log_softmax_of_exact_values(
    opset: int, given: dict[str, int], axes: tuple[int, ...]
) -> None:
    x = exact(4, 5, 6)
    result = bounded(helper.make_node("LogSoftmax", ["x"], ["y"], **given), [x], opset=opset)
    count = np.prod([x.value.shape[axis] for axis in axes])
    largest = np.abs(x.value.max(axis=axes, keepdims=True))
    close(result, 4 * U * (np.sqrt(count) + np.abs(result.value) + largest))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("axis", [1, 2, -1])
def test_a_layer_whose_rows_have_several_axes(axis: int, count: int) -> None:
    """Scale alone errs, so what it multiplies shows; nothing says an epsilon."""
    v = RNG.standard_normal((4, 5, 6))
    shape = v.shape[axis:]
    g = Ball(RNG.standard_normal(shape), np.full(shape, 0.5))
    node = helper.make_node("LayerNormalization", ["x", "g", "b"][:count], ["y"], axis=axis)
    result = bounded(node, [Ball(v * 1e-3), g, exact(*shape)][:count])
    rows = (v * 1e-3).reshape(*v.shape[:axis], -1)
    d = rows - rows.mean(-1, keepdims=True)
    normal = np.abs(d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)).reshape(v.shape)
    assert result.error is not None
    np.testing.assert_allclose(result.error, normal * 0.5, atol=200 * U)


@pytest.mark.parametrize("wrong", [(), (0,), (1,), (2,)])
@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization", "InstanceNormalization"])
def test_normalised(op: str, wrong: tuple[int, ...]) -> None:
    channels = op == "InstanceNormalization"
    parameters = (5,) if channels else (6,)
    shapes = [(4, 5, 6), parameters, parameters]
    x, g, b = (drawn(*s) if i in wrong else exact(*s) for i, s in enumerate(shapes))
    given = [x, g] if op == "RMSNormalization" else [x, g, b]
    node = helper.make_node(op, ["x", "g", "b"][: len(given)], ["y"], epsilon=1e-3)
    result = bounded(node, given)
    (e, eg, eb), v = errors(x, g, b), x.value
    gamma, beta = np.abs(g.value), np.abs(b.value)
    if channels:
        gamma, beta, eg, eb = (a[:, None] for a in (gamma, beta, eg, eb))
    if op == "RMSNormalization":
        beta, eb, mean, mean_error = np.zeros(()), np.zeros(()), np.zeros(()), np.zeros(())
    else:
        mean = v.mean(-1, keepdims=True)
        mean_error = e.mean(-1, keepdims=True) + U * 6**0.5 * np.abs(v).mean(-1, keepdims=True)
    d = np.abs(v - mean)
    s = np.sqrt((d * d).mean(-1, keepdims=True) + np.float32(1e-3).astype(float))
    d_error = e + mean_error + U * (np.abs(v) + np.abs(mean))
    s_error = (d * d_error).mean(-1, keepdims=True) / s + 4 * U * 6**0.5 * s
    normal = d / s
    relative = d_error / s + normal * s_error / s + 4 * U * normal
    expected = relative * gamma + 4 * U * (normal * gamma + beta) + normal * eg + eb
    close(result, expected)


def test_coordinates_of_a_resampling_are_moved_along_every_axis() -> None:
    x, scales = drawn(1, 1, 4, 5), np.array([1, 1, 1.5, 2.0])
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    result = bounded(node, [x, None, Ball(scales)])
    (e,) = errors(x)
    sizes, moved = (
        bounded(node, [Ball(a), None, Ball(scales)]).value for a in (np.abs(x.value), e)
    )
    expected = 4 * U * sizes + moved
    how = resampling(x.value.shape, scales, None, {"mode": "linear"})
    assert how is not None
    assert len(how.axes) == 2
    for axis in how.axes:
        ends = [np.abs(how(x.value, {axis: side * 4 * U}) - result.value) for side in (-1, 1)]
        expected = expected + np.maximum(*ends)
    close(result, expected)


def test_a_resampling_by_sizes_and_one_that_repeats() -> None:
    x = drawn(1, 2, 4, 5)
    sizes = Ball(np.array([1, 2, 8, 15]))
    node = helper.make_node("Resize", ["x", "", "", "s"], ["y"], mode="linear")
    by_scales = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    scales = Ball(np.array([1.0, 1.0, 2.0, 3.0]))
    same = bounded(by_scales, [x, None, scales])
    found = bounded(node, [x, None, None, sizes])
    assert same.error is not None
    close(found, same.error)
    repeated = bounded(helper.make_node("Upsample", ["x", "s"], ["y"]), [x, scales], opset=9)
    exact, error = (
        np.repeat(np.repeat(a, 2, axis=2), 3, axis=3) for a in (np.abs(x.value), errors(x)[0])
    )
    close(repeated, 4 * U * exact + error)


def test_a_coordinate_of_another_resampling_moves_along_the_steepest_slope() -> None:
    x, scales = drawn(1, 1, 4, 5), Ball(np.array([1.0, 1.0, 2.0, 3.0]))
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="cubic")
    sizes, moved = (
        bounded(node, [Ball(a), None, scales]).value for a in (np.abs(x.value), errors(x)[0])
    )
    slope = 4 * U * (15 + 1) * 2 * np.abs(x.value).max()  # the longest axis has 15 samples
    close(bounded(node, [x, None, scales]), 4 * U * sizes + moved + slope)
