"""A product stores the moments of its rows for the products behind it that normalise them."""

import pytest

from wpk.dtypes import DType
from wpk.graph_passes import called
from wpk.graph_passes.fusion.fuse_operators import FuseOperators

GIVEN = """float16[2,9,8] a, float16[2,9,64] r, float16[64] ones, float16[8,64] v, float16[64] b,
    float16[64,6] w, float16[6] c, float16[64,4] u, float16[2,8,64] many, float[64] wide, float16[8,24] few,
    float16[24] some, float16[24,6] t"""
CONSTANTS = "ones=1 v b w c u many wide=1 few some=1 t"
SHAPES = "<int64[2] rows = {18, 64}, int64[3] whole = {2, 9, 64}, int64[3] other = {2, 64, 9}>"
EACH = FuseOperators(DType.FP16)
MAKES = "p = MatMul(a, v)  q = Add(p, b)  x = Add(q, r)"
NORM = "n = LayerNormalization(x, ones)"


def model(body: str, y: str = "float16[2,9,6] y", opset: int = 17) -> str:
    head = f'<ir_version: 8, opset_import: ["" : {opset}]>'
    return f"{head} g ({GIVEN}) => ({y}) {SHAPES} {{ {body} }}"


def calls(graph):
    return [node for node in graph.nodes if node.domain == "wpk"]


@pytest.mark.parametrize("opset", [17, 21])
@pytest.mark.parametrize(
    ("body", "readers"),
    [
        (f"{MAKES}  {NORM}  m = MatMul(n, w)  y = Add(m, c)", 1),
        (
            f"{MAKES}  f = Cast<to = 1>(x)  m = LayerNormalization(f, wide)  n = Cast<to = 10>(m)  y = MatMul(n, w)",
            1,
        ),
        (
            f"{MAKES}  {NORM}  m = MatMul(n, w)  s = MatMul(n, u)  z = ReduceMax<keepdims = 1>(s)  y = Add(m, z)",
            2,
        ),
        (f"{MAKES}  {NORM}  m = MatMul(n, w)  z = ReduceMax<keepdims = 1>(x)  y = Add(m, z)", 1),
    ],
    ids=["bias", "casts", "two products", "a reader beside"],
)
def test_a_product_gives_moments_to_those_behind(load, body, readers, opset):
    graph = load(model(body, opset=opset if "ReduceMax" not in body else 17), CONSTANTS)
    EACH(graph)
    maker, *others = calls(graph)
    assert [each.name for each in maker.outputs] == ["x", maker.outputs[1].name]
    moments = maker.outputs[1]
    assert list(moments.shape) == [2, 9, 1, 2]
    known = [each for each in others if any(t is moments for t in each.inputs)]
    assert len(known) == readers == len(moments.outputs)
    for each in known:
        ops = [node.op for node in called(graph, each).nodes]
        assert each.op.startswith("normed_product")
        assert "LayerNormalization" not in ops
        assert {"Sqrt", "Div", "MatMul"} <= {*ops}


def test_of_an_rms_norm_it_gives_mean_squares(load):
    body = f"{MAKES}  n = RMSNormalization(x, ones)  y = MatMul(n, w)"
    graph = load(model(body, opset=23), CONSTANTS)
    EACH(graph)
    assert list(calls(graph)[0].outputs[1].shape) == [2, 9, 1, 1]


@pytest.mark.parametrize(
    ("body", "y"),
    [
        (f"x = Add(r, r)  {NORM}  y = MatMul(n, w)", "float16[2,9,6] y"),
        (
            "d = MatMul(a, few)  n = LayerNormalization(d, some)  y = MatMul(n, t)",
            "float16[2,9,6] y",
        ),
        (
            f"{MAKES}  {NORM}  m = MatMul(n, w)  z = ReduceMax<keepdims = 1>(n)  y = Add(m, z)",
            "float16[2,9,6] y",
        ),
        (
            f"x = Reshape(r, whole)  {NORM}  y = MatMul(n, w)",
            "float16[2,9,6] y",
        ),
    ],
    ids=["no product", "no whole groups", "read by others", "rows of an input"],
)
def test_others_give_none(load, body, y):
    graph = load(model(body, y), CONSTANTS)
    EACH(graph)
    assert all(len(node.outputs) == 1 for node in calls(graph))


def test_it_is_a_choice_in_front_of_that_of_products_that_look_themselves(load):
    text = model(f"{MAKES}  {NORM}  y = MatMul(n, w)")
    result = EACH(load(text, CONSTANTS))
    (site,) = [each for each in result.sites if "moments" in each.words]
    assert not any("normalise the rows" in each.words for each in result.sites)
    other = FuseOperators(DType.FP16)
    other.changed = {site.key}
    graph = load(text, CONSTANTS)
    result = other(graph)
    assert any("normalise the rows" in each.words for each in result.sites)
    assert all(len(node.outputs) == 1 for node in calls(graph))
    assert any(node.op.startswith("normed_product") for node in calls(graph))


def test_a_product_with_moments_normalises_no_rows_itself(load):
    """One that normalises what it reads stores its rows as any other."""
    chain = (
        f"{MAKES}  {NORM}  g = MatMul(n, sq)  n2 = LayerNormalization(g, ones)  y = MatMul(n2, w)"
    )
    text = model(chain).replace("float16[24,6] t", "float16[24,6] t, float16[64,64] sq")
    graph = load(text, f"{CONSTANTS} sq")
    EACH(graph)
    for each in calls(graph):
        knows = any(t.name.endswith("Concat") for t in each.inputs)
        assert not (knows and len(each.outputs) == 2)
