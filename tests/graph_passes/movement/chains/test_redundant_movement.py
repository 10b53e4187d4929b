"""Data movement that changes nothing goes."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.clean.elimination.identity_elimination import IdentityElimination
from wpk.graph_passes.movement.chains.redundant_movement import RedundantMovement
from wpk.graph_passes.movement.chains.reshape_chains import ReshapeChains

HEAD = """<ir_version: 8, opset_import: ["" : 17]>
  g (float[n, 2, 4] a, float[n, 3, 4] b, float[1, 4] c) => (OUTPUT)
  <int64[1] zero = {0}, int64[1] two = {2}, int64[1] five = {5}, int64[1] back = {-3},
   int64[1] far = {99}, int64[1] axis = {1}, int64[1] three = {3}, int64[2] parts = {2, 3},
   int64[2] shape = {2, 4}, bool[1] yes = {1}, bool[2] mixed = {1, 0}>"""


def _text(body: str, output: str) -> str:
    return f"{HEAD.replace('OUTPUT', output)} {{ {body} }}"


JOIN = "j = Concat <axis = 1> (a, b)"


@pytest.mark.parametrize(
    ("body", "output", "ops"),
    [
        (f"{JOIN}  s = Slice(j, zero, two, axis)  y = Relu(s)", "float[n, 2, 4] y", ["Relu"]),
        (f"{JOIN}  s = Slice(j, back, far, axis)  y = Relu(s)", "float[n, 3, 4] y", ["Relu"]),
        (
            f"{JOIN}  p, q = Split <axis = -2> (j, parts)  y = Relu(p)  z = Neg(q)",
            "float[n, 2, 4] y, float[n, 3, 4] z",
            ["Relu", "Neg"],
        ),
        (f"{JOIN}  y = Concat <axis = -2> (j, a)", "float[n, 7, 4] y", ["Concat"]),
        ("e = Expand(c, shape)  y = Mul(a, e)", "float[n, 2, 4] y", ["Mul"]),
        ("w = Where(yes, a, a)  y = Relu(w)", "float[n, 2, 4] y", ["Relu"]),
    ],
)
def test_removes(prove, body, output, ops):
    assert prove(_text(body, output), RedundantMovement(), batches=(1, 3)).ops == ops


def test_transposes_meet_around_an_activation(prove, load):
    body = """t = Transpose <perm = [0, 2, 1]> (a)  r = Relu(t)
        u = Transpose <perm = [0, 2, 1]> (r)  y = Neg(u)"""
    prove(_text(body, "float[n, 2, 4] y"), RedundantMovement())
    graph = load(_text(body, "float[n, 2, 4] y"))
    run_passes(graph, [RedundantMovement(), ReshapeChains(), IdentityElimination()])
    assert [node.op for node in graph.nodes] == ["Relu", "Neg"]


@pytest.mark.parametrize(
    ("body", "output"),
    [
        (f"{JOIN}  s = Slice(j, zero, three, axis)  y = Relu(s)", "float[n, 3, 4] y"),
        (f"{JOIN}  s = Slice(j, zero, two, two)  y = Relu(s)", "float[n, 5, 2] y"),
        (f"{JOIN}  y = Concat <axis = 2> (j, j)", "float[n, 5, 8] y"),
        ("e = Expand(c, shape)  y = Relu(e)", "float[2, 4] y"),
        ("e = Expand(c, shape)  y = Mul(c, e)", "float[2, 4] y"),
    ],
)
def test_keeps_what_changes_something(refusals, body, output):
    assert refusals(_text(body, output), RedundantMovement()) == []


@pytest.mark.parametrize(
    ("body", "output", "reason"),
    [
        (
            f"{JOIN}  y = Slice(j, zero, two, axis)",
            "float[n, 2, 4] y",
            "'y' is a graph output and 'a' is an input or a constant",
        ),
        (
            f"{JOIN}  y, q = Split <axis = 1> (j, parts)  z = Relu(q)",
            "float[n, 2, 4] y, float[n, 3, 4] z",
            "'y' is a graph output and 'a' is an input or a constant",
        ),
        (
            f"{JOIN}  y = Concat <axis = 1> (j, a)  z = Relu(j)",
            "float[n, 7, 4] y, float[n, 5, 4] z",
            "'j' has 2 readers",
        ),
        (
            "y = Where(yes, a, a)",
            "float[n, 2, 4] y",
            "'y' is a graph output and 'a' is an input or a constant",
        ),
    ],
)
def test_refuses(refusals, body, output, reason):
    assert refusals(_text(body, output), RedundantMovement()) == [reason]


MASK = """<ir_version: 8, opset_import: ["" : 17]>
  g (float[n, 2, 3, 4] x, bool[1, 1, 1, 4] m) => (OUTPUT)
  <int64[1] two = {2}, int64[2] inner = {3, 4}, float zero = {0}, float low = {-100}> {
  n = Shape<end = 1>(x)  shape = Concat<axis = 0>(n, two, inner)  e = Expand(m, shape)  BODY }"""


def test_a_mask_of_scalars_is_computed_before_it_is_expanded(prove):
    text = MASK.replace("OUTPUT", "float[n, 2, 3, 4] y")
    text = text.replace("BODY", "w = Where(e, zero, low)  y = Add(x, w)")
    proof = prove(text, RedundantMovement(), batches=(1, 3, 8), rewritten=2)
    assert proof.ops == ["Where", "Add"]
    assert proof.graph.nodes[0].outputs[0].shape == [1, 1, 1, 4]


def test_a_mask_of_tensors_stays_where_it_is(load):
    text = MASK.replace("OUTPUT", "float[n, 2, 3, 4] y").replace("BODY", "y = Where(e, x, low)")
    graph = load(text)
    RedundantMovement()(graph)
    where = next(node for node in graph.nodes if node.op == "Where")
    assert where.outputs[0] is graph.outputs[0]
