"""Slices and concatenations of one tensor that only change the order of its rows become one gather."""

import pytest

from wpk.graph_passes.movement.windows.moved_rows import MovedRows

H = '<ir_version: 8, opset_import: ["" : 17]>'
CUTS = """int64[1] none = {0}, int64[1] cut = {2}, int64[1] all = {100}, int64[1] one = {1},
    int64[1] two = {2}, int64[1] last = {3}"""
ROLL = """a = Slice(s, cut, all, one)  b = Slice(s, none, cut, one)  r = Concat<axis = 1>(a, b)
    c = Slice(r, cut, all, two)  d = Slice(r, none, cut, two)  q = Concat<axis = 2>(c, d)"""
EVEN = """a = Slice(s, none, all, one, two)  b = Slice(s, one, all, one, two)
    r = Concat<axis = 3>(a, b)"""


def _text(body: str, output: str, more: str = "", batch: str = "2") -> str:
    return f"""{H} g (float[{batch}, 6, 4, 5] x, float[5, 5] w) => ({output}) <{CUTS}{more}> {{
        s = MatMul(x, w)  {body} }}"""


WINDOWS = ", int64[6] parts = {-1, 3, 2, 2, 2, 5}, int64[3] rows = {-1, 4, 5}"
PARTED = """v = Reshape(q, parts)  t = Transpose<perm = [0, 1, 3, 2, 4, 5]>(v)  z = Reshape(t, rows)
    y = MatMul(z, w)"""


@pytest.mark.parametrize(
    ("body", "output", "more", "batches"),
    [
        (f"{ROLL}  y = Relu(q)", "float[B, 6, 4, 5] y", "", (2,)),
        (f"{ROLL}  {PARTED}", "float[m, 4, 5] y", WINDOWS, (2,)),
        (f"{EVEN}  y = Relu(r)", "float[B, 3, 4, 10] y", "", (2,)),
        (f"{ROLL}  y = Relu(q)", "float[n, 6, 4, 5] y", "", (1, 3)),
        (f"{ROLL}  {PARTED}", "float[n, 4, 5] y", WINDOWS, (1, 3)),
    ],
)
def test_rows_move_once(prove, body, output, more, batches):
    batch = "n" if "n, " in output else "2"
    text = _text(body, output.replace("B", "2"), more, batch)
    proof = prove(text, MovedRows(), constants="w", batches=batches)
    assert proof.ops.count("Gather") == 1
    assert not {"Slice", "Concat"} & set(proof.ops)


@pytest.mark.parametrize(
    "body",
    [
        "a = Slice(s, cut, all, one)  b = Slice(x, none, cut, one)  r = Concat<axis = 1>(a, b)  y = Relu(r)",
        "a = Slice(s, cut, all, last)  b = Slice(s, none, cut, last)  r = Concat<axis = 3>(a, b)  y = Relu(r)",
        "a = Slice(s, cut, all, none)  b = Slice(s, none, cut, none)  e = Neg(b)  r = Concat<axis = 0>(a, e)  y = Relu(r)",
    ],
    ids=["two tensors", "parts of rows", "computed"],
)
def test_other_joins_stay(load, body):
    graph = load(_text(body, "float[a, b, c, d] y"), constants="w")
    assert MovedRows()(graph).rewritten == 0


def test_sizes_that_are_joined_are_no_rows(load):
    body = """t = Transpose<perm = [0, 2, 1, 3]>(s)  h = Shape(t)  n = Gather(h, none)  m = Gather(h, last)
        z = Concat<axis = 0>(n, m, two)  y = Reshape(t, z)"""
    text = _text(
        body.replace(", two)", ", parts)"), "float[a, b, c, d] y", ", int64[2] parts = {-1, 2}"
    )
    assert MovedRows()(load(text, constants="w")).rewritten == 0


def test_what_mixes_a_free_batch_stays(load):
    body = "a = Slice(s, cut, all, none)  b = Slice(s, none, cut, none)  r = Concat<axis = 0>(a, b)  y = Relu(r)"
    assert (
        MovedRows()(load(_text(body, "float[n, 6, 4, 5] y", batch="n"), constants="w")).rewritten
        == 0
    )


def test_numbers_that_are_no_rows_stay(load):
    graph = load(f"{H} g (float[8] x) => (float[16] y) {{ y = Concat<axis = 0>(x, x) }}")
    assert MovedRows()(graph).rewritten == 0


def test_maps_of_convolutions_stay(load):
    text = f"""{H} g (float[1, 4, 6, 5] x, float[4, 4, 1, 1] w) => (float[1, 4, 6, 5] y) <{CUTS}> {{
        s = Conv(x, w)  {ROLL.split("c =")[0]}  y = Relu(r) }}"""
    assert MovedRows()(load(text, constants="w")).rewritten == 0
