"""RMS normalisation is found with its scale, only over the last axes, and raises the opset it needs."""

import pytest

from wpk.graph_passes.clean.definitions.modern_forms import ModernForms
from wpk.graph_passes.recognise.layer_norm import RecognizeLayerNorm
from wpk.graph_passes.recognise.rms_norm import RecognizeRmsNorm


def _text(body: str, axis: str = "-1", opset: int = 20, output: str = "float[n, 5, 8] y") -> str:
    return f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[n, 5, 8] x, float[8] g) => ({output})
        <float two = {{2}}, float eps = {{0.1}}, float one = {{1}}, int64[1] axis = {{{axis}}}> {{
        {body} }}"""


ROOT = "p = Pow(x, two)  v = ReduceMean(p, axis)  w = Add(v, eps)  s = Sqrt(w)"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        (ROOT + " r = Reciprocal(s)  n = Mul(x, r)  y = Mul(g, n)", []),
        (ROOT + " r = Div(one, s)  n = Mul(r, x)  y = Mul(n, g)", []),
        (ROOT + " n = Div(x, s)  y = Mul(n, g)", []),
        (ROOT.replace("Pow(x, two)", "Mul(x, x)") + " n = Div(x, s)  y = Mul(n, g)", []),
        (ROOT.replace("Add(v, eps)", "Add(eps, v)") + " n = Div(x, s)  y = Add(n, x)", ["Add"]),
        (ROOT + " n = Div(x, s)  y = Add(n, g)", ["Add"]),
    ],
)
def test_recognises(prove, body, left):
    proof = prove(_text(body), RecognizeRmsNorm(), constants="g", batches=(1, 3))
    norm = proof.node("RMSNormalization")
    assert norm.attrs["epsilon"] == pytest.approx(0.1)
    assert norm.attrs["axis"] == 2
    assert proof.graph.opset == 23
    assert sorted(proof.ops) == sorted(["RMSNormalization", *left])


def test_casts_stay_around(prove):
    text = """<ir_version: 8, opset_import: ["" : 20]>
        g (float16[2, 8] x, float16[8] g) => (float16[2, 8] y)
        <float two = {2}, float eps = {0.1}, int64[1] axis = {-1}> {
        f = Cast<to = 1>(x)  p = Pow(f, two)  v = ReduceMean(p, axis)  w = Add(v, eps)  s = Sqrt(w)
        n = Div(f, s)  h = Cast<to = 10>(n)  y = Mul(g, h) }"""
    proof = prove(text, RecognizeRmsNorm(), constants="g", terms=1 << 14)
    assert proof.ops == ["Cast", "RMSNormalization", "Cast", "Mul"]


def test_recognises_several_last_axes(prove):
    text = _text(ROOT + " y = Div(x, s)").replace("int64[1] axis = {-1}", "int64[2] axis = {1, 2}")
    assert prove(text, RecognizeRmsNorm()).node("RMSNormalization").attrs["axis"] == 1


@pytest.mark.parametrize(
    ("image", "vector"),
    [("n, 8, 5", "8, 1"), ("n, 8, 3, 5", "1, 8, 1, 1"), ("2, 8, 1, 3, 2", "8, 1, 1, 1")],
)
def test_recognises_norms_of_channels(prove, image, vector):
    text = _text(ROOT + " r = Reciprocal(s)  n = Mul(x, r)  y = Mul(g, n)")
    text = text.replace("axis = {-1}", "axis = {1}").replace("n, 5, 8", image)
    text = text.replace("float[8]", f"float[{vector}]")
    proof = prove(text, RecognizeRmsNorm(), constants="g")
    assert proof.ops == ["Transpose", "RMSNormalization", "Transpose"]
    assert list(proof.node("RMSNormalization").inputs[1].shape) == [8]


def test_a_newer_graph_keeps_its_opset(load):
    graph = load(_text(ROOT + " y = Div(x, s)", opset=23))
    assert RecognizeRmsNorm()(graph).rewritten == 1
    assert graph.opset == 23


def test_what_is_centred_is_left_to_layer_normalisation(load):
    body = ROOT.replace("Pow(x", "Pow(d").replace(
        "p =", "m = ReduceMean(x, axis) d = Sub(x, m) p ="
    )
    graph = load(_text(body + " y = Div(d, s)"))
    assert RecognizeLayerNorm()(graph).rewritten == 1
    assert RecognizeRmsNorm()(graph).rewritten == 0


TAIL = " n = Div(x, s)  y = Mul(n, g)"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            _text(ROOT + " y = Div(x, s)", axis="0"),
            "it normalises axes [0] of 3, which are not the last ones",
        ),
        (
            _text(ROOT + TAIL + " z = Relu(v)", output="float[n, 5, 8] y, float[n, 5, 1] z"),
            "'v' inside the pattern is read elsewhere",
        ),
        (
            _text(ROOT + TAIL, output="float[n, 5, 8] y, float[n, 5, 1] s"),
            "'s' inside the pattern is read elsewhere",
        ),
        (
            _text(ROOT + " y = Div(x, s)").replace(
                "int64[1] axis = {-1}", "int64[3] axis = {0, 1, 2}"
            ),
            "the normalised dimensions of 'x' are free",
        ),
    ],
)
def test_refuses(refusals, text, reason):
    assert refusals(text, RecognizeRmsNorm(), "g") == [reason]


def test_refuses_graphs_that_cannot_be_raised(refusals):
    text = _text(
        ROOT + " r = Div(x, s)  y = If(c) <then_branch = t () => (float[n, 5, 8] a) "
        "{ a = Relu(r) }, else_branch = e () => (float[n, 5, 8] b) { b = Neg(r) }>"
    )
    text = text.replace("(float[n, 5, 8] x", "(bool c, float[n, 5, 8] x")
    (reason,) = refusals(text, RecognizeRmsNorm())
    assert reason.startswith(
        "RMSNormalization needs opset 23, the graph has 20: If holds a subgraph"
    )


@pytest.mark.parametrize(
    "body",
    [
        ROOT.replace("two)", "one)") + " y = Div(x, s)",
        ROOT + " t = Relu(x)  y = Div(t, s)",
        ROOT.replace("Sqrt", "Exp") + " y = Div(x, s)",
        ROOT.replace("ReduceMean", "ReduceMax") + " y = Div(x, s)",
        ROOT + " y = Div(s, x)",
        ROOT + " r = Div(two, s)  y = Mul(x, r)",
    ],
)
def test_other_arithmetic_stays(refusals, body):
    assert refusals(_text(body), RecognizeRmsNorm()) == []


def test_refusals_of_raising_are_told_without_raising(load):
    graph = load(_text(ROOT + " y = Div(x, s)"))
    assert ModernForms(23).refusals(graph) == []
    assert graph.opset == 20
