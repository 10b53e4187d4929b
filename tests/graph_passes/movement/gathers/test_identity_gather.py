"""A Gather that reads everything in order is a Reshape."""

import numpy as np
import pytest

from wpk.graph_passes.movement.gathers.identity_gather import IdentityGather

H = '<ir_version: 8, opset_import: ["" : 17]>'

FREE = f"""{H} g (float[n, 6, 1, 1] x) => (float[n, 6, p, q] y)
    <int64[1] all = {{-1}}, int64 zero = {{0}}, int64 one = {{1}}, int64 six = {{STEP}}, int64[1] front = {{0}},
     int64[3] axes = {{1, 2, 3}}, int64[1, 6, 1, 1] columns = {{COLUMNS}}, int64[1, 1, 1, 1] none = {{0}}> {{
    flat = Reshape(x, all)  s = Shape<end = 1>(x)  n = Squeeze(s)  r = Range(FIRST, n, one)
    m = Mul(r, six)  u = Unsqueeze(m, axes)  a = Add(u, columns)  i = Add(a, none)
    y = Gather(flat, i) }}"""


def _free(first: str = "zero", step: int = 6, columns: str = "0, 1, 2, 3, 4, 5") -> str:
    text = FREE.replace("FIRST", first).replace("STEP", str(step))
    return text.replace("COLUMNS", columns)


def test_a_range_over_the_batch_is_a_reshape(prove):
    proof = prove(_free(), IdentityGather(), batches=(1, 3, 8))
    assert proof.ops == ["Reshape", "Reshape"]
    assert proof.graph.nodes[-1].inputs[1].values.tolist() == [-1, 6, 1, 1]


def test_the_batch_may_be_picked_from_a_whole_shape(prove):
    picked = "t = Shape(x)  s = Gather(t, front)"
    text = _free().replace("s = Shape<end = 1>(x)", picked)
    assert prove(text, IdentityGather(), batches=(1, 3)).ops == ["Reshape", "Reshape"]


@pytest.mark.parametrize(
    "text",
    [
        _free().replace("Shape<end = 1>(x)", "Shape<start = 1, end = 2>(x)"),
        _free(first="one"),
        _free(step=1),
        _free(columns="0, 1, 2, 3, 5, 4"),
        _free().replace("float[n, 6, 1, 1] x", "float[n, 12, 1, 1] x"),
        _free()
        .replace("Unsqueeze(m, axes)", "Unsqueeze(m, axes)  v = Identity(u)")
        .replace("y = Gather(flat, i)", "k = Add(i, v)  y = Gather(flat, k)"),
    ],
)
def test_keeps_what_reads_in_another_order(refusals, text):
    assert refusals(text, IdentityGather()) == []


@pytest.mark.parametrize(("count", "rewritten"), [(6, 1), (5, 0)])
def test_a_constant_index_is_a_reshape_where_it_reads_all(load, count, rewritten):
    text = f"""{H} g (float[6] x, int64[{count}, 1] i) => (float[{count}, 1] y) {{
        a = Relu(x)  y = Gather(a, i) }}"""
    graph = load(text, "i=0")
    graph.nodes[1].inputs[1].values = np.arange(count).reshape(count, 1)
    assert IdentityGather()(graph).rewritten == rewritten
    assert graph.nodes[-1].op == ("Reshape" if rewritten else "Gather")


GRID = f"""{H} g (float[n, 6] x) => (float[n, 1, 6] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64[2] back = {{1, 2}}, int64[1] last = {{-1}},
     int64[1, 1, 6] columns = {{COLUMNS}}> {{
    s = Shape<end = 1>(x)  n = Squeeze(s)  r = Range(zero, n, one)  u = Unsqueeze(r, back)
    m = Max(u, columns)  t = Shape(m)  a = Expand(u, t)  b = Expand(columns, t)
    c = Unsqueeze(a, last)  d = Unsqueeze(b, last)  i = Concat<axis = -1>(ORDER)
    y = GatherND(x, i) }}"""


def _grid(columns: str = "0, 1, 2, 3, 4, 5", order: str = "c, d") -> str:
    return GRID.replace("COLUMNS", columns).replace("ORDER", order)


def test_a_grid_of_all_places_is_a_reshape(prove):
    proof = prove(_grid(), IdentityGather(), batches=(1, 3, 8))
    assert proof.graph.nodes[-1].op == "Reshape"
    assert proof.graph.nodes[-1].inputs[1].values.tolist() == [0, 1, 6]


@pytest.mark.parametrize(
    "text",
    [
        _grid(columns="0, 1, 2, 3, 5, 4"),
        _grid(columns="0, 0, 0, 0, 0, 0"),
        _grid(order="d, c").replace("float[n, 6] x", "float[6, n] x").replace("end = 1", "start = 1"),
        _grid().replace("float[n, 6] x", "float[n, 7] x"),
        _grid().replace("float[n, 6] x", "float[n, 6, 2] x").replace("GatherND", "GatherND<batch_dims = 1>"),
    ],
)  # fmt: skip
def test_other_grids_stay(refusals, text):
    assert refusals(text, IdentityGather()) == []
