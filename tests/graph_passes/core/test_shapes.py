"""Every tensor gets a type and a shape, through functions, with a free batch, without weights."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes import infer_shapes, proven_shapes

FREE = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 3, 8, 8] x, float[4, 3, 3, 3] w) => (float[batch, 4] y) {
   a = Conv(x, w)
   b = GlobalAveragePool(a)
   y = Flatten(b)
}"""


def _forget(graph: gs.Graph) -> None:
    for node in graph.nodes:
        for tensor in node.outputs:
            tensor.dtype, tensor.shape = None, None


def test_a_free_batch_keeps_its_name(load):
    graph = load(FREE, "w")
    _forget(graph)
    infer_shapes(graph)
    shapes = [node.outputs[0].shape for node in graph.nodes]
    assert shapes == [["batch", 4, 6, 6], ["batch", 4, 1, 1], ["batch", 4]]
    assert all(node.outputs[0].dtype == np.float32 for node in graph.nodes)


def test_functions_are_inferred_through(load):
    graph = load("""
<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
g (float[2, 3] x) => (float[3, 2] y) { y = wpk.turn(x) }
<domain: "wpk", opset_import: ["" : 17]>
turn (x) => (y) { y = Transpose <perm = [1, 0]> (x) }
""")
    _forget(graph)
    infer_shapes(graph)
    assert graph.outputs[0].shape == [3, 2]


def test_invented_symbols_are_dropped(load):
    graph = load("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (int64[m, n] y) { y = NonZero(x) }
""")
    _forget(graph)
    infer_shapes(graph)
    assert graph.outputs[0].shape == [2, None]


def test_big_weights_are_not_loaded(load):
    graph = load(
        """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 64] x, float[64, 32] w) => (float[2, 32] y) { y = MatMul(x, w) }
""",
        "w",
    )
    infer_shapes(graph)
    assert isinstance(graph.nodes[0].inputs[1]._values, gs.ir.tensor.LazyValues)


def test_a_node_that_inference_cannot_follow_keeps_what_it_had(load):
    graph = load("""
<ir_version: 8, opset_import: ["" : 17, "custom" : 1]>
g (float[2, 3] x) => (float[5] y) { y = custom.Mystery(x) }
""")
    infer_shapes(graph)
    assert graph.outputs[0].shape == [5]


RESHAPED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 6, 8] x) => (OUTPUT)
  <int64[4] heads = {-1, 6, 2, 4}, int64[3] flat = {-1, 6, 4}, int64[4] back = {-1, 2, 6, 4},
   int64[1] zero = {0}, int64[1] one = {1}, int64[1] many = {4096}> { BODY }"""


@pytest.mark.parametrize(
    ("body", "output", "shapes"),
    [
        ("y = Reshape(x, heads)", "float[n, 6, 2, 4] y", [["batch", 6, 2, 4]]),
        (
            "a = Transpose<perm = [0, 2, 1]>(x)  b = Reshape(a, flat)  y = Reshape(b, back)",
            "float[n, 2, 6, 4] y",
            [["batch", 8, 6], [None, 6, 4], ["batch", 2, 6, 4]],
        ),
    ],
)
def test_the_free_batch_is_recognised_behind_reshapes(load, body, output, shapes):
    graph = load(RESHAPED.replace("OUTPUT", output).replace("BODY", body))
    _forget(graph)
    infer_shapes(graph)
    assert [node.outputs[0].shape for node in graph.nodes] == shapes


@pytest.mark.parametrize(
    "body",
    ["y = Slice(x, zero, many, zero)", "y = Slice(x, one, many, zero)", "y = Concat<axis=0>(x, x)"],
)
def test_a_batch_that_was_cut_or_joined_is_not_the_free_one(load, body):
    graph = load(RESHAPED.replace("OUTPUT", "float[n, 6, 8] y").replace("BODY", body))
    _forget(graph)
    infer_shapes(graph)
    assert graph.outputs[0].shape[0] != "batch"
    assert graph.outputs[0].shape[1:] == [6, 8]


def test_proven_shapes_name_every_free_dimension_and_take_none_for_a_number(load):
    graph = load("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[n, s, 8] x, float[s, n] z) => (float[n, s, 8] a, float[p, s, 8] b, float[q, 8] c, float[s, r] d, int64[3, m] e)
<int64[3] parts = {0, 0, 8}, int64[2] rows = {-1, 8}>
{ a = Reshape(x, parts) b = Concat<axis=0>(a, x) c = Reshape(x, rows) d = Concat<axis=1>(z, z) e = NonZero(x) }
""")
    found = proven_shapes(graph)
    assert found["a"] == ["n", "s", 8]
    assert found["b"] == [None, "s", 8]  # 2 n
    assert found["c"] == [None, 8]  # n s
    assert found["d"] == ["s", None]
    assert found["e"] == [3, None]
