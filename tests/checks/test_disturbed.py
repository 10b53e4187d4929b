"""Models in float64, disturbed by roundings: how much, where, and where not."""

import tracemalloc
from collections.abc import Mapping

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from support.networks import graph_text

from wpk.checks.disturbed import DisturbedModel, Noise, parameters
from wpk.dtypes import ASKED, Precision
from wpk.lowering.flat_graph import FlatGraph, FlatNode

X = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
NOISE = Noise(strength=1.0, seed=0)
ROUNDOFF = {
    Precision.FP32: 2.0**-24,
    Precision.TF32: 2.0**-11,
    Precision.FP16: 2.0**-11,
    Precision.BF16: 2.0**-8,
}


def moved(
    body: str,
    precision: Precision,
    noise: Noise | None = NOISE,
    x: NDArray[np.generic] = X,
    kind: str = "float",
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """An output without and with disturbance."""
    text = f"({kind}[16, 64] x) => ({kind}[16, 64] y) {{ {body} }}"
    constants: Mapping[str, NDArray[np.generic]] = {"w": W}
    model = DisturbedModel(graph_text.flat(text, constants), precision, {"x": x})
    return model.outputs()["y"].astype(np.float64), model.outputs(noise)["y"].astype(np.float64)


@pytest.mark.parametrize("precision", list(ASKED))
def test_a_product_is_moved_as_its_factors_are_rounded(precision: Precision) -> None:
    right, y = moved("y = MatMul(x, w)", precision)
    error = np.sqrt(np.mean((y - right) ** 2)) / np.sqrt(np.mean(right**2))
    # Two factors, each moved uniformly by up to u (fp32: 2 u), and the result once more.
    assert 0.3 * ROUNDOFF[precision] < error < 6 * ROUNDOFF[precision]


ZEROS = np.zeros((16, 64), np.float32)
STORED = {**ROUNDOFF, Precision.TF32: 2.0**-24}


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize(
    ("body", "value", "sizes"),
    [("y = Exp(x)", 1.0, 1), ("y = Tanh(x)", 0.0, 1), ("y = Cos(x)", 1.0, 2)],
)
def test_a_result_is_moved_by_a_rounding_of_16_bits_or_two_of_fp32(
    body: str, value: float, sizes: int, precision: Precision
) -> None:
    """Of its own size, or of that of 1, or of both; a strong disturbance hides that it is rounded."""
    right, y = moved(body, precision, Noise(64.0, 0), ZEROS)
    assert (right == value).all()
    u = STORED[precision]
    most = 64 * sizes * (2 * u if u == 2.0**-24 else u)
    for side in (-1, 1):
        assert 0.97 * most < (side * (y - right)).max() < 1.02 * most


def test_zeros_are_moved_by_the_smallest_number_of_the_type() -> None:
    _, y = moved("y = Neg(x)", Precision.FP16, x=ZEROS)
    assert np.unique(np.abs(y)).tolist() == [0.0, 2.0**-24, 2.0**-23]  # the input, and once more
    for precision in (Precision.FP32, Precision.BF16):
        assert not moved("y = Neg(x)", precision, x=ZEROS)[1].any()


@pytest.mark.parametrize(("to", "smallest"), [(10, 2.0**-24), (16, 2.0**-133)])
def test_zeros_of_the_model_s_own_types_are_moved(to: int, smallest: float) -> None:
    body = f"h = Cast<to = {to}>(x)  y = Cast<to = 1>(h)"
    _, y = moved(body, Precision.FP32, x=ZEROS)
    assert np.unique(y).tolist() == [-smallest, 0.0, smallest]


@pytest.mark.parametrize(
    ("kind", "dtype", "roundoff"),
    [
        ("float16", np.float16, 2.0**-11),
        ("bfloat16", ml_dtypes.bfloat16, 2.0**-8),
        ("float", np.float32, 0.0),
        ("double", np.float64, 0.0),
    ],
)
@pytest.mark.parametrize(
    "body", ["y = Abs(x)", "c = Constant<value = bool {1}>()  y = Where(c, x, x)"]
)
def test_inputs_have_types_of_their_own(body: str, kind: str, dtype: type, roundoff: float) -> None:
    x = np.ones((16, 64), dtype)
    right, y = moved(body, Precision.FP32, Noise(16.0, 0), x, kind)
    assert np.abs(y - right).max() == pytest.approx(16 * roundoff, rel=0.05)


def test_what_nobody_reads_any_more_takes_no_memory() -> None:
    body = "".join(f"h{i} = Neg({f'h{i - 1}' if i else 'x'})  " for i in range(30))
    graph = graph_text.flat(f"(float[65536] x) => (float[65536] y) {{ {body} y = Exp(h29) }}")
    model = DisturbedModel(graph, Precision.BF16, {"x": np.zeros(65536, np.float32)})
    model.outputs(NOISE)
    tracemalloc.start()
    model.outputs(NOISE)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 12 * 65536 * 8


def test_the_same_seed_moves_alike_and_nothing_is_moved_without() -> None:
    first, again = (moved("y = Exp(x)", Precision.BF16, Noise(1.0, 7))[1] for _ in range(2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, moved("y = Exp(x)", Precision.BF16, Noise(1.0, 8))[1])
    right, y = moved("y = Exp(x)", Precision.BF16, None)
    assert np.array_equal(right, y)
    assert np.allclose(right, np.exp(X.astype(np.float64)), rtol=1e-15)


def test_strength_multiplies() -> None:
    right, weak = moved("y = Exp(x)", Precision.FP16, Noise(1.0, 3))
    strong = moved("y = Exp(x)", Precision.FP16, Noise(8.0, 3))[1]
    ratio = np.median(np.abs(strong - right)) / np.median(np.abs(weak - right))
    assert 5.0 < ratio < 8.0  # a draw of 1 is rounded to its type besides


@pytest.mark.parametrize("body", ["y = Relu(x)", "y = Transpose<perm = [0, 1]>(x)", "y = Neg(x)"])
def test_what_moves_numbers_rounds_nothing_in_fp32(body: str) -> None:
    right, y = moved(body, Precision.FP32)
    assert np.array_equal(right, y)
    right, y = moved(body, Precision.BF16)  # an engine keeps its input in 16 bits
    assert not np.array_equal(right, y)


def test_types_of_the_model_round_whatever_the_precision_is() -> None:
    body = "h = Cast<to = 16>(x)  r = Relu(h)  y = Cast<to = 1>(r)"
    right, y = moved(body, Precision.FP32)
    error = np.abs(y - right)[right > 0] / right[right > 0]
    assert 2.0**-9 < error.max() < 2.0**-6
    plain = moved("h = Cast<to = 1>(x)  r = Relu(h)  y = Cast<to = 1>(r)", Precision.FP32)
    assert np.array_equal(*plain)


def test_a_tie_shows_as_a_step() -> None:
    near = np.full((16, 64), 2.0, np.float32)
    right, y = moved("e = Mul(x, x)  y = Floor(e)", Precision.FP16, x=near)
    assert set(np.unique(np.round(y - right))) == {-1.0, 0.0}
    far = np.full((16, 64), 1.9, np.float32)
    right, y = moved("e = Mul(x, x)  y = Floor(e)", Precision.FP16, x=far)
    assert np.abs(y - right).max() < 0.01


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.FP16, Precision.BF16])
def test_roundings_may_make_two_numbers_equal(precision: Precision) -> None:
    near = 0.3 * (1 + ROUNDOFF[precision] / 2)
    x = np.full((16, 64), near, np.float32)
    w = {"w": np.full((16, 64), 0.1, np.float32), "v": np.full((16, 64), 3.0, np.float32)}
    text = """(float[16, 64] x) => (float[16, 64] y) {
      p = Mul(w, v)  d = Sub(x, p)  z = Div(d, d)  n = IsNaN(z)  y = Cast<to = 1>(n) }"""
    model = DisturbedModel(graph_text.flat(text, w), precision, {"x": x})
    assert not model.outputs()["y"].any()
    assert 0.02 < model.outputs(NOISE)["y"].mean() < 0.9


