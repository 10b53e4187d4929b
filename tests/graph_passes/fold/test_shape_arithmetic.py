"""Computed shapes become constants; a free batch becomes 0, 1 or -1."""

import numpy as np
import pytest

from wpk.graph_passes.fold.shape_arithmetic import ShapeArithmetic

H = '<ir_version: 8, opset_import: ["" : 17]>'


def test_a_fixed_shape_collapses(prove):
    proof = prove(
        f"""{H} g (float[2, 3, 4] x) => (float[2, 12] y)
        <int64 i = {{1}}, int64 j = {{2}}, int64[1] axis = {{0}}, int64[1] rest = {{2}}> {{
        s = Shape(x)  a = Gather(s, i)  b = Gather(s, j)  m = Mul(a, b)
        u = Unsqueeze(m, axis)  t = Concat <axis = 0> (rest, u)  y = Reshape(x, t) }}""",
        ShapeArithmetic(),
        rewritten=6,
    )
    assert proof.ops == ["Reshape"]


def test_a_free_batch_becomes_zero_in_a_reshape(prove):
    proof = prove(
        f"""{H} g (float[batch, 3, 4] x) => (float[batch, 12] y)
        <int64 i = {{0}}, int64[1] axis = {{0}}, int64[1] rest = {{12}}> {{
        s = Shape(x)  a = Gather(s, i)  u = Unsqueeze(a, axis)
        t = Concat <axis = 0> (u, rest)  y = Reshape(x, t) }}""",
        ShapeArithmetic(),
        batches=(1, 5),
    )
    assert proof.node("Reshape").inputs[1].values.tolist() == [0, 12]


def test_a_product_with_the_batch_becomes_minus_one(prove):
    proof = prove(
        f"""{H} g (float[batch, 3, 4] x) => (float[n, 4] y)
        <int64[1] first = {{0}}, int64[1] second = {{1}}, int64[1] three = {{3}},
         int64[1] four = {{4}}> {{
        s = Shape(x)  a = Slice(s, first, second)  m = Mul(a, three)
        t = Concat <axis = 0> (m, four)  y = Reshape(x, t) }}""",
        ShapeArithmetic(),
        batches=(1, 5),
    )
    assert proof.node("Reshape").inputs[1].values.tolist() == [-1, 4]


def test_a_free_batch_becomes_one_in_an_expand(prove):
    proof = prove(
        f"""{H} g (float[batch, 1] x) => (float[batch, 3] y)
        <int64[1] first = {{0}}, int64[1] one = {{1}}, int64[1] three = {{3}}> {{
        s = Shape(x)  a = Slice(s, first, one)
        t = Concat <axis = 0> (a, three)  y = Expand(x, t) }}""",
        ShapeArithmetic(),
        batches=(1, 5),
    )
    assert proof.node("Expand").inputs[1].values.tolist() == [1, 3]


def test_the_guard_of_an_exported_expand_folds(prove):
    """Torch writes expand(-1, ...) as a choice between ones and the sizes asked for."""
    proof = prove(
        f"""{H} g (float[batch, 1] x) => (float[batch, 3] y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] three = {{3}},
         int64[2] minus = {{-1, -1}}, int64[2] ones = {{1, 1}}> {{
        s = Shape(x)  a = Slice(s, zero, one)  t = Concat <axis = 0> (a, three)
        e = Equal(t, minus)  w = Where(e, ones, t)  y = Expand(x, w) }}""",
        ShapeArithmetic(),
        rewritten=2,
        batches=(1, 5),
    )
    assert proof.node("Expand").inputs[1].values.tolist() == [1, 3]


def test_shape_with_bounds_and_casts_and_differences(prove):
    prove(
        f"""{H} g (float[2, 3, 4] x) => (float[2, 3, 4] y)
        <int32 four = {{4}}, int64[1] axis = {{0}}> {{
        s = Shape <start = 2, end = 3> (x)  i = Cast <to = 6> (s)  d = Sub(i, four)
        f = Cast <to = 1> (d)  y = Add(x, f) }}""",
        ShapeArithmetic(),
        rewritten=3,
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (
            """s = Shape(x)  a = Slice(s, zero, one)  b = Slice(s, one, two)
            t = Concat <axis = 0> (b, a)  y = Reshape(x, t)""",
            "target 't' is ['m', 'n'], too little is known",
        ),
        ("s = Shape(z)  y = Expand(x, s)", "target 's' is ['n', 'm', 'k'], too little is known"),
    ],
)
def test_refuses_two_free_dimensions(refusals, body, reason):
    text = f"""{H} g (float[n, m] x, float[n, m, k] z) => (float[p, q, r] y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}> {{ {body} }}"""
    if "Reshape" in body:
        text = text.replace("float[p, q, r] y", "float[p, q] y")
    assert reason in refusals(text, ShapeArithmetic())


