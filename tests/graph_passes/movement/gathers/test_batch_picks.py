"""One place of each element of a batch is read with the batch in front."""

import numpy as np
import pytest

from wpk.graph_passes.movement.gathers.batch_picks import BatchPicks

H = '<ir_version: 8, opset_import: ["" : 18]>'
CONSTANTS = """<int64 zero = {0}, int64 one = {1}, int64 two = {2}, int64[1] last = {-1},
    int64[3, 1] three = {0, 1, 2}, int64[3, 1] turned = {2, 1, 0},
    int64[2] flat = {-1, 5}, int64 seven = {7}>"""
COUNT = "s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)  b = Unsqueeze(r, last)"

ROWS = """f = Reshape(x, flat)  s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)
    k = Mul(r, seven)"""


def _text(body, given="float[N, 7, 5] x, int64[N, 1] i", output="float[N, 5] y"):
    return f"{H} g ({given}) => ({output}) {CONSTANTS} {{ {body} }}"


CASES = {
    "a free batch": _text(f"{COUNT} j = Concat<axis = -1>(b, i)  y = GatherND(x, j)"),
    "constant places of the batch": _text(
        "j = Concat<axis = 1>(three, i)  y = GatherND(x, j)",
        "float[3, 7, 5] x, int64[3, 1] i",
        "float[3, 5] y",
    ),
    "rows of a free batch": _text(
        f"{ROWS} c = ArgMax<axis = 1, keepdims = 0>(m)  j = Add(c, k)  y = Gather(f, j)",
        "float[N, 7, 5] x, float[N, 7] m",
    ),
    "places of two dimensions": _text(
        "k = Neg(i)  j = Concat<axis = -1>(three, k, i)  y = GatherND(x, j)",
        "float[3, 7, 7] x, int64[3, 1] i",
        "float[3] y",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_places_of_the_batch_are_left_out(load, export, run_model, case):
    graph, plain = load(CASES[case]), load(CASES[case])
    assert BatchPicks()(graph).rewritten == 1
    (node,) = (node for node in graph.nodes if node.op == "GatherND")
    assert node.attrs["batch_dims"] == 1
    assert BatchPicks()(graph).rewritten == 0
    generator = np.random.default_rng(0)
    depth = list(graph.inputs[0].shape)[2]
    inputs = {
        "x": generator.standard_normal((3, 7, depth)).astype(np.float32),
        "i": generator.integers(0, 7, (3, 1)),
        "m": generator.standard_normal((3, 7)).astype(np.float32),
    }
    inputs = {each.name: inputs[each.name] for each in graph.inputs}
    found, right = (run_model(export(each), inputs)[0] for each in (graph, plain))
    np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize(
    "text",
    [
        _text(f"{COUNT} j = Concat<axis = -1>(i, b)  y = GatherND(x, j)"),
        _text(f"{COUNT} d = Mul(b, two)  j = Concat<axis = -1>(d, i)  y = GatherND(x, j)"),
        _text(
            "j = Concat<axis = 1>(turned, i)  y = GatherND(x, j)",
            "float[3, 7, 5] x, int64[3, 1] i",
            "float[3, 5] y",
        ),
        _text(
            "j = Concat<axis = 1>(three, i)  y = GatherND(x, j)",
            "float[4, 7, 5] x, int64[3, 1] i",  # not of the whole batch
            "float[3, 5] y",
        ),
        _text(  # which may reach into another element of the batch
            f"{ROWS} j = Add(i, k)  y = Gather(f, j)", "float[N, 7, 5] x, int64[N] i"
        ),
        _text(
            f"{ROWS} c = ArgMax<axis = 1, keepdims = 0>(m)  j = Add(c, k)  y = Gather(f, j)",
            "float[N, 7, 5] x, float[N, 8] m",
        ),
    ],
)
def test_other_places_stay(load, text):
    assert BatchPicks()(load(text)).rewritten == 0
