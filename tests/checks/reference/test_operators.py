"""Our reference operators agree with ONNX Runtime, and with onnx's own where that is right."""

import itertools
import math

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference.operators import REFERENCE_OPS


def _model(group: int, attributes: str) -> onnx.ModelProto:
    per_group = 4 // group
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,6,5,7] x, float[6,{per_group},3,2] w, float[4] b) => (float[2,4,p,q] y)
        {{ y = ConvTranspose<group={group}, {attributes}>(x, w, b) }}"""
    )


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    "attributes",
    [
        "strides=[2,3], pads=[1,0,0,1], output_padding=[1,2]",
        "dilations=[2,1], strides=[1,2]",
        "strides=[2,2], output_shape=[9,13]",
        'strides=[2,2], auto_pad="SAME_LOWER"',
        'strides=[2,1], auto_pad="SAME_UPPER"',
        'strides=[1,2], auto_pad="SAME_UPPER"',
        'strides=[1,2], auto_pad="SAME_LOWER"',
        'strides=[2,3], auto_pad="VALID"',
        'strides=[2,3], output_shape=[10,20], auto_pad="SAME_UPPER"',
        'strides=[2,3], output_shape=[8,17], auto_pad="SAME_LOWER"',
        "kernel_shape=[3,2]",
    ],
)
def test_transposed_convolution(group: int, attributes: str) -> None:
    model = _model(group, attributes)
    rng = np.random.default_rng(0)
    inputs = {
        info.name: rng.standard_normal([d.dim_value for d in info.type.tensor_type.shape.dim])
        for info in model.graph.input
    }
    narrow = {name: array.astype(np.float32) for name, array in inputs.items()}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, narrow)[0]
    ours = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, narrow)[0]
    assert ours.shape == expected.shape
    # sums of at most 6 x 3 x 2 products of numbers near 1, in fp32
    np.testing.assert_allclose(ours, expected, rtol=0, atol=36 * 8 * 2**-24)


def scattered(
    x: np.ndarray, w: np.ndarray, group: int, strides: list[int], dilations: list[int]
) -> np.ndarray:
    """By the definition, before anything is cut off: every element times every tap."""
    inputs, outputs = x.shape[1] // group, w.shape[1]
    steps = list(zip(x.shape[2:], w.shape[2:], strides, dilations, strict=True))
    y = np.zeros(
        (len(x), group * outputs, *((n - 1) * s + (f - 1) * d + 1 for n, f, s, d in steps))
    )
    for c, place, tap in itertools.product(
        range(x.shape[1]), np.ndindex(*x.shape[2:]), np.ndindex(*w.shape[2:])
    ):
        first = c // inputs * outputs
        there = tuple(p * s + t * d for p, t, (_, _, s, d) in zip(place, tap, steps, strict=True))
        y[(slice(None), slice(first, first + outputs), *there)] += np.outer(
            x[(slice(None), c, *place)], w[(c, slice(None), *tap)]
        )
    return y


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("channels", "per_group", "group"), [(3, 2, 1), (6, 2, 3), (4, 3, 2)])
def test_every_transposed_convolution_is_as_defined(
    rank: int, channels: int, per_group: int, group: int
) -> None:
    rng = np.random.default_rng(rank)
    for seed in range(6):
        sizes, kernel, strides, dilations = (rng.integers(1, 4, rank).tolist() for _ in range(4))
        x = rng.integers(-4, 5, (2, channels, *sizes)).astype(np.float64)
        w = rng.integers(-4, 5, (channels, per_group, *kernel)).astype(np.float64)
        bias = rng.integers(-4, 5, group * per_group).astype(np.float64)
        extra, begin, end = (rng.integers(0, 2, rank).tolist() for _ in range(3))
        whole = np.pad(
            scattered(x, w, group, strides, dilations), [(0, 0), (0, 0), *((0, e) for e in extra)]
        )
        kept = [slice(b, n - e) for n, b, e in zip(whole.shape[2:], begin, end, strict=True)]
        expected = whole[(..., *kept)]
        if 0 in expected.shape:
            continue
        inputs = {"x": x, "w": w} | ({"b": bias} if seed % 2 else {})
        node = onnx.helper.make_node(
            "ConvTranspose", list(inputs), ["y"], group=group, strides=strides,
            dilations=dilations, output_padding=extra, pads=[*begin, *end],
        )  # fmt: skip
        (ours,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, inputs)
        if seed % 2:
            expected = expected + bias.reshape(-1, *(1,) * rank)
        np.testing.assert_array_equal(ours, expected, strict=True)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
def test_what_no_tap_reaches_is_zero(mode: str) -> None:
    """By ONNX's text the output is as many times larger as the stride says; ONNX Runtime's is less."""
    x, w = np.array([[[1.0, 2.0, 3.0]]]), np.array([[[5.0, 7.0]]])
    for given in ({"auto_pad": mode}, {"output_shape": [12]}):
        node = onnx.helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=[4], **given)
        (y,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, {"x": x, "w": w})
        assert y.tolist() == [[[5.0, 7.0, 0, 0, 10.0, 14.0, 0, 0, 15.0, 21.0, 0, 0]]]


def test_a_normalisation_that_trains_is_refused() -> None:
    names = ("x", "scale", "bias", "mean", "var")
    inputs = {name: np.ones((2, 3) if name == "x" else 3) for name in names}
    node = onnx.helper.make_node(
        "BatchNormalization", names, ["y", "mean_after", "var_after"], training_mode=1
    )
    with pytest.raises(NotImplementedError, match="training"):
        ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, inputs)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 5, 4)])
def test_normalisation_is_by_channel(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape)
    scale, bias, mean = rng.standard_normal((3, 3))
    var = rng.uniform(0.5, 2, 3)
    inputs = {"x": x, "s": scale, "b": bias, "m": mean, "v": var}
    for given, epsilon in (({}, 1e-5), ({"epsilon": 0.25}, 0.25)):
        node = onnx.helper.make_node("BatchNormalization", list(inputs), ["y"], **given)
        (y,) = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, inputs)
        for c in range(3):
            right = (x[:, c] - mean[c]) * (scale[c] / math.sqrt(var[c] + epsilon)) + bias[c]
            np.testing.assert_allclose(y[:, c], right, rtol=1e-8, atol=1e-8)


def test_activations_at_chosen_numbers() -> None:
    x = np.array([-9.0, -3.0, -1.5, 0.0, 1.5, 3.0, 9.0])
    expected = [0.0, 0.0, -0.375, 0.0, 1.125, 3.0, 9.0]
    np.testing.assert_allclose(_of_one_input("HardSwish", x), expected, atol=1e-15)
    expected = [-0.9, -0.75, -0.6, 0.0, 0.6, 0.75, 0.9]
    np.testing.assert_allclose(_of_one_input("Softsign", x), expected, atol=1e-15)


CONVOLUTION = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2,6,9,8] x, float[12,PER_GROUP,3,2] w, float[12] b) => (float[2,12,p,q] y)
    { y = Conv<group=GROUP, ATTRIBUTES>(x, w, b) }"""


