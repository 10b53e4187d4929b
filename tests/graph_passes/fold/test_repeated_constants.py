"""What is computed of a constant is computed before it is repeated over a free batch."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.fold.constant_folding import ConstantFolding
from wpk.graph_passes.fold.repeated_constants import RepeatedConstants
from wpk.graph_passes.movement.chains.redundant_movement import RedundantMovement

H = '<ir_version: 8, opset_import: ["" : 17]>'

LOOKED_UP = f"""{H} g (float[n, 3] x, float[4, 2] w) => (float[n, 3, 2] y)
    <int64[1, 3] i = {{3, 0, 2}}, int64[1] three = {{3}}, int64[1] first = {{0}}> {{
    s = Shape(x)  b = Gather(s, first)  t = Concat<axis = 0>(b, three)  e = Expand(i, t)
    y = Gather(w, e) }}"""

MASK = f"""{H} g (float[n, 2, 3, 4] x, bool[1, 1, 1, 4] m) => (OUTPUT)
  <int64[1] two = {{2}}, int64[2] inner = {{3, 4}}, float zero = {{0}}, float low = {{-100}},
   bool[1, 1, 1, 4] seen = {{1, 1, 0, 1}}> {{
  n = Shape<end = 1>(x)  shape = Concat<axis = 0>(n, two, inner)  e = Expand(MASK, shape)  BODY }}"""

PLACES = f"""{H} g (float[n, 2, 3] x) => (OUTPUT)
  <int64[2, 1] c = {{5, 7}}, int64[1, 2, 3] d = {{4, 1, 2, 0, 9, 3}}, int64[2] inner = {{2, 3}},
   int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] last = {{-1}}, int64[1] two = {{2}}, int64 second = {{1}},
   int64 front = {{0}}, int64[2] joined = {{0, 6}}, int64[2] left = {{-1, 6}}, int64[2] merged = {{-1, 3}},
   int64[1, 3] picks = {{1, 0, 1}}, int64[10, 2] table = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9,
   10, 11, 12, 13, 14, 15, 16, 17, 18, 19}}, int64[10, 10] square = {{ {", ".join(map(str, range(100)))} }}> {{
  n = Shape<end = 1>(x)  shape = Concat<axis = 0>(n, inner)
  e = Expand(c, shape)  f = Expand(d, shape)  BODY }}"""


def _places(body: str, output: str) -> str:
    return PLACES.replace("OUTPUT", output).replace("BODY", body)


def test_a_constant_index_is_looked_up_before_it_is_expanded(prove):
    proof = prove(LOOKED_UP, RepeatedConstants(), constants="w", batches=(1, 4))
    assert proof.graph.nodes[-1].op == "Expand"
    assert [node.inputs[1].name for node in proof.graph.nodes if node.op == "Gather"][-1] != "e"


def test_a_shorter_index_is_expanded_from_the_back(prove):
    text = LOOKED_UP.replace("int64[1, 3] i", "int64[3] i")
    assert prove(text, RepeatedConstants(), constants="w", batches=(1, 4)).ops[-1] == "Expand"


def test_a_constant_mask_is_computed_before_it_is_expanded(load):
    text = MASK.replace("OUTPUT", "float[n, 2, 3, 4] y").replace("MASK", "seen")
    graph = load(text.replace("BODY", "w = Where(e, zero, low)  y = Add(x, w)"))
    run_passes(graph, [RepeatedConstants(), ConstantFolding(), RedundantMovement()])
    assert [node.op for node in graph.nodes] == ["Add"]
    assert list(graph.nodes[0].inputs[1].shape) == [1, 1, 1, 4]


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("y = Sub(e, f)", "int64[n, 2, 3] y"),
        ("y = Sub(second, f)", "int64[n, 2, 3] y"),
        ("y = Cast<to = 1>(e)", "float[n, 2, 3] y"),
        ("y = Slice(e, one, two, two)", "int64[n, 2, 1] y"),
        ("y = Slice(f, last, zero, last, last)", "int64[n, 2, 2] y"),
        ("y = Concat<axis = -1>(e, f, e)", "int64[n, 2, 9] y"),
        ("y = CumSum(f, second)", "int64[n, 2, 3] y"),
        ("y = Transpose<perm = [0, 2, 1]>(f)", "int64[n, 3, 2] y"),
        ("y = Reshape(f, joined)", "int64[n, 6] y"),
        ("y = Reshape(e, left)", "int64[n, 6] y"),
        ("y = Unsqueeze(f, last)", "int64[n, 2, 3, 1] y"),
        ("y = Gather(table, f)", "int64[n, 2, 3, 2] y"),
        ("y = Gather<axis = 2>(f, picks)", "int64[n, 2, 1, 3] y"),
        ("p = Slice(f, zero, two, two)  y = GatherND(square, p)", "int64[n, 2] y"),
    ],
)
def test_one_element_of_the_batch_is_computed(prove, load, body, output):
    text = _places(body, output)
    prove(text, RepeatedConstants(), batches=(1, 3), settle=True)
    graph = load(text)
    run_passes(graph, [RepeatedConstants(), ConstantFolding()])
    (last,) = (node for node in graph.nodes if node.outputs[0].name == "y" or node.op == "Expand")
    assert last.op == "Expand"
    assert isinstance(last.inputs[0], gs.Constant)


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("y = Slice(f, zero, one, zero)", "int64[m, 2, 3] y"),
        ("y = Concat<axis = 0>(e, f)", "int64[m, 2, 3] y"),
        ("y = CumSum(f, front)", "int64[n, 2, 3] y"),
        ("y = Transpose<perm = [1, 0, 2]>(f)", "int64[2, n, 3] y"),
        ("y = Reshape(f, merged)", "int64[m, 3] y"),
        ("y = Gather(f, picks)", "int64[1, 3, 2, 3] y"),
        ("y = Gather<axis = 1>(table, e)", "int64[10, n, 2, 3] y"),
        ("y = GatherND<batch_dims = 1>(f, e)", "int64[n] y"),
        ("k = Cast<to = 7>(x)  y = Sub(e, k)", "int64[n, 2, 3] y"),
    ],
)
def test_what_mixes_the_batch_stays(refusals, body, output):
    read = f"{output}, int64[n, 2, 3] e, int64[n, 2, 3] f"
    assert refusals(_places(body, read), RepeatedConstants()) == []


@pytest.mark.parametrize(
    ("mask", "body", "output"),
    [
        ("m", "y = Where(e, zero, low)", "float[n, 2, 3, 4] y"),
        ("seen", "y = Where(e, x, low)", "float[n, 2, 3, 4] y"),
    ],
)
def test_a_mask_that_is_no_constant_stays_where_it_is(refusals, mask, body, output):
    text = MASK.replace("OUTPUT", output).replace("MASK", mask).replace("BODY", body)
    assert refusals(text, RepeatedConstants()) == []


@pytest.mark.parametrize(
    ("text", "constants"),
    [
        (LOOKED_UP, ""),
        (
            LOOKED_UP.replace("Gather(w, e)", "Gather<axis = 1>(w, e)")
            .replace("{3, 0, 2}", "{1, 0, 1}")
            .replace("float[n, 3, 2] y", "float[4, n, 3] y"),
            "w",
        ),
    ],
)
def test_other_tables_and_axes_stay(refusals, text, constants):
    assert refusals(text, RepeatedConstants(), constants) == []


QUERY = f"""{H} g (float[n, 3] x, float[3, 4] w, float[4] b, float[4, 1] v) => (OUTPUT)
    <float[1, 1, 3] c = {{3, 0, 2}}, int64[2] ones = {{1, 3}}, int64[3] turned = {{1, -1, 3}},
     int64[2] merged = {{-1, 2}}, int64[2] flat = {{-1, 4}}, float[1, 1] one = {{1}}> {{
    n = Shape<end = 1>(x)  t = Concat<axis = 0>(n, ones)  e = Expand(c, t)  BODY }}"""
PRODUCT = "r = Reshape(e, turned)  p = MatMul(r, w)  a = Add(p, b)"


@pytest.mark.parametrize(
    ("body", "output", "ops"),
    [
        (f"{PRODUCT}  y = Neg(a)", "float[1, n, 4] y", ["Expand", "Unsqueeze"]),
        (f"{PRODUCT}  y = Reshape(a, merged)", "float[m, 2] y", ["Expand", "Unsqueeze", "Reshape"]),
        (f"{PRODUCT}  f = Reshape(a, flat)  y = Gemm(f, v, one)", "float[n, 1] y", ["Expand"]),
    ],
)
def test_a_learned_query_is_multiplied_before_it_is_repeated(
    load, export, run_model, body, output, ops
):
    text = QUERY.replace("BODY", body).replace("OUTPUT", output)
    graph, before = load(text, "w b v"), load(text, "w b v")
    run_passes(graph, [RepeatedConstants(), ConstantFolding()])
    left = [node.op for node in graph.nodes if node.op not in ("Shape", "Concat", "Gather")]
    assert left == ops
    for batch in (1, 3):
        given = {"x": np.ones((batch, 3), np.float32)}
        (old,), (new,) = (run_model(export(each), given) for each in (before, graph))
        # Sums of at most 4 terms of some 10, rounded twice.
        np.testing.assert_allclose(new, old, rtol=0, atol=2**-18)


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("q = Neg(v)  y = MatMul(q, e)", "float[n, 4, 3] y, float[n, 1, 3] e"),
        ("q = Neg(w)  y = MatMul(e, q)", "float[n, 1, 4] y, float[n, 1, 3] e"),
        ("s = Reshape(x, turned)  y = Add(e, s)", "float[n, n, 3] y, float[n, 1, 3] e"),
    ],
)
def test_products_with_what_is_no_weight_stay(refusals, body, output):
    text = QUERY.replace("BODY", body).replace("OUTPUT", output)
    assert refusals(text, RepeatedConstants()) == []


def test_a_node_that_reads_nothing_is_left_alone(load):
    text = f"""{H} g (float[2, 3] x, float[2, 3] z) => (float[p, q] y) <int64 one = {{1}}> {{
        s = SequenceEmpty()  a = SequenceInsert(s, x)  b = SequenceInsert(a, z)  y = SequenceAt(b, one) }}"""
    assert RepeatedConstants()(load(text)).rewritten == 0
