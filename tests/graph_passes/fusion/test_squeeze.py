"""Squeezes: a global mean, two products of its row and what they scale become one operator."""

import pytest

from wpk.graph_passes import called
from wpk.graph_passes.fusion.fuse_operators import FuseOperators

H = '<ir_version: 8, opset_import: ["" : 20]>'
WEIGHTS = "float[4,6,1,1] w1, float[4] b1, float[6,4,1,1] w2, float[6] b2"
NAMES = "w1 b1 w2 b2"
GATES = """p = GlobalAveragePool(x)  d = Conv(p, w1, b1)  h = Relu(d)  u = Conv(h, w2, b2)
    g = HardSigmoid(u)"""


def model(body: str, *, x: str = "float[N,6,5,3] x", y: str = "float[N,6,5,3] y") -> str:
    return f"{H} g ({x}, {WEIGHTS}) => ({y}) {{ {body} }}"


def test_mean_products_and_scaling_are_inside(prove):
    proof = prove(
        model(f"{GATES}  y = Mul(x, g)"), FuseOperators(), constants=NAMES, batches=(1, 3)
    )
    assert proof.ops == ["squeeze_0"]
    body = called(proof.graph, proof.graph.nodes[0])
    assert [node.op for node in body.nodes] == [
        *("GlobalAveragePool", "Conv", "Relu", "Conv", "HardSigmoid", "Mul")
    ]
    assert [tensor.name for tensor in body.inputs] == ["x", "w1", "b1", "w2", "b2"]


def test_linear_layers_behind_reshapes_are_inside(prove):
    shapes = "float[2,6,5,3] x, float[6,4] w1, float[4] b1, float[4,6] w2, float[6] b2"
    text = f"""{H} g ({shapes}) => (float[2,6,5,3] y) <int64[4] s = {{2, 6, 1, 1}}> {{
        p = GlobalAveragePool(x)  f = Flatten(p)  d = Gemm(f, w1, b1)  h = Gelu(d)
        u = Gemm(h, w2, b2)  g = Sigmoid(u)  r = Reshape(g, s)  m = Mul(x, r)  y = Add(m, x) }}"""
    proof = prove(text, FuseOperators(), constants=NAMES)
    assert proof.ops == ["squeeze_0"]


@pytest.mark.parametrize(
    ("body", "operators"),
    [
        (GATES.replace("g = ", "y = "), ["squeeze_0"]),
        # Gates that somebody else reads, too, are an operator's output.
        (f"{GATES}  m = Mul(x, g)  s = Neg(g)  y = Add(m, s)", ["squeeze_0", "neg_2", "mul_add_1"]),
    ],
    ids=["gates are the output", "gates are read twice"],
)
def test_without_scaling_the_products_are_joined(body, operators, prove):
    y = "float[N,6,1,1] y" if "Add" not in body else "float[N,6,5,3] y"
    proof = prove(model(body, y=y), FuseOperators(), constants=NAMES, rewritten=len(operators))
    assert proof.ops == operators


@pytest.mark.parametrize(
    "body",
    [
        # The mean, or the hidden row, is read by somebody else.
        f"{GATES}  m = Mul(x, g)  y = Add(m, p)",
        f"{GATES}  m = Mul(x, g)  t = ReduceSum(h)  y = Add(m, t)",
        # A row that is no mean.
        GATES.replace("GlobalAveragePool", "GlobalMaxPool") + "  y = Mul(x, g)",
        # A mean of something that is computed first.
        f"a = Neg(x)  {GATES.replace('(x)', '(a)')}  y = Mul(x, g)",
    ],
)
def test_others_stay_apart(body, load):
    graph = load(model(body), NAMES)
    FuseOperators()(graph)
    assert not [node.op for node in graph.nodes if node.op.startswith("squeeze")]


def test_a_large_image_is_pooled_by_itself(load):
    text = model(f"{GATES}  y = Mul(x, g)").replace("[N,6,5,3]", "[N,6,512,512]")
    graph = load(text, NAMES)
    FuseOperators()(graph)
    kinds = sorted(node.op.partition("_")[0] for node in graph.nodes)
    assert kinds == ["globalaveragepool", "mul", "squeeze"]


def test_what_computes_much_is_scaled_by_itself(load):
    """A row's few blocks would take longer for it than a launch."""
    body = f"{GATES}  m = Mul(x, g)  a = Add(m, x)  b = Gelu(a)  y = Mul(b, x)"
    graph = load(model(body).replace("[N,6,5,3]", "[N,6,256,256]"), NAMES)
    FuseOperators()(graph)
    kinds = sorted(node.op.partition("_")[0] for node in graph.nodes)
    assert kinds == ["mul", "squeeze"]


def test_each_part_can_be_taken_back(load):
    """What scales, then the mean, then all of it."""
    changed: set[str] = set()
    found = []
    for _ in range(4):
        graph, each = load(model(f"{GATES}  y = Mul(x, g)"), NAMES), FuseOperators()
        each.changed = changed
        result = each(graph)
        found.append(sorted(node.op.partition("_")[0] for node in graph.nodes))
        joined = [site for site in result.sites if "one operator" in site.words]
        changed = {*changed, *(site.key for site in joined[-1:])}
    assert found[:3] == [
        ["squeeze"],
        ["mul", "squeeze"],
        ["globalaveragepool", "mul", "squeeze"],
    ]
    assert len(found[3]) == 4


def test_without_clusters_nothing_is_joined(load):
    graph = load(model(f"{GATES}  y = Mul(x, g)"), NAMES)
    FuseOperators(clusters=False)(graph)
    assert len(graph.nodes) == 4
