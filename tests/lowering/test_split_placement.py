"""Concatenations lie behind the tensor whose last part they begin with, where that aligns."""

import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.lowering.placement import Slot
from wpk.lowering.split_placement import place_split_parts

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[n, 5, 5, SIZE] x, float[n, 5, 5, 6] u) => (float[n, 5, 5, c] y) {
  m = Relu(x)
  parts = Constant<value_ints = [8, PART]>()
  a, t = Split<axis = 3>(m, parts)
  c = Concat<axis = 3>(FIRST)
  d = Sigmoid(c)
  y = Concat<axis = 3>(a, d)
}"""


def _slots(part: int, first: str = "t, u", movable: str = "m c d") -> dict[str, Slot]:
    text = TEXT.replace("SIZE", str(8 + part)).replace("PART", str(part)).replace("FIRST", first)
    model = onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text))
    shared = place_split_parts(gs.import_onnx(model), movable.split(), {})
    for name, slot in shared.slots.items():
        assert name in "mc"
        assert shared.wholes[slot.parent] == (5, 5, 8 + part + 6)
    return dict(shared.slots)


def test_a_concatenation_begins_where_the_part_does() -> None:
    assert _slots(part=10) == {"m": Slot("m+c", 3, 0), "c": Slot("m+c", 3, 8)}


@pytest.mark.parametrize(
    ("part", "first", "movable"),
    [
        (12, "t, u", "m c d"),  # rows of 26 floats do not align
        (10, "u, t", "m c d"),  # not first
        (10, "a, u", "m c d"),  # not the last part
        (10, "t, u", "m d"),  # the concatenation may not move
        (10, "t, u", "c d"),  # what is split may not move
    ],
)
def test_otherwise_both_stay_where_they_are(part: int, first: str, movable: str) -> None:
    assert _slots(part, first, movable) == {}


def test_what_lies_inside_another_tensor_stays_there() -> None:
    text = TEXT.replace("SIZE", "18").replace("PART", "10").replace("FIRST", "t, u")
    graph = gs.import_onnx(onnx.shape_inference.infer_shapes(onnx.parser.parse_model(text)))
    shared = place_split_parts(graph, {"m", "c"}, {"c": Slot("other", 3, 0)})
    assert not shared.slots
