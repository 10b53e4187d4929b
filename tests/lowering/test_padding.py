"""Rows are padded only where a convolution reads them as its channels."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from support.networks import small_models

from wpk.dtypes import Precision
from wpk.graph_passes import infer_shapes
from wpk.lowering.lower import lower
from wpk.lowering.model import lower_model

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


@pytest.mark.parametrize(
    "body",
    [
        "a = Conv(x, w)  r = Sigmoid(a)  y = Conv(r, v)",  # one channel: no row to pad
        "a = Conv(x, u)  r = Softmax<axis = 2>(a)  y = Conv(r, t)",  # written along the height
        "a = Conv(x, u)  r = MatMul(a, s)  y = Conv(r, t)",  # a product for each channel
    ],
)
def test_nothing_is_padded_that_its_operator_cannot_write_so(tmp_path: Path, body: str) -> None:
    shapes = {
        "w": (1, 2, 3, 3),
        "v": (4, 1, 3, 3),
        "u": (3, 2, 3, 3),
        "t": (4, 3, 3, 3),
        "s": (6, 6),
    }
    constants = {n: np.ones(s, np.float32) for n, s in shapes.items() if f", {n})" in body}
    weights = ", ".join(f"float[{','.join(map(str, c.shape))}] {n}" for n, c in constants.items())
    text = f"agraph (float[N,2,9,8] x, {weights}) => (float[N,4,5,4] y) {{ {body} }}"
    path = small_models.write(text, tmp_path, constants=constants)
    program = lower_model(path, {}, Precision.FP32).program
    assert [value.padding for value in program.values.values()] == [0] * len(program.values)


def test_one_channel_at_the_end_of_a_padded_row_is_written_with_its_padding(
    tmp_path: Path, execute: Callable[..., Any]
) -> None:
    text = """agraph (float[N,4,9,8] x, float[4,3,3,3] w, int64[2] h, int64[2] k) => (float[N,4,7,6] y) {
      a, b = Split<axis = 1>(x, h)  e, f = Split<axis = 1>(b, k)
      s = Tanh(a)  c = Concat<axis = 1>(f, s)  y = Conv(c, w)
    }"""
    weights = np.random.default_rng(0).standard_normal((4, 3, 3, 3)).astype(np.float32)
    constants = {"w": weights, "h": np.array([1, 3]), "k": np.array([1, 2])}
    path = small_models.write(text, tmp_path, constants=constants)
    program = lower_model(path, {}, Precision.FP32).program
    padded = [o.problem.y for o in program.operators if o.problem.y.padding]
    assert padded
    assert all(1 in y.strides for y in padded)
    inputs = small_models.draw(path, seed=2, size=3)
    right = small_models.expected(path, inputs)["y"]
    # 27 products of numbers up to 4, rounded in any order.
    np.testing.assert_allclose(
        execute(program, inputs)["y"], right, rtol=0, atol=27 * 2.0**-24 * 27 * 4
    )
