"""Where elements lie that were only moved, and tensors without elements."""

import numpy as np
import pytest

from wpk.graph_passes.movement.chains.element_places import moved_from

H = '<ir_version: 8, opset_import: ["" : 17]>'


def test_follows_views_cuts_and_picks(load):
    graph = load(f"""{H} g (float[3, 4] x) => (float[2, 2] y)
        <int64[1] from = {{-3}}, int64[1] to = {{9}}, int64[1] axis = {{-1}}, int64[2] rows = {{-1, 0}},
         int64[2] turned = {{3, 3}}, int64[1] zero = {{0}}, int64[1] two = {{2}}> {{
        a = Slice(x, from, to, axis)  b = Transpose(a)  c = Reshape(b, turned)  d = Gather<axis = -2>(c, rows)
        y = Slice(d, zero, two, axis) }}""")
    places = moved_from(graph.outputs[0], graph.inputs[0])
    expected = np.arange(12).reshape(3, 4)[:, -3:].T.reshape(3, 3)[[-1, 0]][:, :2]
    np.testing.assert_array_equal(places, expected)


def test_nothing_in_a_shape_of_an_open_size_has_no_places(load):
    graph = load(
        f"""{H} g (float[0, 4] x) => (float[0, n] y) <int64[2] s = {{0, 4}}> {{ y = Reshape(x, s) }}"""
    )
    graph.outputs[0].shape = [0, "n"]
    assert moved_from(graph.outputs[0], graph.inputs[0]) is None


@pytest.mark.parametrize(
    ("index", "known"), [("{-3, 2}", True), ("{-4, 0}", False), ("{0, 3}", False)]
)
def test_what_is_picked_outside_lies_nowhere(load, index, known):
    graph = load(
        f"""{H} g (float[3, 4] x) => (float[2, 4] y) <int64[2] i = {index}> {{ y = Gather(x, i) }}"""
    )
    assert (moved_from(graph.outputs[0], graph.inputs[0]) is not None) == known


def test_nothing_is_picked_of_nothing(load):
    graph = load(
        f"""{H} g (float[3, 4] x, int64[0] none) => (float[0, 4] y) {{ y = Gather(x, none) }}""",
        "none",
    )
    places = moved_from(graph.outputs[0], graph.inputs[0])
    assert places is not None
    assert places.shape == (0, 4)
