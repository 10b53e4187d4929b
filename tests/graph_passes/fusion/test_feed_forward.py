"""Feed-forward blocks: both products and the norm of their rows become one operator where that is chosen."""

import pytest

from wpk.dtypes import DType
from wpk.graph_passes import called, every_site
from wpk.graph_passes.fusion.feed_forward import FuseFeedForwards

H = '<ir_version: 8, opset_import: ["" : 20]>'
WEIGHTS = "float16[16,64] u, float16[64] b, float16[64,16] v, float16[16] c, float16[16] one"
NAMES = "u b v c one=1"
BLOCK = "h = MatMul(n, u)  i = Add(h, b)  g = Gelu(i)  o = MatMul(g, v)  p = Add(o, c)"
SHAPES = "int64[2] rows = {80, 16}, int64[3] whole = {2, 40, 16}"
GEMMS = """r = Reshape(n, rows)  h = Gemm(r, u, b)  g = Gelu(h)  o = Gemm(g, v, c)
    p = Reshape(o, whole)"""
NORM = "n = LayerNormalization(x, one)"


def model(body: str, *, x: str = "float16[2,40,16] x", weights: str = WEIGHTS) -> str:
    shape = x.split(" ")[0]
    return f"{H} g ({x}, {weights}) => ({shape} y) <{SHAPES}> {{ {body} }}"


def joins() -> FuseFeedForwards:
    fusion = FuseFeedForwards(DType.FP16)
    fusion.changed = {every_site(fusion.name)}
    return fusion


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        (
            f"{NORM}  {BLOCK}  y = Add(p, x)",
            ["LayerNormalization", "MatMul", "Add", "Gelu", "MatMul", "Add", "Add"],
        ),
        (
            f"{NORM}  {GEMMS}  y = Add(p, x)",
            ["LayerNormalization", "Reshape", "Gemm", "Gelu", "Gemm"],
        ),
        (
            BLOCK.replace("(n,", "(x,").replace("p =", "y ="),
            ["MatMul", "Add", "Gelu", "MatMul", "Add"],
        ),
        (  # a norm that somebody else reads, too, is an operator's output
            f"{NORM}  {BLOCK}  y = Add(p, n)",
            ["MatMul", "Add", "Gelu", "MatMul", "Add", "Add"],
        ),
    ],
    ids=["with its norm", "between reshapes", "of rows as they are", "a norm of others"],
)
def test_both_products_are_inside(body, ops, load):
    graph = load(model(body), NAMES)
    result = joins()(graph)
    (call,) = [node for node in graph.nodes if node.op.startswith("feed_forward")]
    assert [node.op for node in called(graph, call).nodes] == ops
    assert result.rewritten == 1


def test_usually_both_are_operators_of_their_own(load):
    graph = load(model(f"{NORM}  {BLOCK}  y = Add(p, x)"), NAMES)
    result = FuseFeedForwards(DType.FP16)(graph)
    assert result.rewritten == 0
    (site,) = result.sites
    assert site.words == "the two products of a feed-forward block are two operators"
    assert not result.refusals


def test_a_site_is_joined_by_its_key_and_not_by_another_ones(load):
    text = model(f"{NORM}  {BLOCK}  y = Add(p, x)")
    fusion = FuseFeedForwards(DType.FP16)
    key = fusion(load(text, NAMES)).sites[0].key
    for changed, rewritten in (({key}, 1), ({f"{key}0"}, 0)):
        fusion.changed = changed
        assert fusion(load(text, NAMES)).rewritten == rewritten


def test_a_second_run_joins_nothing(load):
    graph = load(model(f"{NORM}  {BLOCK}  y = Add(p, x)"), NAMES)
    assert joins()(graph).rewritten == 1
    again = joins()(graph)
    assert (again.rewritten, again.sites) == (0, [])


WIDE = "float16[264,512] u, float16[512] b, float16[512,264] v, float16[264] c, float16[264] one"
FLAT = "float16[80,16] x"


@pytest.mark.parametrize(
    "text",
    [
        model(f"{BLOCK.replace('(n,', '(x,')}  q = ReduceMax(g)  y = Add(p, q)"),
        model(f"{BLOCK.replace('(n,', '(x,')}  y = Add(p, x)", x=FLAT),
        model(f"{BLOCK.replace('(n,', '(x,')}  y = Add(p, x)", x="float16[2,20,16] x"),
        model(f"{BLOCK.replace('(n,', '(x,')}  y = Add(p, x)", x="float16[99,1,16] x"),
        model(
            f"{BLOCK.replace('(n,', '(x,')}  y = Add(p, x)", x="float16[2,40,264] x", weights=WIDE
        ),
        model(
            f"{BLOCK.replace('(n,', '(x,').replace('Gelu(i)', 'Mul(i, r)')}  y = Add(p, x)",
            weights=f"{WEIGHTS}, float16[2,40,64] r",
        ),
        model(f"{BLOCK.replace('(n,', '(x,')}  y = Add(p, x)").replace("float16", "float"),
    ],
    ids=[
        *("hidden rows that others read", "a row of each image", "few rows", "rows of one each"),
        *("wide rows", "an operand of each hidden row", "fp32"),
    ],
)
def test_others_stay_apart(text, load):
    graph = load(text, NAMES)
    result = joins()(graph)
    assert (result.rewritten, result.sites) == (0, [])


@pytest.mark.parametrize(
    "fusion", [FuseFeedForwards(), FuseFeedForwards(DType.FP16, warpgroups=False)]
)
def test_where_no_kernel_computes_them_none_is_joined(fusion, load):
    fusion.changed = {every_site(fusion.name)}
    graph = load(model(f"{NORM}  {BLOCK}  y = Add(p, x)"), NAMES)
    assert fusion(graph).sites == []
