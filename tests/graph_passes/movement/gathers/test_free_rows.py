"""Rows that a free dimension counts: looked up first, taken then, repeated in nodes of their own."""

import pytest

from wpk.graph_passes.fold.certain_masks import CertainMasks
from wpk.graph_passes.movement.gathers.free_rows import FreeRows
from wpk.graph_passes.movement.repeats.spread_rows import SpreadRows
from wpk.graph_passes.movement.transposes.merged_transpose import MergedTranspose

H = '<ir_version: 8, opset_import: ["" : 17]>'

LOOKED_UP = f"""{H} g (float[2, n, 3] x, float[9, 3] table) => (float[2, n, 3] y)
    <int64[1, 9] i = {{PLACES}}, int64[1] zero = {{START}}, int64[1] one = {{1}}> {{
    n = Shape<start = 1, end = 2>(x)  p = Slice(i, zero, n, one)  r = Gather(table, p)  y = Add(x, r) }}"""


def _looked_up(places: str = "0, 1, 2, 3, 4, 5, 6, 7, 8", start: str = "0") -> str:
    return LOOKED_UP.replace("PLACES", places).replace("START", start)


@pytest.mark.parametrize("places", ["0, 1, 2, 3, 4, 5, 6, 7, 8", "8, 0, 0, 3, 1, 5, 2, 7, 4"])
def test_positions_are_looked_up_before_they_are_taken(prove, places):
    proof = prove(_looked_up(places), FreeRows(), batches=(1, 3, 8), constants="table")
    assert "Gather" not in proof.ops
    assert "Slice" in proof.ops


def test_rows_that_are_alike_are_repeated(prove):
    proof = prove(
        _looked_up("0, 0, 0, 0, 0, 0, 0, 0, 0"), FreeRows(), batches=(1, 3, 8), constants="table"
    )
    assert "Expand" in proof.ops
    assert "Slice" not in proof.ops


def test_other_parts_stay(load):
    for text in (
        _looked_up(start="1"),
        _looked_up().replace("Shape<start = 1, end = 2>(x)", "Shape<start = 0, end = 1>(x)"),
        _looked_up("0, 1, 2, 3, 4, 5, 6, 7, 9"),  # there is no row 9
    ):
        assert FreeRows()(load(text, "table")).rewritten == 0


SPREAD = f"""{H} g (float[b, s, 3] x, float[SHAPE] z) => (float[b, s, 3] y) {{ y = Add(x, z) }}"""


@pytest.mark.parametrize("shape", ["1, s, 3", "s, 3", "b, 1, 3"])
def test_what_has_one_of_two_free_dimensions_is_repeated(prove, shape):
    proof = prove(SPREAD.replace("SHAPE", shape), SpreadRows(), batches=(1, 3))
    assert proof.ops.count("Expand") == 1
    assert proof.graph.nodes[-1].op == "Add"


@pytest.mark.parametrize("shape", ["b, s, 3", "3", "1, 1, 3", "b, s, 1"])
def test_what_has_both_or_none_stays(load, shape):
    assert SpreadRows()(load(SPREAD.replace("SHAPE", shape))).rewritten == 0


def test_a_mask_of_keys_is_not_repeated_for_every_query(load):
    text = f"""{H} g (float[b, 2, s, s] x, float[b, 1, 1, s] z) => (float[b, 2, s, s] y) {{
        y = Add(x, z) }}"""
    assert SpreadRows()(load(text)).rewritten == 0


MASK = f"""{H} g (float[b, s] x, bool[b, 1, 1, s] m) => (bool[b, 1, s, s] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64[4] shape = {{1, 1, -1, 1}}, int64 least = {{LEAST}}> {{
    k = Shape<start = 1>(x)  n = Squeeze(k)  i = Range(zero, n, one)  q = Reshape(i, shape)
    t = GreaterOrEqual(q, least)  y = And(t, m) }}"""


@pytest.mark.parametrize("least", ["0", "-3"])
def test_what_holds_for_every_query_is_left_out(prove, least):
    text = MASK.replace("LEAST", least)
    proof = prove(text, CertainMasks(), batches=(1, 3))
    assert "And" not in proof.ops
    assert "Expand" in proof.ops


def test_what_need_not_hold_stays(load):
    for text in (
        MASK.replace("LEAST", "1"),
        MASK.replace("LEAST", "0").replace("GreaterOrEqual", "LessOrEqual"),
    ):
        assert CertainMasks()(load(text)).rewritten == 0


TURNED = f"""{H} g (float[b, 2, s, 4] x) => (float[b, 2, 4, s] y)
    <int64[1] open = {{-1}}, int64[1] two = {{2}}, int64[1] four = {{WIDTH}}> {{
    s = Shape<start = 2, end = 3>(x)  b = Shape<start = 0, end = 1>(x)
    first = Concat<axis = 0>(open, s, four)  last = Concat<axis = 0>(LAST)
    m = Reshape(x, first)  t = Transpose<perm = [PERM]>(m)  y = Reshape(t, last) }}"""


def _turned(width: str = "4", last: str = "b, two, four, s", perm: str = "0, 2, 1") -> str:
    return TURNED.replace("WIDTH", width).replace("LAST", last).replace("PERM", perm)


def test_a_transpose_of_merged_matrices_is_one_of_all(prove):
    proof = prove(_turned(), MergedTranspose(), batches=(1, 3))
    assert "Reshape" not in proof.ops
    assert proof.graph.nodes[-1].attrs["perm"] == [0, 1, 3, 2]


@pytest.mark.parametrize(
    "text",
    [
        _turned(width="8"),
        _turned(last="b, two, s, four"),
        _turned(last="two, b, four, s"),
        _turned(perm="0, 1, 2"),
    ],
)
def test_other_reshapes_stay(load, text):
    assert MergedTranspose()(load(text)).rewritten == 0
