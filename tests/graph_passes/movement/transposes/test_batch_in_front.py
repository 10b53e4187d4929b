"""Transposes that take the first dimension away meet those that bring it back."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.clean.elimination.identity_elimination import IdentityElimination
from wpk.graph_passes.movement.chains.reshape_chains import ReshapeChains
from wpk.graph_passes.movement.transposes.batch_in_front import BatchInFront

H = '<ir_version: 8, opset_import: ["" : 17]>'
TURN = "t = Transpose <perm = [1, 0, 2]> (x)"
CONSTANTS = """<int64 one = {1}, int64[4] heads = {5, -1, 2, 4}, int64[3] flat = {5, -1, 4},
    int64[4] more = {1, 5, -1, 8}, float half = {0.5}, int64[3] mixed = {10, -1, 4}>"""


def _text(body: str, output: str) -> str:
    given = "float[n, 5, 8] x, float[8, 6] w, float[8] b, float[1, 1, 8] r, float[5, 1, 1] c"
    return f"{H} g ({given}, float[5, n, 8] z) => ({output}) {CONSTANTS} {{ {TURN}  {body} }}"


@pytest.mark.parametrize(
    ("body", "output", "ops"),
    [
        ("y = MatMul(t, w)", "float[5, n, 6] y", ["MatMul", "Transpose"]),
        ("y = Add(t, b)", "float[5, n, 8] y", ["Add", "Transpose"]),
        ("y = Mul(r, t)", "float[5, n, 8] y", ["Mul", "Transpose"]),
        ("y = Softmax(t)", "float[5, n, 8] y", ["Softmax", "Transpose"]),
        ("y = LayerNormalization(t, b)", "float[5, n, 8] y", ["LayerNormalization", "Transpose"]),
        ("y = Gather<axis = 2>(t, one)", "float[5, n] y", ["Gather", "Transpose"]),
        ("y = Gather(t, one)", "float[n, 8] y", ["Gather", "Transpose"]),
        ("y = Reshape(t, heads)", "float[5, n, 2, 4] y", ["Reshape", "Transpose"]),
        ("y = Reshape(t, more)", "float[1, 5, n, 8] y", ["Reshape", "Transpose"]),
        (
            "y = Reshape(t, flat)",
            "float[5, m, 4] y",
            ["Reshape", "Transpose", "Reshape", "Transpose"],
        ),
    ],
)
def test_a_transpose_goes_behind_what_it_may_follow(prove, body, output, ops):
    proof = prove(_text(body, output), BatchInFront(), constants="w b r c", batches=(1, 3, 8))
    assert proof.ops == ops


@pytest.mark.parametrize(
    ("shape", "perm", "output", "ops"),
    [
        ("n, 5, 8", "1, 2, 0", "3, n", ["Reshape", "Gather", "Transpose"]),
        ("n, 5, 8, 2", "1, 2, 0, 3", "3, n, 2", ["Reshape", "Gather", "Transpose"]),
        ("n, 2, 5, 8", "2, 3, 1, 0", "3, 2, n", ["Reshape", "Gather", "Transpose"]),
    ],
)
def test_constant_places_of_two_dimensions_become_those_of_one(prove, shape, perm, output, ops):
    text = f"""{H} g (float[{shape}] x) => (float[{output}] y) <int64[3, 2] i = {{0, 1, -1, 7, 3, -8}}> {{
        t = Transpose <perm = [{perm}]> (x)  y = GatherND(t, i) }}"""
    assert prove(text, BatchInFront(), batches=(1, 3)).ops == ops


@pytest.mark.parametrize(
    "body",
    [
        "t = Transpose <perm = [2, 1, 0]> (x)  y = GatherND(t, i)",  # in another order
        "t = Transpose <perm = [1, 0, 2]> (x)  y = GatherND(t, i)",  # of the first dimension, too
        "t = Transpose <perm = [1, 2, 0]> (x)  y = GatherND(t, j)",  # not constant
    ],
)
def test_other_places_stay(refusals, body):
    text = f"""{H} g (float[n, 5, 8] x, int64[3, 2] j) => (float[3, m] y)
        <int64[3, 2] i = {{0, 1, 1, 2, 0, 0}}> {{ {body} }}"""
    assert refusals(text, BatchInFront()) == []


def test_two_tensors_that_are_turned_alike_are_added_first(prove):
    body = "u = Transpose <perm = [1, 0, 2]> (x)  s = Sigmoid(u)  y = Add(s, t)"
    text = _text(body, "float[5, n, 8] y")
    proof = prove(text, BatchInFront(), rewritten=2, constants="w b r c", settle=True)
    assert proof.ops == ["Sigmoid", "Add", "Transpose"]


def test_a_scalar_does_not_care_which_dimension_is_last(prove):
    text = f"""{H} g (float[n, 5] x) => (float[5, n] y) <float half = {{0.5}}> {{
        t = Transpose(x)  y = Mul(t, half) }}"""
    assert prove(text, BatchInFront()).ops == ["Mul", "Transpose"]


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("q = Identity(w)  y = MatMul(t, q)", "float[5, n, 6] y"),
        ("y = Add(t, c)", "float[5, n, 8] y"),
        ("y = Add(t, z)", "float[5, n, 8] y"),
        ("y = Softmax<axis = 0>(t)", "float[5, n, 8] y"),
        ("y = Gather<axis = 1>(t, one)", "float[5, 8] y"),
        ("y = Reshape(t, mixed)", "float[10, m, 4] y"),
    ],
)
def test_keeps_what_depends_on_the_order(refusals, body, output):
    assert refusals(_text(body, output), BatchInFront(), "w b r c") == []


@pytest.mark.parametrize(("perm", "rows"), [("0, 2, 1", 5), ("2, 1, 0", 4)])
def test_keeps_products_of_other_rows(refusals, perm, rows):
    text = f"""{H} g (float[4, 5, 8] x, float[{rows}, 6] w) => (float[p, q, 6] y) {{
        t = Transpose <perm = [{perm}]> (x)  y = MatMul(t, w) }}"""
    assert refusals(text, BatchInFront(), "w") == []


def test_multi_head_attention_keeps_its_batch_in_front(load):
    text = f"""{H} g (float[n, 5, 8] x, float[8, 24] w, float[24] b) => (float[n, 2, 5, 4] y)
        <int64[4] parts = {{5, -1, 3, 8}}, int64[1] front = {{0}}, int64[1] back = {{3}}, int64 one = {{1}},
         int64[3] heads = {{5, -1, 4}}, int64[4] whole = {{-1, 2, 5, 4}}> {{
        {TURN}  m = MatMul(t, w)  a = Add(m, b)  r = Reshape(a, parts)  u = Unsqueeze(r, front)
        v = Transpose <perm = [3, 1, 2, 0, 4]> (u)  s = Squeeze(v, back)  k = Gather(s, one)
        h = Reshape(k, heads)  i = Transpose <perm = [1, 0, 2]> (h)  y = Reshape(i, whole) }}"""
    graph = load(text, "w b")
    run_passes(graph, [BatchInFront(), ReshapeChains(), IdentityElimination()])
    orders = [node.attrs["perm"] for node in graph.nodes if node.op == "Transpose"]
    assert orders
    assert all(order[0] == 0 for order in orders)


STACK = f"""{H} g (float[n, 6] x, float[n, 6] z, float[2, 6] u) => (OUTPUT) <int64[1] front = {{0}},
    int64[1] second = {{1}}> {{ a = Unsqueeze(x, front)  b = Unsqueeze(z, front)  BODY }}"""


def _stack(body: str, output: str) -> str:
    return STACK.replace("BODY", body).replace("OUTPUT", output)


def test_a_stack_has_its_batch_in_front(prove):
    text = _stack("y = Concat<axis = 0>(a, b, a)", "float[3, n, 6] y")
    proof = prove(text, BatchInFront(), batches=(1, 3))
    assert proof.ops == ["Unsqueeze", "Unsqueeze", "Unsqueeze", "Concat", "Transpose"]
    assert proof.node("Concat").outputs[0].shape == ["n", 3, 6]


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("y = Concat<axis = 1>(a, b)", "float[1, m, 6] y"),
        ("y = Concat<axis = -1>(a, b)", "float[1, n, 12] y"),
        ("c = Unsqueeze(x, second)  d = Concat<axis = 0>(c, c)  y = Add(a, d)", "float[m, n, 6] y"),
        ("c = Unsqueeze(u, front)  y = Concat<axis = 0>(c, c)", "float[2, 2, 6] y"),
    ],
)
def test_other_joins_stay(refusals, body, output):
    read = f"{output}, float[1, n, 6] a, float[1, n, 6] b"
    assert refusals(_stack(body, read), BatchInFront()) == []


def test_a_batch_of_one_stays_in_front(prove):
    proof = prove(
        f"""{H} g (float[1, 4, 5, 3] x) => (float[5, 12] y) <int64[2] flat = {{5, 12}}> {{
        t = Transpose<perm = [2, 0, 1, 3]>(x)  y = Reshape(t, flat) }}""",
        BatchInFront(),
    )
    turns = [node.attrs["perm"] for node in proof.graph.nodes if node.op == "Transpose"]
    assert [0, 2, 1, 3] in turns
    assert proof.ops.index("Reshape") > proof.ops.index("Transpose")
