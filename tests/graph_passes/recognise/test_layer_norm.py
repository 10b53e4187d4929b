"""Layer normalisation is found with its scale and bias, and only over the last axes."""

import onnx
import pytest

from wpk.graph_passes.recognise.layer_norm import RecognizeLayerNorm


def _text(body: str, axis: str = "-1", opset: int = 17, output: str = "float[n, 5, 8] y") -> str:
    means = f"m = ReduceMean <axes = [{axis}]> (x)  d = Sub(x, m)"
    return f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[n, 5, 8] x, float[8] g, float[8] b) => ({output})
        <float two = {{2}}, float eps = {{0.001}}, float one = {{1}}> {{
        {means} {body.replace("AXIS", axis)} }}"""


VARIANCE = """p = Pow(d, two)  v = ReduceMean <axes = [AXIS]> (p)  w = Add(v, eps)  s = Sqrt(w)"""


@pytest.mark.parametrize(
    ("body", "inputs"),
    [
        (VARIANCE + " n = Div(d, s)  t = Mul(n, g)  y = Add(t, b)", 3),
        (VARIANCE + " n = Div(d, s)  t = Mul(g, n)  y = Relu(t)", 2),
        (VARIANCE + " n = Div(d, s)  y = Relu(n)", 2),
        (VARIANCE + " r = Reciprocal(s)  n = Mul(r, d)  y = Mul(n, g)", 2),
        (VARIANCE + " r = Div(one, s)  n = Mul(d, r)  t = Mul(n, g)  y = Add(b, t)", 3),
        (VARIANCE.replace("Pow(d, two)", "Mul(d, d)") + " n = Div(d, s)  y = Mul(n, g)", 2),
    ],
)
def test_recognises(prove, body, inputs):
    proof = prove(_text(body), RecognizeLayerNorm(), constants="g b")
    norm = proof.node("LayerNormalization")
    assert len(norm.inputs) == inputs
    assert norm.attrs["epsilon"] == pytest.approx(0.001)
    assert set(proof.ops) <= {"LayerNormalization", "Relu"}


def test_recognises_several_last_axes(prove):
    proof = prove(_text(VARIANCE + " y = Div(d, s)", axis="1, 2"), RecognizeLayerNorm())
    assert proof.node("LayerNormalization").attrs["axis"] == 1


@pytest.mark.parametrize("shape", ["1, 8", "8"])
@pytest.mark.parametrize("image", ["n, 8, 5", "n, 8, 3, 5"])
def test_recognises_norms_of_channels(prove, shape, image):
    ones = ", 1" * (image.count(",") - 1)  # for each axis of places
    vector = shape + ones
    text = _text(VARIANCE + " n = Div(d, s)  t = Mul(n, g)  y = Add(b, t)", axis="1")
    text = text.replace("n, 5, 8", image).replace("float[8]", f"float[{vector}]")
    proof = prove(text, RecognizeLayerNorm(), constants="g b", batches=(1, 3))
    assert proof.ops == ["Transpose", "LayerNormalization", "Transpose"]
    assert [list(t.shape) for t in proof.node("LayerNormalization").inputs[1:]] == [[8], [8]]


def test_a_constant_along_places_stays_behind_a_norm_of_channels(prove):
    text = _text(VARIANCE + " n = Div(d, s)  t = Mul(n, g)  y = Add(b, t)", axis="1")
    text = text.replace("n, 5, 8", "n, 8, 8")
    proof = prove(text, RecognizeLayerNorm(), constants="g b")
    assert proof.ops == ["Transpose", "LayerNormalization", "Transpose", "Mul", "Add"]


TAIL = " n = Div(d, s)  y = Mul(n, g)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_text(VARIANCE + TAIL, opset=16), "LayerNormalization needs opset 17, the graph has 16"),
        (
            _text(VARIANCE + " y = Div(d, s)", axis="0"),
            "it normalises axes [0] of 3, which are not the last ones",
        ),
        (
            _text(VARIANCE + TAIL + " z = Relu(v)", output="float[n, 5, 8] y, float[n, 5, 1] z"),
            "'v' inside the pattern is read elsewhere",
        ),
        (
            _text(VARIANCE + TAIL, output="float[n, 5, 8] y, float[n, 5, 8] d"),
            "'d' inside the pattern is read elsewhere",
        ),
        (
            _text(VARIANCE + " y = Div(d, s)", axis="0, 1, 2"),
            "the normalised dimensions of 'x' are free",
        ),
    ],
)
def test_refuses(refusals, text, reason):
    assert refusals(text, RecognizeLayerNorm(), "g b") == [reason]


def test_root_mean_square_stays_a_reduction(refusals):
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 8] x) => (float[2, 8] y)
        <float eps = {0.001}> { p = Mul(x, x)  v = ReduceMean <axes = [-1]> (p)
        w = Add(v, eps)  s = Sqrt(w)  y = Div(x, s) }"""
    assert refusals(text, RecognizeLayerNorm()) == []


def test_different_axes_are_no_layer_norm(refusals):
    body = VARIANCE.replace("AXIS", "1") + " y = Div(d, s)"
    assert refusals(_text(body, axis="2"), RecognizeLayerNorm()) == []


def test_refuses_types_whose_constants_cannot_be_written(load):
    graph = load(
        """<ir_version: 8, opset_import: ["" : 20]> g (float[2, 8] x) => (float[2, 8] y)
        <int64[1] last = {-1}, float e = {0.00001}> {
        m = ReduceMean(x, last)  d = Sub(x, m)  s = Mul(d, d)  v = ReduceMean(s, last)
        t = Add(v, e)  r = Sqrt(t)  y = Div(d, r) }"""
    )
    graph.tensors()["x"].dtype = onnx.TensorProto.BFLOAT16
    (refusal,) = RecognizeLayerNorm()(graph).refusals
    assert refusal.reason == "'x' has a type that NumPy lacks"
