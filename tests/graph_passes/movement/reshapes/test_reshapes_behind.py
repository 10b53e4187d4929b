"""Element-wise nodes compute in the shape of the product that is ready last."""

import pytest

from wpk.graph_passes.movement.reshapes.reshapes_behind import ReshapesBehind

H = '<ir_version: 8, opset_import: ["" : 17]>'
GIVEN = """float[n, 15, 4] x, float[4, 4] w, float[4, 4, 1, 1] f, float[n, 4, 3, 5] v, float[n, 3, 5, 4] z,
    float[4] c, float[1, 1, 1, 4] d, float[5, 1] e"""
PRODUCT = "p = MatMul(x, w)  r = Reshape(p, image)"


def _text(body: str, output: str = "float[n, 3, 5, 4] y", before: str = "") -> str:
    return f"""{H} g ({GIVEN}) => ({output})
        <int64[4] image = {{0, 3, 5, 4}}, int64[3] rows = {{0, 15, 4}}, int64[4] heads = {{0, 15, 2, 2}}> {{
        {before}  {PRODUCT}  {body} }}"""


@pytest.mark.parametrize(
    ("text", "ops"),
    [
        (_text("y = Relu(r)"), ["MatMul", "Relu", "Reshape"]),
        (_text("y = Mul(c, r)"), ["MatMul", "Mul", "Reshape"]),
        (_text("y = Mul(r, d)"), ["MatMul", "Mul", "Reshape"]),
        (_text("y = Add(r, z)"), ["MatMul", "Reshape", "Add", "Reshape"]),
        (
            _text("q = MatMul(p, w)  s = Reshape(q, image)  y = Sub(s, r)"),
            ["MatMul", "MatMul", "Sub", "Reshape"],
        ),
        (
            _text("y = Add(u, r)", before="k = Conv(v, f)  u = Transpose<perm = [0, 2, 3, 1]>(k)"),
            ["Conv", "Transpose", "Reshape", "MatMul", "Add", "Reshape"],
        ),
        (
            _text(
                "k = Conv(v, f)  u = Transpose<perm = [0, 2, 3, 1]>(k)  s = Reshape(u, rows)"
                "  y = Add(p, s)",
                "float[n, 15, 4] y",
            ),
            ["Conv", "Transpose", "MatMul", "Reshape", "Add", "Reshape"],
        ),
    ],
)
def test_an_element_wise_node_goes_before_the_reshape(prove, text, ops):
    proof = prove(text, ReshapesBehind(), constants="w f c d", batches=(1, 3))
    assert sorted(proof.ops) == sorted(ops)
    assert proof.ops[-1] == "Reshape"


@pytest.mark.parametrize(
    "text",
    [
        _text("y = Mul(r, e)"),  # a constant that is not the same for all rows
        _text("s = Reshape(p, heads)  y = Relu(s)", "float[n, 15, 2, 2] y"),  # rows are parted
        _text("s = Reshape(z, rows)  t = Reshape(s, image)  y = Neg(t)"),  # of no operator
        _text("q = MatMul(z, w)  y = Add(q, r)"),  # another product is ready last
        _text("q = Abs(p)  s = Reshape(q, image)  y = Add(r, s)"),  # both are ready at once
    ],
)
def test_what_would_gain_nothing_stays(load, text):
    graph = load(text, constants="w f c d e")
    assert ReshapesBehind()(graph).rewritten == 0


def test_a_product_that_others_read_reshaped_stays(refusals):
    text = _text("y = Add(r, z)  q = Softmax(r)", "float[n, 3, 5, 4] y, float[n, 3, 5, 4] q")
    assert refusals(text, ReshapesBehind(), "w") == ["'r' has 2 readers"]
