"""Nodes that stand for one node: their names, types and shapes, and what a window's attributes mean."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import window_numbers


@pytest.fixture
def parts():
    x = gs.Variable("x", np.float32, ["n", 6, 4])
    y = gs.Variable("y", np.float32)
    node = gs.Node("Relu", "it", {}, [x], [y])
    return NodeParts(GraphEditor(gs.Graph([node], [x], [y])), node)


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        (["n", 24], [0, 24]),
        (["n", 6, 4], [0, 6, 4]),
        ([None, 12, 4], [-1, 12, 4]),
        (["m", 12, 4], [-1, 12, 4]),
        ([6, "n", 4], [6, -1, 4]),
    ],
)
def test_a_free_size_stays_where_it_was_and_is_what_is_left_elsewhere(parts, shape, target):
    made = parts.reshaped(parts.node.inputs[0], shape)
    assert made.shape == shape
    assert made.inputs[0].inputs[1].values.tolist() == target


def test_two_sizes_that_are_left_are_no_shape(parts):
    with pytest.raises(ValueError, match=r"'x' of shape .* has several free sizes in"):
        parts.reshaped(parts.node.inputs[0], [None, None, 4])


def test_a_node_has_the_type_and_shape_of_its_first_input_where_no_other_is_named(parts):
    (x,) = parts.node.inputs
    same, truth = parts.add("Abs", x), parts.add("Less", x, x, dtype=np.bool_)
    chosen = parts.add("Where", truth, x, same, like=x)
    assert [t.dtype for t in (same, truth, chosen)] == [np.float32, np.bool_, np.float32]
    assert all(t.shape == x.shape and t.inputs[0].name.startswith("it_") for t in (same, truth))
    assert parts.transposed(x, [2, 0, 1]).shape == [4, "n", 6]


def test_a_type_that_a_tensor_has_is_no_cast(parts):
    (x,) = parts.node.inputs
    assert parts.cast(x, np.float32) is x
    assert parts.cast(x, np.int64).dtype == np.int64
    assert [node.op for node in parts.editor.graph.nodes] == ["Relu", "Cast"]


def test_windows_have_strides_of_one_and_no_pads_where_they_do_not_say():
    window = gs.Node("MaxPool", "p", {"strides": [2, 3], "pads": []})
    assert window_numbers(window, "strides", 2) == [2, 3]
    assert window_numbers(window, "dilations", 2) == [1, 1]
    assert window_numbers(window, "pads", 2) == [0, 0, 0, 0]
    assert window_numbers(window, "output_padding", 2) == [0, 0]
