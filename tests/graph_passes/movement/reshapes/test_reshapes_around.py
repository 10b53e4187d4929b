"""Reshapes that take each other back around element-wise nodes go."""

import pytest

from wpk.graph_passes.movement.reshapes.reshapes_around import ReshapesAround

H = '<ir_version: 8, opset_import: ["" : 17]>'
SIZES = "<int64[2] row = {1, -1}, int64[1] flat = {-1}, float half = {0.5}, float[1, 1] one = {1}>"


def _text(body, given="float[n] x", output="float[n] y"):
    return f"{H} g ({given}) => ({output}) {SIZES} {{ {body} }}"


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        ("r = Reshape(x, row)  s = Sigmoid(r)  y = Reshape(s, flat)", ["Sigmoid"]),
        ("r = Reshape(x, row)  s = Mul(half, r)  t = Neg(s)  y = Reshape(t, flat)", ["Mul", "Neg"]),
    ],
)
def test_nodes_read_what_was_reshaped(prove, body, ops):
    assert prove(_text(body), ReshapesAround(), batches=(1, 3)).ops == ops


def test_a_scalar_of_more_dimensions_adds_none_to_what_has_as_many(prove):
    body = "r = Reshape(x, flat)  s = Add(r, one)  t = Neg(s)  y = Reshape(t, column)"
    text = _text(body, "float[n, 1] x", "float[n, 1] y").replace(
        "<int64", "<int64[2] column = {-1, 1}, int64", 1
    )
    assert prove(text, ReshapesAround(), batches=(1, 3)).ops == ["Add", "Neg"]


@pytest.mark.parametrize(
    ("constant", "between", "source", "shape"),
    [
        ("1, 4, 1, 3, 3", "1, 4, 2, 3, 3", "4, 2, 3, 3", [4, 1, 3, 3]),
        ("3, 1", "4, 2, 3, 3", "8, 3, 3", [1, 3, 1]),
        ("6, 1", "6, 4", "2, 3, 4", [2, 3, 1]),
        ("4", "6, 4", "6, 2, 2", [1, 2, 2]),
    ],
)
def test_a_constant_is_regrouped(prove, constant, between, source, shape):
    text = f"""{H} g (float[{source}] x, float[{constant}] c) => (float[{source}] y)
    <int64[{between.count(",") + 1}] there = {{{between}}}, int64[{source.count(",") + 1}] back = {{{source}}}> {{
    r = Reshape(x, there)  s = Add(c, r)  y = Reshape(s, back) }}"""
    proof = prove(text, ReshapesAround(), constants="c")
    assert proof.ops == ["Add"]
    assert list(proof.graph.nodes[0].inputs[0].shape) == shape


@pytest.mark.parametrize(
    ("constant", "between", "source"),
    [("4, 1", "2, 4, 3", "8, 3"), ("6, 1, 1", "6, 2, 2", "3, 4, 2"), ("3", "4, 3", "3, 4")],
)
def test_a_constant_along_a_part_of_a_dimension_stays(load, constant, between, source):
    text = f"""{H} g (float[{source}] x, float[{constant}] c) => (float[{source}] y)
    <int64[{between.count(",") + 1}] there = {{{between}}}, int64[{source.count(",") + 1}] back = {{{source}}}> {{
    r = Reshape(x, there)  s = Add(c, r)  y = Reshape(s, back) }}"""
    assert ReshapesAround()(load(text, constants="c")).rewritten == 0


def _masked(between, source, mask):
    return f"""{H} g (float[{source}] x, float[{mask}] c) => (float[{source}] y)
    <int64[{between.count(",") + 1}] there = {{{between}}}, int64[{source.count(",") + 1}] back = {{{source}}}> {{
    n = Neg(x)  r = Reshape(n, there)  s = Add(r, c)  t = Reshape(s, back)  y = Softmax(t) }}"""


@pytest.mark.parametrize(
    ("mask", "between", "source", "shape"),
    [
        ("1, 4, 1, 3, 3", "2, 4, 2, 3, 3", "8, 2, 3, 3", [8, 1, 3, 3]),
        ("4, 1, 3", "3, 4, 5, 3", "12, 5, 3", [12, 1, 3]),
        ("1, 4, 2, 3", "2, 4, 2, 3", "8, 2, 3", [8, 2, 3]),
        ("6, 1, 1", "6, 2, 2", "3, 4, 2", [3, 4, 1]),
    ],
)
def test_masks_of_windows_are_repeated_for_each_image(prove, mask, between, source, shape):
    proof = prove(_masked(between, source, mask), ReshapesAround(), constants="c")
    assert proof.ops == ["Neg", "Add", "Softmax"]
    assert list(proof.graph.nodes[1].inputs[1].shape) == shape


def test_a_mask_of_a_part_of_what_is_split_stays(load):
    text = _masked("6, 2, 2", "3, 4, 2", "1, 2, 1")
    assert ReshapesAround()(load(text, constants="c")).rewritten == 0


def test_a_cast_keeps_its_type(prove):
    body = "r = Reshape(x, row)  c = Cast <to = 7> (r)  y = Reshape(c, flat)"
    assert prove(_text(body, output="int64[n] y"), ReshapesAround()).ops == ["Cast"]


@pytest.mark.parametrize(
    "body",
    [
        "r = Reshape(x, row)  y = Reshape(r, flat)",  # nothing between, which is another pass's
        "r = Reshape(x, row)  s = Add(r, one)  y = Reshape(s, flat)",  # two dimensions, not one
        "r = Reshape(x, row)  s = Softmax(r)  y = Reshape(s, flat)",
        "r = Reshape(x, row)  s = Add(r, r)  t = Add(r, s)  y = Reshape(t, flat)",
    ],
)
def test_others_stay(refusals, body):
    assert refusals(_text(body), ReshapesAround()) == []


def test_what_others_read_stays(refusals):
    body = "r = Reshape(x, row)  s = Neg(r)  z = Exp(s)  y = Reshape(s, flat)"
    text = _text(body, output="float[n] y, float[1, n] z")
    assert refusals(text, ReshapesAround()) == ["'s' has 2 readers"]
