"""A Gather of neighbours is a Slice."""

import pytest

from wpk.graph_passes.movement.gathers.range_gather import RangeGather


def _text(index: str, axis: int = 1, shape: str = "n, 6, 4", output: str = "n, k, 4") -> str:
    count = len(index.split(","))
    return f"""<ir_version: 8, opset_import: ["" : 17]> g (float[{shape}] x) => (float[{output}] y)
        <int64[{count}] i = {{{index}}}> {{ r = Relu(x)  y = Gather<axis = {axis}>(r, i) }}"""


@pytest.mark.parametrize("index", ["2", "-2", "1, 2, 3", "4, -1", "0, 1, 2, 3, 4, 5"])
@pytest.mark.parametrize("axis", [1, -2])
def test_neighbours_are_a_slice(prove, index, axis):
    assert prove(_text(index, axis), RangeGather(), batches=(1, 3)).ops == ["Relu", "Slice"]


@pytest.mark.parametrize(
    "text",
    [
        _text("2, 1"),
        _text("1, 3"),
        _text("5, 0"),
        _text("1, 1"),
        _text("0", axis=0, output="1, 6, 4"),  # of a free dimension
        _text("0, 1", axis=0, shape="6", output="k"),
        _text("1")
        .replace("int64[1] i = {1}", "int64[1, 1] i = {1}")
        .replace("[n, k, 4] y", "[n, 1, 1, 4] y"),
    ],
)
def test_other_indices_stay(refusals, text):
    assert refusals(text, RangeGather()) == []