def test_refuses_to_fold_a_graph_output(refusals):
    text = f"{H} g (float[2, 3] x) => (int64[2] y) {{ y = Shape(x) }}"
    assert refusals(text, ShapeArithmetic()) == ["'y' is a graph output"]


RESIZE = f"""{H} g (float[n, 2, 4, 6] x) => (float[n, 2, p, q] y) <int64[2] size = {{SIZE}}> {{
    s = Shape<end = 2>(x)  sizes = Concat<axis = 0>(s, size)
    y = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel">(x, , , sizes) }}"""


@pytest.mark.parametrize("size", ["8, 12", "4, 6", "7, 9", "2, 3"])
def test_sizes_of_a_resize_become_scales_for_every_batch(prove, size):
    proof = prove(RESIZE.replace("SIZE", size), ShapeArithmetic(), batches=(1, 3))
    assert proof.ops == ["Resize"]
    height, width = (int(n) for n in size.split(","))
    scales = np.array([1, 1, height / 4, width / 6], np.float32)
    assert proof.node("Resize").inputs[2].values.tolist() == scales.tolist()


def test_sizes_that_no_scales_give_stay(load):
    graph = load(RESIZE.replace("float[n, 2, 4, 6]", "float[n, 2, 3, 6]").replace("SIZE", "5, 6"))
    assert 3 * float(np.float32(5) / np.float32(3)) < 5
    result = ShapeArithmetic()(graph)
    reasons = [refusal.reason for refusal in result.refusals]
    assert reasons == ["no constant scales resize 'x' to ['n', 2, 5, 6]"]


SPREAD = f"""{H} g (float[batch, 3] x) => (float[p, q, r] y)
    <int64[1] three = {{3}}, int64[1] first = {{0}}, int64[1] all = {{-1}}, int64[3] minus = {{-1, -1, -1}},
     int64[3] ones = {{1, 1, 1}}, float[1, 1, 3] c = {{1, 2, 3}}> {{
    s = Shape(x)  b = Gather(s, first)  t = Concat<axis = 0>(b, three, three)  u = Reshape(t, all)
    m = Equal(u, minus)  w = Where(m, ones, u)  REST }}"""


def test_the_sizes_of_an_expand_are_said_so_that_inference_follows_the_batch(prove):
    proof = prove(
        SPREAD.replace("REST", "e = Expand(c, w)  y = Relu(e)"),
        ShapeArithmetic(),
        rewritten=2,
        batches=(1, 5),
    )
    assert proof.node("Expand").outputs[0].shape == ["batch", 3, 3]
    assert "Where" not in proof.ops


def test_a_filled_tensor_with_a_free_batch_is_an_expand(prove):
    text = SPREAD.replace("REST", "y = ConstantOfShape<value = float[1] {2.5}>(w)")
    proof = prove(text, ShapeArithmetic(), rewritten=2, batches=(1, 5))
    assert proof.ops[-1] == "Expand"
    assert proof.node("Expand").inputs[0].values.tolist() == [[[2.5]]]


TILED = f"""{H} g (float[batch, 3] x) => (float[p, q] y)
    <int64[1] one = {{1}}, float[1, 3] c = {{1, 2, 3}}> {{
    b = Shape<end = 1>(x)  t = Concat<axis = 0>(b, one)  e = Tile(ROW, t)  y = Neg(e) }}"""


def test_a_row_that_is_tiled_over_a_free_batch_is_an_expand(prove):
    proof = prove(TILED.replace("ROW", "c"), ShapeArithmetic(), batches=(1, 5))
    assert proof.node("Expand").outputs[0].shape == ["batch", 3]


def test_more_than_a_row_stays_tiled(load):
    graph = load(TILED.replace("ROW", "x"))
    ShapeArithmetic()(graph)
    assert "Tile" in [node.op for node in graph.nodes]
