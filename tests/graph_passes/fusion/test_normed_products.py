"""A normalisation without parameters goes into the products that alone read its rows."""

import pytest

from wpk.dtypes import DType
from wpk.graph_passes import called
from wpk.graph_passes.fusion.fuse_operators import FuseOperators

H = '<ir_version: 8, opset_import: ["" : 17]>'
GIVEN = """float16[2,9,8] x, float16[8] ones, float16[8] g, float16[8,6] w, float16[6] c, float16[8,6] v,
    float16[8,8] u, float16[2,8,6] many, float[8] wide"""
CONSTANTS = "ones=1 g w c v u many wide=1"
NORM = "n = LayerNormalization(x, ones)"
WIDE = "f = Cast<to = 1>(x)  m = LayerNormalization(f, wide)"
SHAPES = "<int64[2] rows = {18, 8}, int64[3] whole = {2, 9, 6}, int64[3] other = {2, 8, 9}>"
EACH = FuseOperators(DType.FP16)


def model(body: str, y: str = "float16[2,9,6] y") -> str:
    return f"{H} g ({GIVEN}) => ({y}) {SHAPES} {{ {body} }}"


@pytest.mark.parametrize(
    ("body", "operators", "nodes"),
    [
        (f"{NORM}  p = MatMul(n, w)  y = Add(p, c)", 1, ["LayerNormalization", "MatMul", "Add"]),
        (
            f"{NORM}  r = Reshape(n, rows)  p = Gemm(r, w, c)  y = Reshape(p, whole)",
            1,
            ["LayerNormalization", "Reshape", "Gemm"],
        ),
        (
            f"{WIDE}  n = Cast<to = 10>(m)  y = MatMul(n, w)",
            1,
            ["Cast", "LayerNormalization", "Cast", "MatMul"],
        ),
        (
            f"{NORM}  p = MatMul(n, w)  q = MatMul(n, v)  s = Sigmoid(p)  y = Mul(s, q)",
            2,
            ["LayerNormalization", "MatMul", "Sigmoid"],
        ),
    ],
    ids=["bias", "reshapes", "casts", "two products"],
)
def test_every_product_has_the_normalisation(load, body, operators, nodes):
    graph = load(model(body), CONSTANTS)
    EACH(graph)
    calls = [node for node in graph.nodes if node.domain == "wpk"]
    assert len(calls) == operators
    for call in calls:
        ops = [node.op for node in called(graph, call).nodes]
        assert "LayerNormalization" in ops
        assert call.op.startswith("normed_product")
    assert [node.op for node in called(graph, calls[0]).nodes][: len(nodes)] == nodes


@pytest.mark.parametrize(
    ("body", "y"),
    [
        (f"{NORM}  p = MatMul(n, u)  y = Add(p, n)", "float16[2,9,8] y"),
        ("n = LayerNormalization(x, g)  y = MatMul(n, w)", "float16[2,9,6] y"),
        (f"{NORM}  y = MatMul(n, many)", "float16[2,9,6] y"),
        (f"{NORM}  r = Reshape(n, other)  y = MatMul(u, r)", "float16[2,8,9] y"),
        (f"{NORM}  t = Transpose<perm = [0, 2, 1]>(n)  y = MatMul(t, n)", "float16[2,8,8] y"),
    ],
    ids=["a residual", "a scale", "many matrices", "no rows", "not constant"],
)
def test_others_stay_apart(load, body, y):
    graph = load(model(body, y), CONSTANTS)
    EACH(graph)
    assert not any(node.op.startswith("normed_product") for node in graph.nodes)


def test_only_products_of_16_bits_normalise(load):
    graph = load(model(f"{NORM}  y = MatMul(n, w)"), CONSTANTS)
    FuseOperators()(graph)
    assert len(graph.nodes) == 2


def test_it_is_a_choice(load):
    text = model(f"{NORM}  p = MatMul(n, w)  q = MatMul(n, v)  y = Mul(p, q)")
    result = EACH(load(text, CONSTANTS))
    (site,) = [each for each in result.sites if "normalise" in each.words]
    other = FuseOperators(DType.FP16)
    other.changed = {site.key}
    graph = load(text, CONSTANTS)
    other(graph)
    assert not any(node.op.startswith("normed_product") for node in graph.nodes)