@pytest.mark.parametrize("scale", ["s = Mul(a, b)", "s = Concat<axis = 0>(a, b)"])
def test_what_parameters_are_computed_from_stays(scale: str) -> None:
    text = f"""(float[1, 1, 4, 4] x, float[4] z) => (float[1, 1, 8, 8] y, float[4] t)
        {{ {scale}  y = Resize(x, , s)  t = Add(z, a) }}"""
    given = {"a": np.array([1, 1, 2, 2], np.float32), "b": np.array([1, 1, 1, 1], np.float32)}
    if "Concat" in scale:
        text = text.replace("float[4]", "float[2]")
        given = {"a": np.array([1, 1], np.float32), "b": np.array([2, 2], np.float32)}
    inputs = {"x": X.reshape(-1)[:16].reshape(1, 1, 4, 4), "z": X[0, : given["a"].size]}
    model = DisturbedModel(graph_text.flat(text, given), Precision.BF16, inputs)
    made, right = model.outputs(Noise(8.0, 0)), model.outputs()
    assert made["y"].shape == (1, 1, 8, 8)
    assert not np.array_equal(made["t"], right["t"])


def test_integers_and_what_is_not_finite_stay() -> None:
    x = X.copy()
    x[0, :2] = np.nan, np.inf
    _, y = moved("y = Exp(x)", Precision.BF16, x=x)
    assert np.isnan(y[0, 0])
    assert np.isposinf(y[0, 1])
    whole = np.arange(16 * 64).reshape(16, 64)
    assert np.array_equal(*moved("y = Neg(x)", Precision.BF16, x=whole, kind="int64"))