@pytest.mark.parametrize("group", [1, 2, 6])
@pytest.mark.parametrize(
    "attributes",
    [
        "pads=[1,0,0,1]",
        "strides=[2,3], pads=[1,2,0,1]",
        "strides=[3,3]",
        "dilations=[2,3], pads=[2,1,1,3]",
        'strides=[2,2], auto_pad="SAME_UPPER"',
        'strides=[2,2], auto_pad="SAME_LOWER"',
        'dilations=[2,1], auto_pad="VALID"',
    ],
)
def test_convolution(group: int, attributes: str) -> None:
    text = CONVOLUTION.replace("PER_GROUP", str(6 // group)).replace("GROUP", str(group))
    model = onnx.parser.parse_model(text.replace("ATTRIBUTES", attributes))
    rng = np.random.default_rng(0)
    inputs = {
        info.name: rng.standard_normal([d.dim_value for d in info.type.tensor_type.shape.dim])
        for info in model.graph.input
    }
    expected = ReferenceEvaluator(model).run(None, inputs)[0]
    ours = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, inputs)[0]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-13, strict=True)
    inputs["w"][0, 0, 2, 1] += 1e-6
    other = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, inputs)[0]
    assert np.abs(other - expected).max() > 1e-9, "every tap counts"


@pytest.mark.parametrize(("sizes", "kernel"), [((9,), (4,)), ((5, 6, 4), (2, 3, 1))])
def test_convolution_of_other_ranks(sizes: tuple[int, ...], kernel: tuple[int, ...]) -> None:
    node = onnx.helper.make_node("Conv", ["x", "w"], ["y"], group=2)
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 4, *sizes)), rng.standard_normal((6, 2, *kernel))
    expected = ReferenceEvaluator(node).run(None, {"x": x, "w": w})[0]
    ours = ReferenceEvaluator(node, new_ops=[*REFERENCE_OPS]).run(None, {"x": x, "w": w})[0]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-13, strict=True)


