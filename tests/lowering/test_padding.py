"""Rows are padded only where a convolution reads them as its channels."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.dtypes import Precision
from wpk.graph_passes.shapes import infer_shapes
from wpk.lowering.lower import lower

TEXT = """<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
g (float[2,3,3,6] x, float[8,CHANNELS,1,1] w) => (float[2,8,p,q] y) {
  a = Relu(x)
  y = wpk.conv(a, w)
}
<domain: "wpk", opset_import: ["" : 17]>
conv (a, w) => (y) {
  t = Transpose<perm = [0, 3, 1, 2]>(a)
  u = TURN
  y = Conv(u, w)
}"""


@pytest.mark.parametrize(
    ("turn", "channels", "padding"),
    [
        ("Identity(t)", 6, 2),  # channels last: 6 of 4 bytes become 8
        ("Transpose<perm = [0, 3, 1, 2]>(t)", 3, 0),  # the last axis of a is the height
    ],
)
def test_only_channels_are_padded(turn: str, channels: int, padding: int) -> None:
    text = TEXT.replace("TURN", turn).replace("CHANNELS", str(channels))
    text = text.replace("u = Identity(t)\n  y = Conv(u, w)", "y = Conv(t, w)")
    model = onnx.parser.parse_model(text)
    model.graph.input.pop()
    weights = np.random.default_rng(0).standard_normal((8, channels, 1, 1)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    graph = gs.import_onnx(model)
    for index, node in enumerate([*graph.nodes, *graph.functions[0].nodes]):
        node.name = f"{node.op}_{index}"
    infer_shapes(graph)
    program = lower(graph, Precision.FP32, {})
    assert program.values["a"].padding == padding
