"""Products between two Transposes multiply from the left."""

from typing import Any

from wpk.graph_passes.products.turned_products import TurnedProducts

MIXER = """<ir_version: 8, opset_import: ["" : 20]>
g (float[N, 5, 7] x, float[5, 6] wv, float[6] vb, float[6, 4] ww, float[4] wb) => (float[N, 4, 7] y)
    <float half = {0.5}> {
    t = Transpose<perm = [0, 2, 1]>(x)  p = MatMul(t, wv)  a = Add(p, vb)  h = Mul(a, half)  s = Sigmoid(h)
    q = MatMul(s, ww)  b = Add(q, wb)  y = Transpose<perm = [0, 2, 1]>(b) }"""
NAMES = "wv vb ww wb"


def test_a_mixer_multiplies_from_the_left(prove: Any) -> None:
    proof = prove(MIXER, TurnedProducts(), constants=NAMES, batches=(1, 3))
    assert proof.ops == ["MatMul", "Add", "Mul", "Sigmoid", "MatMul", "Add"]


def test_a_softmax_of_rows_stays(load: Any) -> None:
    text = MIXER.replace("s = Sigmoid(h)", "s = Softmax(h)")
    assert TurnedProducts()(load(text, NAMES)).rewritten == 0


def test_another_order_behind_the_products_stays(load: Any) -> None:
    text = MIXER.replace("perm = [0, 2, 1]>(b)", "perm = [1, 2, 0]>(b)")
    text = text.replace("(float[N, 4, 7] y)", "(float[7, 4, N] y)")
    assert TurnedProducts()(load(text, NAMES)).rewritten == 0


def test_a_result_that_something_else_reads_stays(load: Any) -> None:
    text = MIXER.replace("(float[N, 4, 7] y)", "(float[N, 4, 7] y, float[N, 7, 4] b)")
    result = TurnedProducts()(load(text, NAMES))
    assert result.rewritten == 0
    assert [each.reason for each in result.refusals] == ["'b' is a graph output"]
