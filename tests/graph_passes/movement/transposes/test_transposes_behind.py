"""Element-wise nodes compute before the transposes that they read through."""

import pytest

from wpk.graph_passes.movement.transposes.transposes_behind import TransposesBehind

H = '<ir_version: 8, opset_import: ["" : 17]>'
GIVEN = """float[n, 3, 5, 4] x, float[4, 4] w, float[4, 4, 1, 1] f, float[n, 4, 3, 5] z, float[4, 1, 1] c,
    float[5] r"""
PRODUCT = "p = MatMul(x, w)  t = Transpose<perm = [0, 3, 1, 2]>(p)"
TURNED = "Transpose<perm = [0, 3, 1, 2]>"


def _text(body: str) -> str:
    return f"{H} g ({GIVEN}) => (float[n, 4, 3, 5] y) {{ {PRODUCT}  {body} }}"


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        ("y = Relu(t)", ["MatMul", "Relu", "Transpose"]),
        ("y = Mul(c, t)", ["MatMul", "Mul", "Transpose"]),
        ("y = Add(t, r)", ["MatMul", "Add", "Transpose"]),
        (f"q = Tanh(x)  u = {TURNED}(q)  y = Add(t, u)", ["MatMul", "Tanh", "Add", "Transpose"]),
    ],
)
def test_an_element_wise_node_goes_before_the_transpose(prove, body, ops):
    proof = prove(_text(body), TransposesBehind(), constants="w f c r", batches=(1, 3))
    assert sorted(proof.ops) == sorted(ops)
    assert proof.ops[-1] == "Transpose"


def test_a_convolution_before_the_product_is_turned(prove):
    text = _text("y = Add(t, s)").replace("{ p =", "{ s = Conv(z, f)  p =")
    proof = prove(text, TransposesBehind(), constants="w f", batches=(1, 3))
    assert proof.ops == ["Conv", "MatMul", "Transpose", "Add", "Transpose"]


def test_a_product_before_the_convolution_is_turned(prove):
    text = f"""{H} g (float[n, 4, 3, 5] z, float[n, 3, 5, 4] x, float[4, 4] w, float[4, 4, 1, 1] f)
        => (float[n, 3, 5, 4] y) {{
        p = MatMul(x, w)  c = Conv(z, f)  t = Transpose<perm = [0, 2, 3, 1]>(c)  y = Add(p, t) }}"""
    proof = prove(text, TransposesBehind(), constants="w f", batches=(1, 3))
    assert proof.ops == ["MatMul", "Conv", "Transpose", "Add", "Transpose"]


def test_an_image_before_a_norm_of_channels_is_turned(prove):
    text = f"""{H} g (float[n, 4, 3, 5] z, float[4, 4, 1, 1] f, float[4] s) => (float[n, 4, 3, 5] y) {{
        c = Conv(z, f)  d = Conv(c, f)  e = Transpose<perm = [0, 2, 3, 1]>(d)  l = LayerNormalization(e, s)
        t = {TURNED}(l)  y = Add(c, t) }}"""
    proof = prove(text, TransposesBehind(), constants="f s", batches=(1, 3))
    assert proof.ops[-2:] == ["Add", "Transpose"]


def test_a_product_in_an_images_shape_is_an_operator(prove):
    text = f"""{H} g (float[n, 15, 4] x, float[4, 4] w) => (float[n, 4, 3, 5] y)
        <int64[4] image = {{0, 3, 5, 4}}> {{
        p = MatMul(x, w)  r = Reshape(p, image)  t = Transpose<perm = [0, 3, 1, 2]>(r)  y = Relu(t) }}"""
    proof = prove(text, TransposesBehind(), constants="w", batches=(1, 3))
    assert proof.ops == ["MatMul", "Reshape", "Relu", "Transpose"]


@pytest.mark.parametrize(
    "body",
    [
        "y = Add(t, z)",  # which lies as the model says
        "q = Tanh(x)  u = Transpose<perm = [0, 3, 1, 2]>(q)  v = Neg(u)  s = Sin(z)  y = Add(v, s)",
        "q = MatMul(z, k)  y = Sub(t, q)",  # another product, which could be turned as well
        "s = Conv(z, f)  y = Add(t, s)",  # the convolution is ready last
    ],
)
def test_what_would_only_move_the_transpose_stays(load, body):
    text = _text(body).replace("float[5] r", "float[5] r, float[5, 5] k")
    graph = load(text, constants="w f c r k")
    adding = [node for node in graph.nodes if node.op in ("Add", "Sub")]
    TransposesBehind()(graph)
    assert all(any(node is each for each in graph.nodes) for node in adding)


def test_matrices_and_turned_inputs_stay(load):
    for text in (
        f"{H} g (float[3, 4] x) => (float[4, 3] y) {{ a = Exp(x)  t = Transpose(a)  y = Relu(t) }}",
        f"{H} g (float[n, 3, 4] x) => (float[n, 4, 3] y) {{ t = Transpose<perm = [0, 2, 1]>(x)  y = Relu(t) }}",
    ):
        assert TransposesBehind()(load(text)).rewritten == 0
