"""Rows of several tables that become rows side by side are read at once."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes import run_passes
from wpk.graph_passes.movement.gathers import joined_tables
from wpk.graph_passes.movement.gathers.joined_tables import JoinedTables

H = '<ir_version: 8, opset_import: ["" : 17]>'
PICKS = "a = Gather<axis = 1>(i, c0)  b = Gather<axis = 1>(i, c1)  c = Gather<axis = 1>(i, c2)"
ROWS = "p = Gather(t, a)  q = Gather(u, b)  r = Gather(v, c)"


def _text(body: str, outputs: str, kind: str = "int64") -> str:
    return f"""{H} g ({kind}[n, 3] i, float[n, 4] x, float[4, 4] t, float[6, 4] u, float[5, 4] v) => ({outputs})
        <int64 c0 = {{0}}, int64 c1 = {{1}}, int64 c2 = {{-1}}, int64[1] one = {{1}}> {{ {body} }}"""


STACKED = f"""{PICKS}  {ROWS}  k = Unsqueeze(x, one)  l = Unsqueeze(p, one)
    m = Unsqueeze(q, one)  o = Unsqueeze(r, one)  y = Concat<axis = 1>(k, l, m, o)"""
SIDE_BY_SIDE = f"{PICKS}  {ROWS}  y = Concat<axis = -1>(p, q, r, x)"


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_rows_are_read_by_one_gather(prove, kind):
    proof = prove(
        _text(STACKED, "float[n, 4, 4] y", kind), JoinedTables(), constants="t u v", batches=(1, 3)
    )
    assert proof.node("Gather").inputs[0].shape == (15, 4)
    assert proof.ops.count("Concat") == proof.ops.count("Unsqueeze") == 1


def test_rows_side_by_side_are_one_row(prove):
    proof = prove(
        _text(SIDE_BY_SIDE, "float[n, 16] y"), JoinedTables(), constants="t u v", batches=(3,)
    )
    assert proof.ops[-2:] == ["Reshape", "Concat"]


def test_one_table_and_some_columns_need_no_sum(prove):
    body = (
        SIDE_BY_SIDE.replace("(u, b)", "(t, c)")
        .replace("(v, c)", "(t, c)")
        .replace("p, q, r", "p, q")
    )
    body = body.replace("r = Gather(t, c)", "")
    proof = prove(_text(body, "float[n, 12] y"), JoinedTables(), constants="t u v", batches=(2,))
    assert proof.ops == ["Gather", "Gather", "Reshape", "Concat"]


def test_an_index_outside_its_table_is_outside_all(load):
    graph = load(_text(STACKED, "float[n, 4, 4] y"), "t u v")
    run_passes(graph, [JoinedTables()])
    (gather,) = [node for node in graph.nodes if node.op == "Gather"]
    graph.outputs = [gather.inputs[1].to_variable(np.int64, ("n", 3))]
    graph.cleanup()
    model = ReferenceEvaluator(gs.export_onnx(graph))
    given = np.array([[3, 5, 4], [-4, -6, -5], [4, 6, 5], [-5, -7, -6], [2**40, -(2**40), 15]])
    (rows,) = model.run(None, {"i": given})
    np.testing.assert_array_equal(rows[:2], [[3, 9, 14], [0, 4, 10]])
    assert (rows[2:] >= 15).all()


def test_refuses_rows_that_others_read_and_tables_that_are_too_large(refusals, monkeypatch):
    shared = _text(STACKED + "  z = Relu(q)", "float[n, 4, 4] y, float[n, 4] z")
    assert refusals(shared, JoinedTables(), "t u v") == ["'q' has 2 readers"]
    short = _text(STACKED, "float[n, 4, 4] y", "int32")
    monkeypatch.setattr(joined_tables, "MOST_BYTES", 239)
    assert refusals(short, JoinedTables(), "t u v") == [
        "its tables have 240 bytes; 239 are joined at most"
    ]


def test_what_is_no_row_of_a_table_parts_the_others(load):
    body = STACKED.replace("l = Unsqueeze(p, one)", "l = Unsqueeze(x, one)")
    graph = load(_text(body, "float[n, 4, 4] y"), "t u v")
    assert JoinedTables()(graph).rewritten == 1
    tables = [tuple(node.inputs[0].shape) for node in graph.nodes if node.op == "Gather"]
    assert tables == [("n", 3), (11, 4)]  # two columns of the indices, and their rows
