"""A normalisation and an activation before a product become limits of what it reads."""

import numpy as np
import pytest

from wpk.dtypes import ASKED, Precision
from wpk.graph_passes.products.clamp import ClampBeforeProduct

H = '<ir_version: 8, opset_import: ["" : 17]>'
GIVEN = """float[n, 6, 4, 4] x, float[n, 6, 4, 4] u, float[6, 1, 1] s, float[6, 1, 1] t, float[8, 12, 1, 1] w,
    float[8] b, float[8, 12, 2, 2] wide, float[8, 12, 3, 3] padded, float[8, 6, 2, 2] grouped,
    float[12, 1, 1] ss, float[12, 1, 1] tt, float[8, 12, 1, 1] d"""
CONSTANTS = "s t w b wide padded grouped ss tt d"
CLIP = "<float zero = {0}, float six = {6}, float one = {1}>"


def _text(body: str, constants: str = "") -> str:
    return f"{H} g ({GIVEN}) => (float[n, 8, h, v] y) {constants} {{ c = Concat<axis = 1>(x, u)  {body} }}"


@pytest.mark.parametrize(
    ("body", "limits"),
    [
        ("m = Mul(c, ss)  a = Add(tt, m)  r = Relu(a)  y = Conv(r, w, b)", ["Max", "Min"]),
        ("m = Mul(c, ss)  a = Add(tt, m)  r = Relu(a)  y = Conv(r, w)", ["Max", "Min"]),
        ("a = Add(c, tt)  r = Relu(a)  y = Conv(r, w)", ["Max"]),
        ("r = Relu(c)  y = Conv(r, w)", ["Max"]),
        ("r = Relu(c)  y = Conv<strides = [2, 2]>(r, wide, b)", ["Max"]),
        ("m = Mul(ss, c)  r = Clip(m, zero, six)  y = Conv(r, w)", ["Max", "Min"]),
        ("a = Add(c, tt)  r = Clip(a, zero)  y = Conv(r, w)", ["Max"]),
    ],
)
def test_what_is_normalised_is_limited_instead(prove, body, limits):
    text = _text(body, CLIP if "Clip" in body else "")
    each = ClampBeforeProduct(Precision.FP32)
    proof = prove(text, each, constants=CONSTANTS, batches=(1, 3))
    assert proof.ops == ["Concat", *limits, "Conv"]


def test_a_kernel_with_other_readers_does_not_compute_the_activation(prove):
    body = """p = MaxPool<kernel_shape = [1, 1]>(c)  r = Relu(p)  v = Conv(r, w)  q = Conv(p, d)
        y = Add(v, q)"""
    proof = prove(_text(body), ClampBeforeProduct(Precision.FP32), constants=CONSTANTS)
    assert "Relu" not in proof.ops


@pytest.mark.parametrize("value", [0.0, 1e-30, -1e-30])
def test_channels_that_hardly_depend_on_their_input(prove, value):
    # 1e-30 takes the limits of some channels beyond fp32: they give a constant, or nothing.
    body = "m = Mul(c, ss)  a = Add(m, tt)  r = Relu(a)  y = Conv(r, w, b)"
    text = _text(body)
    constants = CONSTANTS.replace("ss", f"ss={value}")
    proof = prove(text, ClampBeforeProduct(Precision.FP32), constants=constants)
    assert not np.isnan(proof.node("Conv").inputs[2].values).any()