def _of_one_input(text: str, x: np.ndarray) -> np.ndarray:
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 20]>
        g (double[n] x) => (double[n] y) {{ y = {text}(x) }}"""
    )
    found: np.ndarray = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, {"x": x})[0]
    return found


def test_erf_has_the_precision_of_float64() -> None:
    x = np.concatenate([np.linspace(-7, 7, 100_001), [-0.0, 1e-300, 0.46875, 4.0, 6.0, 1e300]])
    exact = np.array([math.erf(each) for each in x])
    ours = _of_one_input("Erf", x)
    assert np.all(np.abs(ours - exact) <= 8 * 2**-53 * np.abs(exact))
    assert not np.all(np.abs(exact.astype(np.float32) - exact) <= 8 * 2**-53 * np.abs(exact))
    np.testing.assert_array_equal(
        _of_one_input("Erf", np.array([np.inf, -np.inf, np.nan])), [1.0, -1.0, np.nan]
    )


def test_gelu() -> None:
    x = np.linspace(-9, 9, 1001)
    exact = np.array([each / 2 * (1 + math.erf(each / math.sqrt(2))) for each in x])
    np.testing.assert_allclose(_of_one_input("Gelu", x), exact, rtol=0, atol=1e-14)
    tanh = np.array(
        [e / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (e + 0.044715 * e**3))) for e in x]
    )
    found = _of_one_input('Gelu<approximate="tanh">', x)
    np.testing.assert_allclose(found, tanh, rtol=0, atol=1e-14)
    assert np.abs(found - exact).max() > 1e-4


POOL = """<ir_version: 9, opset_import: ["" : 19]>
    g (float[2,3,8,9] x) => (float[2,3,p,q] y) { y = POOL(x) }"""

WINDOWS = [
    "kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]",
    "kernel_shape=[3,2], strides=[1,2], pads=[0,1,2,0]",
    "kernel_shape=[3,3], dilations=[2,1], pads=[1,1,0,1]",
    "kernel_shape=[3,3], strides=[2,2], ceil_mode=1",
    "kernel_shape=[2,2], strides=[3,3], pads=[1,1,1,1], ceil_mode=1",
    'kernel_shape=[3,2], strides=[2,2], auto_pad="SAME_UPPER"',
    'kernel_shape=[3,2], strides=[2,2], auto_pad="SAME_LOWER"',
    'kernel_shape=[3,3], strides=[2,2], auto_pad="VALID"',
]


def _pool(text: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ONNX Runtime's answer and ours."""
    model = onnx.parser.parse_model(POOL.replace("POOL", text))
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    ours = ReferenceEvaluator(model, new_ops=[*REFERENCE_OPS]).run(None, {"x": x})[0]
    return session.run(None, {"x": x})[0], ours


