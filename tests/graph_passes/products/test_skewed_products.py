"""Products of rows that are shifted into place by paddings and cuts are products with the columns that are kept."""

import pytest

from wpk.graph_passes.products.skewed_products import SkewedProducts

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
SIZES = """int64[3] rows = {15, 4, 7}, int64[6] one = {0, 0, 0, 0, 0, 1}, int64[2] flat = {15, 32},
    int64[4] more = {0, 0, 0, 3}, int64[3] apart = {15, 5, 7}, int64[1] zero = {0}, int64[1] four = {4},
    int64[1] from = {3}, int64[1] to = {7}, int64[1] first = {1}, int64[1] last = {2}"""
SKEW = """r = Reshape(m, rows)  p = Pad(r, one)  f = Reshape(p, flat)  o = Pad(f, more)  a = Reshape(o, apart)
    h = Slice(a, zero, four, first)  y = Slice(h, from, to, last)"""


def _text(body: str, output: str = "15, 4, 4", x: str = "3, 5, 4, 6") -> str:
    return f"""{HEAD} g (float[{x}] x, float[6, 7] w) => (float[{output}] y) <{SIZES}> {{
        m = MatMul(x, w)  {body} }}"""


def test_multiplies_each_row_with_the_columns_that_it_keeps(prove):
    proof = prove(_text(SKEW), SkewedProducts(), constants="w")
    assert "Pad" not in proof.ops
    assert "Slice" not in proof.ops
    assert list(proof.node("MatMul").inputs[1].shape) == [4, 6, 4]


def test_rows_that_are_cut_alike_stay_one_product(refusals):
    body = "r = Reshape(m, rows)  p = Pad(r, one)  y = Slice(p, from, to, last)"
    assert refusals(_text(body), SkewedProducts(), "w") == []


@pytest.mark.parametrize(
    ("body", "output"),
    [
        (SKEW.replace("(h, from, to, last)", "(h, zero, to, last)"), "15, 4, 7"),  # zeros are kept
        (SKEW.replace("(a, zero, four, first)", "(a, first, five, first)"), "15, 4, 4"),
        (SKEW.replace("(p, flat)", "(n, flat)").replace("f =", "n = Relu(p)  f ="), "15, 4, 4"),
        (SKEW.replace(" y =", " z =") + "  u = ReduceSum(m)  y = Add(z, u)", "15, 4, 4"),
    ],
)
def test_leaves_others(refusals, body, output):
    text = _text(body, output).replace("zero =", "five = {5}, int64[1] zero =")
    assert refusals(text, SkewedProducts(), "w") == []


def test_a_size_without_a_number_is_what_the_places_say(prove):
    proof = prove(_text(SKEW, "n, 4, 4"), SkewedProducts(), constants="w")
    assert "Pad" not in proof.ops


def test_leaves_what_keeps_nothing(refusals):
    body = SKEW.replace("(h, from, to, last)", "(h, from, from, last)")
    assert refusals(_text(body, "15, 4, 0"), SkewedProducts(), "w") == []


def _positions(batch: int) -> str:
    """Of 1024 places as many columns are kept: 1024 matrices of 8 x 1024, 8388608 numbers."""
    flat, rows = 2097152, 1024
    return f"""{HEAD} g (float[{batch}, 1024, 8] x, float[8, 2047] w) => (float[{batch}, 1024, 1024] y)
        <int64[6] one = {{0, 0, 0, 0, 0, 1}}, int64[2] flat = {{{batch}, {flat}}}, int64[4] more = {{0, 0, 0, 1023}},
         int64[3] apart = {{{batch}, 1025, 2047}}, int64[1] zero = {{0}}, int64[1] to = {{{rows}}},
         int64[1] from = {{1023}}, int64[1] end = {{2047}}, int64[1] first = {{1}}, int64[1] last = {{2}}> {{
        m = MatMul(x, w)  p = Pad(m, one)  f = Reshape(p, flat)  o = Pad(f, more)  a = Reshape(o, apart)
        h = Slice(a, zero, to, first)  y = Slice(h, from, end, last) }}"""


def test_leaves_rows_whose_matrices_are_more_than_the_product_that_they_save(refusals):
    assert refusals(_positions(1), SkewedProducts(), "w") == [
        "a matrix for each of 1024 rows would hold 8388608 numbers, more than the 4192256 that would be moved no longer"
    ]


def test_many_rows_a_place_pay_for_as_large_matrices(refusals, prove):
    """Of three samples the product has 6.3 million elements, each written once and read once."""
    assert refusals(_positions(2), SkewedProducts(), "w") != []
    assert "Pad" not in prove(_positions(3), SkewedProducts(), constants="w").ops