@pytest.mark.parametrize("precision", list(ASKED))
def test_channels_under_their_limit_give_nothing(load, export, run_model, precision):
    """Whatever weights and limits are rounded to, as the offsets are sums of the rounded ones."""
    text = _text("m = Mul(c, ss)  a = Add(m, tt)  r = Relu(a)  y = Conv(r, w, b)")
    graph = load(text, CONSTANTS.replace("ss", "ss=0.3"))
    before = export(graph)
    assert ClampBeforeProduct(precision)(graph).rewritten == 1
    low = np.full((1, 6, 4, 4), -1e4, np.float32)
    (y,) = run_model(export(graph), {"x": low, "u": low})
    bias = next(i for i in before.graph.initializer if i.name == "b")
    expected = np.frombuffer(bias.raw_data, np.float32).reshape(8, 1, 1)
    # Sums of 12 products of about 1 in fp32, rounded in another order than the offsets were.
    np.testing.assert_allclose(y[0], np.broadcast_to(expected, y[0].shape), atol=24 * 2.0**-24 * 8)


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16])
def test_offsets_survive_16_bits(load, export, run_model, precision):
    text = _text("m = Mul(c, ss)  a = Add(m, tt)  r = Relu(a)  y = Conv(r, w)")
    graph = load(text, CONSTANTS.replace("ss", "ss=0.3").replace("tt", "tt=-40"))
    assert ClampBeforeProduct(precision)(graph).rewritten == 1
    largest = 0.0
    for tensor in [t for node in graph.nodes for t in node.inputs if hasattr(t, "values")]:
        tensor.values = tensor.values.astype(precision.storage.numpy).astype(np.float32)
        largest = max(largest, float(np.abs(tensor.values).max() if tensor.values.ndim == 1 else 0))
    low = np.zeros((1, 6, 4, 4), np.float32)
    (y,) = run_model(export(graph), {"x": low, "u": low})
    # Nothing but what two roundings leave of offsets of this size, and sums of 12 in fp32.
    assert largest > 30
    left = precision.storage.unit_roundoff**2 * largest + 24 * 2.0**-24 * 12 * 40
    assert np.abs(y).max() <= left


@pytest.mark.parametrize("precision", [Precision.FP16, Precision.BF16, Precision.TF32])
def test_weights_and_limits_are_numbers_of_the_type_of_products(load, precision):
    graph = load(_text("m = Mul(c, ss)  a = Add(m, tt)  r = Relu(a)  y = Conv(r, w)"), CONSTANTS)
    assert ClampBeforeProduct(precision)(graph).rewritten == 1
    (conv,) = [node for node in graph.nodes if node.op == "Conv"]
    (raised,) = [node for node in graph.nodes if node.op == "Max"]
    for array in (conv.inputs[1].values, raised.inputs[1].values):
        if precision is Precision.TF32:
            assert not (array.view(np.uint32) & 0x1FFF).any()
        else:
            kind = precision.storage.numpy
            np.testing.assert_array_equal(array.astype(kind).astype(np.float32), array)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            "r = Relu(c)  y = Conv<pads = [1, 1, 1, 1]>(r, padded)",
            "'Conv_2' pads with zeros, which are no zeros of what it would read",
        ),
        ("r = Relu(c)  v = Conv(r, w)  q = Conv(r, d)  y = Add(v, q)", "'r' has 2 readers"),
    ],
)
def test_refuses(refusals, body, reason):
    each = ClampBeforeProduct(Precision.FP32)
    assert reason in refusals(_text(body), each, constants=CONSTANTS)


@pytest.mark.parametrize(
    "body",
    [
        "r = Relu(c)  y = Conv<group = 2>(r, grouped)",
        "v = Conv(c, w)  k = Sigmoid(v)  z = Concat<axis = 1>(k, x)  e = Sin(z)  r = Relu(e)  y = MaxPool<kernel_shape = [1, 1]>(r)",
        "r = Clip(c, one, six)  y = Conv(r, w)",
        "e = Sin(c)  r = Relu(e)  y = Conv(r, w)",
    ],
)
def test_leaves_alone_what_is_another_kernels_or_no_limit(refusals, body):
    text = _text(body, CLIP if "Clip" in body else "")
    if "MaxPool" in body:
        text = text.replace("float[n, 8, h, v] y", "float[n, 14, h, v] y")
    assert refusals(text, ClampBeforeProduct(Precision.FP32), constants=CONSTANTS) == []


def test_refuses_weights_that_a_type_cannot_hold(refusals):
    body = "m = Mul(c, ss)  r = Relu(m)  y = Conv(r, w)"
    for value, words in ((1e-6, "are too small for fp16"), (1e6, "is larger than fp16 reaches")):
        constants = CONSTANTS.replace("ss", f"ss={value}")
        (reason,) = refusals(_text(body), ClampBeforeProduct(Precision.FP16), constants=constants)
        assert words in reason
