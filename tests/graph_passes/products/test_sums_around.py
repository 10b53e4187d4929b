"""Terms of positions are added to scores as these are, not to another shape of them; attention is then one operator."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.movement.reshapes.reshapes_behind import ReshapesBehind
from wpk.graph_passes.products.sums_around import SumsAround

INPUTS = """float[2, 3, 20, 9] q, float[2, 3, 9, 6] k, float[2, 3, 4, 5, 3, 1] a, float[2, 3, 4, 5, 1, 2] b"""
SIZES = "int64[6] parts = {2, 3, 4, 5, 3, 2}, int64[4] rows = {2, 3, 20, 6}"
SCORES = "s = MatMul(q, k)  p = Reshape(s, parts)"


def _text(body: str, inputs: str = INPUTS, output: str = "float[2, 3, 20, 6] y") -> str:
    return f'<ir_version: 8, opset_import: ["" : 17]> g ({inputs}) => ({output}) <{SIZES}> {{ {body} }}'


@pytest.mark.parametrize(
    "sums",
    [
        "t = Add(p, a)  u = Add(t, b)",
        "t = Add(a, p)  u = Add(b, t)",
        "c = Add(a, b)  u = Add(p, c)",
    ],
)
def test_adds_the_terms_to_the_product(prove, sums):
    proof = prove(_text(f"{SCORES}  {sums}  y = Reshape(u, rows)"), SumsAround())
    last = proof.graph.outputs[0].inputs[0]
    assert last.op == "Add"
    assert last.inputs[0].inputs[0].op == "MatMul"
    assert proof.ops.count("Add") == 2
    assert proof.ops.count("Reshape") == 1


def test_adds_to_a_part_of_a_product(prove):
    body = """s = MatMul(q, k)  zero = Constant<value_ints = [0]>()  end = Constant<value_ints = [20]>()
        axis = Constant<value_ints = [2]>()  part = Slice(s, zero, end, axis)  p = Reshape(part, parts)
        t = Add(p, a)  u = Add(t, b)  y = Reshape(u, rows)"""
    inputs = INPUTS.replace("[2, 3, 20, 9] q", "[2, 3, 23, 9] q")
    assert prove(_text(body, inputs), SumsAround()).graph.outputs[0].inputs[0].op == "Add"


def test_attention_with_relative_positions_is_one_operator(load):
    body = f"""{SCORES}  t = Add(p, a)  u = Add(t, b)  r = Reshape(u, rows)  w = Softmax(r)  y = MatMul(w, v)"""
    graph = load(_text(body, f"{INPUTS}, float[2, 3, 6, 9] v", "float[2, 3, 20, 9] y"))
    run_passes(graph, [SumsAround()])
    run_passes(graph, [FuseOperators()])
    assert sum(node.op.startswith("attention") for node in graph.nodes) == 1


@pytest.mark.parametrize(
    "body",
    [
        f"{SCORES}  t = Add(p, a)  y = Reshape(t, rows)",  # a term that is repeated along the last dimension
        "p = Reshape(z, parts)  t = Add(p, a)  u = Add(t, b)  y = Reshape(u, rows)",
        f"{SCORES}  t = Mul(p, a)  u = Add(t, b)  y = Reshape(u, rows)",
    ],
)
def test_leaves_other_sums(refusals, body):
    assert refusals(_text(body, f"{INPUTS}, float[2, 3, 20, 6] z"), SumsAround()) == []


def test_leaves_a_product_that_is_read_elsewhere(refusals):
    body = f"{SCORES}  t = Add(p, a)  u = Add(t, b)  y = Reshape(u, rows)  z = Relu(s)"
    output = "float[2, 3, 20, 6] y, float[2, 3, 20, 6] z"
    assert refusals(_text(body, output=output), SumsAround()) == ["'s' has 2 readers"]


def test_settles_beside_reshapes_that_move_behind_sums(load):
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2, 3, 6, 9] q, float[2, 3, 9, 5] k, float[6, 6, 5] c) => (float[6, 6, 5] y)
        <int64[3] joined = {6, 6, 5}, int64[4] apart = {2, 3, 6, 5}> {
        s = MatMul(q, k)  p = Reshape(s, joined)  d = Relu(c)  t = Add(p, d)  r = Reshape(t, apart)  e = Relu(r)
        y = Reshape(e, joined) }"""
    run_passes(load(text), [SumsAround(), ReshapesBehind()])
