"""Small models with nodes that no kernel computes, as exporters write them."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

LEFT_ALONE = ("reversed-sequences",)
"""Passes that must be skipped for nodes of these models to have no kernel."""

TEXTS = {
    # The head of a detector.
    "nms": """g (float[1, 8, 4] boxes, float[1, 2, 8] scores) => (int64[k, 3] y)
        <int64[1] most = {3}, float[1] iou = {0.5}, float[1] least = {0.1}>
        { s = Sigmoid (scores)  y = NonMaxSuppression (boxes, s, most, iou, least) }""",
    # Everything behind NonZero has a shape that only a run decides, up to the output y.
    "nonzero": """g (float[4, 6] x) => (float[m] y, float[4, 6] q)
        { s = Sigmoid (x)  h = Round (s)  i = NonZero (h)  t = Transpose<perm = [1, 0]> (i)
          g = GatherND (s, t)  y = Relu (g)  q = Exp (s) }""",
    "if": """g (float[2, 6] x) => (float[2, 6] y) <float zero = {0.0}>
        { s = Relu (x)  m = ReduceMean<keepdims = 0> (s)  c = Greater (m, zero)
          z = If (c) <then_branch = a () => (float[2, 6] o) { o = Sin (s) },
                      else_branch = b () => (float[2, 6] p) { p = Cos (s) }>
          y = Sigmoid (z) }""",
    "loop": """g (float[2, 6] x) => (float[2, 6] y, float[r, 2, 6] all) <int64 trips = {3}, bool go = {1}>
        { s = Relu (x)
          y, all = Loop (trips, go, s)
          <body = b (int64 i, bool c, float[2, 6] v) => (bool d, float[2, 6] w, float[2, 6] z)
            { two = Constant<value_int = 2> ()  d = Less (i, two)  w = Sin (v)  z = Add (w, x) }> }""",
    "einsum": """g (float[n, 3, 4] x) => (float[n, 3, 3] y)
        { s = Relu (x)  y = Einsum<equation = "bij,bkj->bik"> (s, x) }""",
    # Pooling of fp64 has no kernel; what follows it in fp64 has.
    "double": """g (double[3, 10] x, float[3, 10] z) => (double[3, 10] y, float[3, 10] w)
        <int64[10] lens = {3, 2, 1, 1, 2, 3, 3, 2, 1, 1}>
        { y = ReverseSequence<time_axis = 0, batch_axis = 1> (x, lens)  e = Exp (y)  c = Cast<to = 1> (e)
          w = Add (c, z) }""",
    # Two groups: the kernel of Relu stands between them.
    "between": """g (float[30, 10] x) => (float[30, 10] y)
        <int64[10] lens = {3, 2, 1, 1, 2, 3, 3, 2, 1, 1}>
        { a = ReverseSequence<time_axis = 0, batch_axis = 1> (x, lens)  r = Relu (a)
          b = ReverseSequence<time_axis = 0, batch_axis = 1> (r, lens)  y = Add (b, a) }""",
    "part": """g (float[2, 33] x) => (float[2, 10] y)
        <int64[2] lens = {2, 1}, int64[1] from = {3}, int64[1] to = {13}, int64[1] axes = {1}>
        { t = ReverseSequence<time_axis = 1, batch_axis = 0> (x, lens)  u = Slice (t, from, to, axes)  y = Relu (u) }""",
}


def text_model(text: str) -> onnx.ModelProto:
    """A model of opset 17 from its text."""
    return onnx.parser.parse_model(_HEAD + text)


def lstm_model() -> onnx.ModelProto:
    """A layer as torch exports it, but with coupled gates: two directions, joined, the last states used."""
    rng = np.random.default_rng(0)
    weights = {
        name: rng.standard_normal(shape).astype(np.float32) * 0.3
        for name, shape in {"w": (2, 20, 3), "r": (2, 20, 5), "b": (2, 40)}.items()
    }
    given = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    given.append(numpy_helper.from_array(np.array([0, 0, -1]), "target"))
    given.append(numpy_helper.from_array(np.array([1]), "second"))
    nodes = [
        helper.make_node(
            "LSTM",
            ["x", "w", "r", "b"],
            ["y", "", "c"],
            hidden_size=5,
            direction="bidirectional",
            input_forget=1,
        ),
        helper.make_node("Transpose", ["y"], ["t"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["t", "target"], ["joined"]),
        helper.make_node("Relu", ["joined"], ["out"]),
    ]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", [7, 2, 3]), ("out", [7, 2, 10]), ("c", [2, 2, 5]))
    ]
    graph = helper.make_graph(nodes, "lstm", ports[:1], ports[1:], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


MODELS: dict[str, Callable[[], onnx.ModelProto]] = {
    **{name: lambda text=text: text_model(text) for name, text in TEXTS.items()},
    "lstm": lstm_model,
}
"""What makes each model, by name."""