@pytest.mark.parametrize(
    "attributes", [*WINDOWS, "kernel_shape=[2,2], dilations=[9,9], pads=[1,1,1,1]"]
)
def test_max_pool(attributes: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 9)).astype(np.float32)
    expected, ours = _pool(f"MaxPool<{attributes}>", x)
    np.testing.assert_array_equal(ours, expected, strict=True)


@pytest.mark.parametrize("counted", [0, 1])
@pytest.mark.parametrize("attributes", WINDOWS)
def test_average_pool(attributes: str, counted: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 9)).astype(np.float32)
    expected, ours = _pool(f"AveragePool<{attributes}, count_include_pad={counted}>", x)
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-6, strict=True)


def test_average_pool_counts_what_lies_in_the_padding() -> None:
    """A negative control: with padding around, the two averages differ at the border."""
    x = np.ones((2, 3, 8, 9), np.float32)
    _, without = _pool("AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>", x)
    _, counted = _pool("AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>", x)
    assert (without == 1.0).all()
    np.testing.assert_allclose(counted[0, 0, 0, :2], [4 / 9, 6 / 9], rtol=1e-6)


def test_max_pool_passes_every_nan_on() -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 8, 9)).astype(np.float32)
    x[0] = np.nan
    x[1, 0, 4, 4] = np.nan
    x[1, 1] = -np.inf
    _, ours = _pool("MaxPool<kernel_shape=[3,3], pads=[1,1,1,1]>", x)
    assert np.isnan(ours[0]).all()
    assert np.isnan(ours[1, 0, 3:6, 3:6]).all()
    assert np.isnan(ours[1]).sum() == 9
    assert np.isneginf(ours[1, 1]).all()


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize(
    ("operator", "shape", "axes", "expected"),
    [
        ("Squeeze", (1, 2, 1, 3, 1), None, (2, 3)),
        ("Squeeze", (1, 2, 1, 3, 1), [-3], (1, 2, 3, 1)),
        ("Squeeze", (1, 2, 1, 3, 1), [-1, 0], (2, 1, 3)),
        ("Unsqueeze", (2, 3), [-1, 0], (1, 2, 3, 1)),
        ("Unsqueeze", (2, 3), [1, -2], (2, 1, 1, 3)),
    ],
)
def test_axes_of_one_element_are_an_attribute_or_an_input(
    operator: str, shape: tuple[int, ...], axes: list[int] | None, expected: tuple[int, ...],
    opset: int,
) -> None:  # fmt: skip
    x = np.arange(6.0).reshape(shape)
    inputs, attributes = {"x": x}, {}
    if axes is not None and opset < 13:
        attributes = {"axes": axes}
    elif axes is not None:
        inputs["axes"] = np.array(axes)
    node = onnx.helper.make_node(operator, list(inputs), ["y"], **attributes)
    evaluator = ReferenceEvaluator(node, opsets={"": opset}, new_ops=[*REFERENCE_OPS])
    (y,) = evaluator.run(None, inputs)
    np.testing.assert_array_equal(y, np.arange(6.0).reshape(expected), strict=True)


@pytest.mark.parametrize("operator", ["LogSoftmax", "Softmax"])
def test_from_opset_13_on_a_row_is_one_axis(operator: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4))
    x[1] += 3000.0
    for axis in (0, 1, 2, None):
        expected = x - np.logaddexp.reduce(x, -1 if axis is None else axis, keepdims=True)
        expected = expected if operator == "LogSoftmax" else np.exp(expected)
        node = onnx.helper.make_node(
            operator, ["x"], ["y"], **({} if axis is None else {"axis": axis})
        )
        (y,) = ReferenceEvaluator(node, opsets={"": 13}, new_ops=[*REFERENCE_OPS]).run(
            None, {"x": x}
        )
        np.testing.assert_allclose(y, expected, rtol=1e-11, atol=1e-14, strict=True)