def test_parameters_of_a_resize_stay() -> None:
    text = "(float[1, 1, 4, 4] x) => (float[1, 1, 8, 8] y) { y = Resize(x, , s) }"
    scales = {"s": np.array([1, 1, 2, 2], np.float32)}
    x = X.reshape(-1)[:16].reshape(1, 1, 4, 4)
    model = DisturbedModel(graph_text.flat(text, scales), Precision.BF16, {"x": x})
    assert model.outputs(Noise(1.0, 0))["y"].shape == (1, 1, 8, 8)


def test_inputs_and_constants_among_the_outputs_are_given() -> None:
    text = "(float[16, 64] x) => (float[16, 64] x, float[64, 64] w, float[16, 64] y) { y = Exp(x) }"
    model = DisturbedModel(graph_text.flat(text, {"w": W}), Precision.FP32, {"x": X})
    outputs = model.outputs(Noise(1.0, 0))
    assert np.array_equal(outputs["x"], X.astype(np.float64))
    assert np.array_equal(outputs["w"], W.astype(np.float64))


def test_what_a_branch_reads_outside_is_there() -> None:
    body = """c = Constant<value = bool {1}>()
      y = If (c) <then_branch = a () => (float[16, 64] p) { p = Exp(x) },
                  else_branch = b () => (float[16, 64] q) { q = Neg(x) }>"""
    right, y = moved(body, Precision.BF16)
    assert np.allclose(right, np.exp(X.astype(np.float64)), rtol=1e-15)
    assert not np.array_equal(right, y)


@pytest.mark.parametrize(
    "body",
    ["y = InstanceNormalization(x, s, b)", "y = LayerNormalization<axis = 2>(x, t, u)"],
)
def test_a_mean_and_what_it_is_subtracted_from_round_apart(body: str) -> None:
    """A row of one element: it and its mean move together, and their difference is 0 in either run."""
    text = f"(float[16, 3, 1] x) => (float[16, 3, 1] y) {{ {body} }}"
    s, b = np.array([-5, 0.5, 0], np.float32), np.zeros(3, np.float32)
    given = {"s": s, "b": b, "t": s[:1], "u": b[:1]}
    x = X[:, :3].reshape(16, 3, 1)
    model = DisturbedModel(graph_text.flat(text, given), Precision.FP32, {"x": x})
    assert not model.outputs()["y"].any()
    drawn = model.outputs(NOISE)["y"]
    assert (drawn[:, 0] > 0).any()
    assert (drawn[:, 0] < 0).any()
    made = np.abs(drawn)
    scale = s if "Instance" in body else s[:1]
    size = np.abs(x[:, :, 0] * scale / np.sqrt(1e-5)) * 2.0**-24
    assert (made[:, :, 0] <= 3 * size).all()
    assert np.median(made[:, :2, 0] / size[:, :2]) > 0.5


@pytest.mark.parametrize(
    ("operator", "inputs", "found"),
    [
        ("Range", "start limit step", "start limit step"),
        ("Resize", "x roi scales sizes", "roi scales sizes"),
        ("Upsample", "x scales", "scales"),
        ("Add", "x z", ""),
    ],
)
def test_the_inputs_that_say_how_an_operator_computes(
    operator: str, inputs: str, found: str
) -> None:
    """They are found with all that they are computed from."""
    names = inputs.split()
    nodes = [
        onnx.helper.make_node("Neg", [f"of_{names[-1]}"], [names[-1]]),
        onnx.helper.make_node(operator, names, ["y"]),
        onnx.helper.make_node("Exp", ["y"], ["z"]),
    ]
    flat = tuple(FlatNode(each, each.op_type, tuple(each.output)) for each in nodes)
    expected = {*found.split(), f"of_{names[-1]}"} if found else set()
    assert parameters(FlatGraph(flat, {}, (), ("z",), 17)) == expected
