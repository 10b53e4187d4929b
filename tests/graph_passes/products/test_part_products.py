"""A product whose columns are read apart becomes several, where that is chosen."""

import pytest

from wpk.graph_passes.core.sites import every_site
from wpk.graph_passes.products.part_products import PartProducts

H = '<ir_version: 8, opset_import: ["" : 17]>'


def chosen() -> PartProducts:
    part = PartProducts()
    part.changed = {every_site(part.name)}
    return part


def _shapes(proof, op: str, index: int) -> list[tuple[int, ...]]:
    return [tuple(n.inputs[index].shape) for n in proof.graph.nodes if n.op == op]


def test_query_key_and_value_become_products_of_their_own(prove):
    text = f"""{H} g (float[n, 5, 8] x, float[8, 12] w, float[12] b)
        => (float[n, 5, 4] q, float[n, 5, 6] k, float[n, 5, 2] v)
        <int64[3] sizes = {{4, 6, 2}}> {{
        a = MatMul(x, w)  c = Add(b, a)  q, k, v = Split<axis = 2>(c, sizes) }}"""
    proof = prove(text, chosen(), constants="w b", batches=(1, 3))
    assert proof.ops == ["MatMul", "Add"] * 3
    assert _shapes(proof, "MatMul", 1) == [(8, 4), (8, 6), (8, 2)]


def test_convolutions_keep_their_window_and_activation(prove):
    text = f"""{H} g (float[n, 3, 6, 5] x, float[8, 3, 3, 3] w, float[8] b)
        => (float[n, 4, 3, 3] y, float[n, 4, 3, 3] z) {{
        a = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, w, b)  r = LeakyRelu<alpha = 0.2>(a)
        y, z = Split<axis = 1>(r) }}"""
    proof = prove(text, chosen(), constants="w b", batches=(2,))
    assert proof.ops == ["Conv", "LeakyRelu"] * 2


def test_a_transposed_gemm_is_taken_apart_by_its_rows(prove):
    text = f"""{H} g (float[5, 8] x, float[6, 8] w, float[6] b) => (float[5, 3] y, float[5, 3] z) {{
        a = Gemm<transB = 1>(x, w, b)  y, z = Split<axis = 1>(a) }}"""
    proof = prove(text, chosen(), constants="w b")
    assert _shapes(proof, "Gemm", 1) == [(3, 8), (3, 8)]
    assert _shapes(proof, "Gemm", 2) == [(3,), (3,)]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("a = MatMul(x, w)  y, z = Split<axis = 0>(a)", "does not take the columns"),
        ("a = MatMul(x, w)  y, z = Split<axis = 1>(a)  t = Relu(a)", "'a'"),
    ],
)
def test_refuses_what_is_no_range_of_columns(load, body, reason):
    outputs = "float[p, q] y, float[r, s] z" + (", float[4, 6] t" if "t =" in body else "")
    graph = load(f"{H} g (float[4, 8] x, float[8, 6] w) => ({outputs}) {{ {body} }}", "w")
    result = chosen()(graph)
    (refusal,) = result.refusals
    assert reason in refusal.reason
    assert not result.rewritten


def test_usually_nothing_is_taken_apart_and_the_site_is_told(load):
    text = f"""{H} g (float[4, 8] x, float[8, 6] w) => (float[4, 3] y, float[4, 3] z) {{
        a = MatMul(x, w)  y, z = Split<axis = 1>(a) }}"""
    result = PartProducts()(load(text, "w"))
    assert (result.rewritten, result.refusals) == (0, [])
    (site,) = result.sites
    assert site.pass_name == "part-products"
