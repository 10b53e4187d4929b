"""A NonMaxSuppression becomes a selection of known size, and what drops its empty rows."""

import numpy as np
import pytest
from onnxruntime import InferenceSession

from wpk.graph_passes.core.functions import calls
from wpk.graph_passes.movement.selections.placed_selections import PlacedSelections


def text(
    sizes: str = "2, 60", classes: int = 3, most: str = "int64[1] m = {5}", opset: int = 18
) -> str:
    batch, count = sizes.split(", ")
    return f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[{sizes}, 4] x, float[{batch}, {classes}, {count}] s) => (int64[k, 3] y)
        <{most}, float[1] o = {{0.1}}, float[1] t = {{0.5}}> {{ y = NonMaxSuppression(x, s, m, o, t) }}"""


def test_rows_have_places_and_those_that_are_left_their_order(load, export):
    graph = load(text())
    right = InferenceSession(export(graph).SerializeToString())
    assert PlacedSelections()(graph).rewritten == 1
    ((call, function),) = calls(graph)
    assert call.outputs[0].shape == [2 * 3 * 5, 3]
    assert function.nodes[0].op == "NonMaxSuppression"
    assert function.nodes[-1].op == "ScatterND"
    assert [node.op for node in graph.nodes if node is not call] == [
        "Gather",
        "GreaterOrEqual",
        "Compress",
    ]
    placed = InferenceSession(export(graph).SerializeToString())
    rng = np.random.default_rng(0)
    for scale in (0.4, 1.0, 3.0):  # none, some, and as many as may be of most classes
        feeds = {
            "x": rng.uniform(0, 9, (2, 60, 4)).astype(np.float32),
            "s": scale * rng.random((2, 3, 60), np.float32),
        }
        (expected,), (given,) = right.run(None, feeds), placed.run(None, feeds)
        np.testing.assert_array_equal(given, expected)
        assert len(expected) <= 30
    assert len(expected) > 15


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (text("2, K"), "the sizes of its boxes and scores are not known"),
        (
            text(most="int64[1] m = {0}"),
            "how many boxes it selects of a class is not constant, or none",
        ),
        (text("1, 70000"), "70000 boxes, at most 65536 are carried"),
        (text(opset=12), "opset 12 has other forms of what places its rows"),
        (
            text(most="int64[1] m = {60}"),
            "360 rows may be selected, which are more bytes than it reads",
        ),
    ],
)
def test_refuses_in_words(refusals, given, reason):
    assert refusals(given, PlacedSelections()) == [reason]


def test_limits_that_are_computed_are_refused(refusals):
    given = text().replace("s) => (", "s, float[1] o) => (").replace(", float[1] o = {0.1}", "")
    assert refusals(given, PlacedSelections()) == ["'o' is not constant"]
