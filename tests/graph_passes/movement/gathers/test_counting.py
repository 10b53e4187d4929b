"""What counts through its places, and what only looks like it."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes.core.sizes import ONE, ZERO, Size, size_of
from wpk.graph_passes.movement.gathers.counting import count_of

H = '<ir_version: 8, opset_import: ["" : 17]>'

TEXT = f"""{H} g (float[n, s] x) => (int64[n, 1, s] y)
    <int64[1] b = {{0}}, int64[1] c = {{1}}, int64 zero = {{0}}, int64 one = {{1}}, int64[2] back = {{1, 2}},
     int64[2] ends = {{0, 1}}> {{
    t = Shape(x)  bn = Gather(t, b)  n = Squeeze(bn)  bs = Gather(t, c)  m = Squeeze(bs)
    i = Range(zero, n, one)  j = Range(zero, m, one)
    u = Unsqueeze(i, back)  v = Unsqueeze(j, ends)  w = MULTIPLE  y = Add(w, v) }}"""


def test_two_free_dimensions_count_row_major(load):
    graph = load(TEXT.replace("MULTIPLE", "Mul(u, m)"))
    count = count_of(graph.outputs[0])
    assert count is not None
    assert count.steps == (Size(1, ("s",)), ZERO, ONE)
    assert count.is_row_major
    assert count.total == Size(1, ("n", "s"))


@pytest.mark.parametrize("multiple", ["Mul(u, n)", "Mul(u, one)", "Identity(u)"])
def test_another_step_is_not_row_major(load, multiple):
    count = count_of(load(TEXT.replace("MULTIPLE", multiple)).outputs[0])
    assert count is None or not count.is_row_major


@pytest.mark.parametrize(
    ("array", "row_major"),
    [
        (np.arange(6).reshape(2, 3), True),
        (np.arange(6).reshape(2, 1, 3), True),
        (np.arange(6).reshape(2, 3) + 1, False),
        (np.arange(6).reshape(3, 2).T, False),
    ],
)
def test_a_constant_counts_as_its_numbers_say(array, row_major):
    count = count_of(gs.Constant("c", array))
    assert count is not None
    assert count.is_row_major == row_major


@pytest.mark.parametrize("array", [np.array([0, 1, 3]), np.array([[0, 1], [2, 4]]), np.ones(2)])
def test_other_constants_do_not_count(array):
    assert count_of(gs.Constant("c", array)) is None


def test_a_size_is_a_dimension_of_a_shape_or_a_number(load):
    graph = load(TEXT.replace("MULTIPLE", "Mul(u, m)"))
    tensors = graph.tensors()
    assert size_of(tensors["n"]) == Size(1, ("n",))
    assert size_of(tensors["m"]) == Size(1, ("s",))
    assert size_of(tensors["one"]) == ONE
    assert size_of(tensors["t"]) is None
