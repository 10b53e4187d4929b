"""What was inferred of a node stands for equal nodes, and for no others."""

from collections.abc import Callable

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes import KnownTypes, infer_shapes, run_passes
from wpk.graph_passes.core import shapes
from wpk.graph_passes.fusion.fuse_operators import FuseOperators

CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3, 4] x) => (float[p, q, r] y) <int64[2] target = {6, 4}, int64[1] axes = {0}> {
   a = Transpose <perm = [1, 0, 2]> (x)
   b = Reshape(a, target)
   c = Softmax <axis = 1> (b)
   y = Unsqueeze(c, axes)
}"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The operators of every model that ONNX's inference is asked of."""
    models: list[list[str]] = []
    infer = shapes._by_onnx

    def told(model: onnx.ModelProto, **how: bool) -> object:
        models.append([node.op_type for node in model.graph.node])
        return infer(model, **how)

    monkeypatch.setattr(shapes, "_by_onnx", told)
    return models


def made(graph: gs.Graph) -> list[tuple[str, object, object]]:
    return [(t.name, t.dtype, t.shape) for node in graph.nodes for t in node.outputs]


def forget(graph: gs.Graph) -> gs.Graph:
    """The same graph, of which no type is known but of its inputs."""
    for node in graph.nodes:
        for tensor in node.outputs:
            tensor.dtype = tensor.shape = None
    return graph


def test_says_what_the_inference_of_the_whole_graph_says_and_asks_once(load, asked):
    graph, known = load(CHAIN), KnownTypes()
    whole = made(graph)
    for times in (1, 0):
        asked.clear()
        infer_shapes(forget(graph), known)
        assert asked == [[node.op] for node in graph.nodes] * times
        assert made(graph) == whole


def an_attribute(graph: gs.Graph) -> None:
    graph.nodes[0].attrs["perm"] = [2, 1, 0]


def the_kind_of_an_attribute(graph: gs.Graph) -> None:
    graph.nodes[2].attrs["axis"] = 0


def a_small_constant(graph: gs.Graph) -> None:
    graph.nodes[1].inputs[1] = gs.Constant("other", np.asarray([4, 6]))


def the_same_bytes_of_another_type(graph: gs.Graph) -> None:
    graph.nodes[3].inputs[1] = gs.Constant("other", np.asarray([1]))


def a_shape(graph: gs.Graph) -> None:
    graph.inputs[0].shape = [4, 3, 2]


def a_type(graph: gs.Graph) -> None:
    graph.inputs[0].dtype = np.dtype(np.float16)


def the_operator(graph: gs.Graph) -> None:
    graph.nodes[2].op = "Hardmax"


@pytest.mark.parametrize(
    ("edit", "ops"),
    [
        (an_attribute, ["Transpose", "Reshape"]),
        (the_kind_of_an_attribute, ["Softmax"]),
        (a_small_constant, ["Reshape", "Softmax", "Unsqueeze"]),
        (the_same_bytes_of_another_type, ["Unsqueeze"]),
        (a_shape, ["Transpose", "Reshape"]),
        (a_type, ["Transpose", "Reshape", "Softmax", "Unsqueeze"]),
        (the_operator, ["Hardmax"]),
    ],
)
def test_what_differs_in_one_thing_is_inferred_anew(
    load, asked, edit: Callable[[gs.Graph], None], ops: list[str]
):
    known = KnownTypes()
    infer_shapes(load(CHAIN), known)
    edited, plain = load(CHAIN), load(CHAIN)
    edit(edited)
    edit(plain)
    asked.clear()
    infer_shapes(forget(edited), known)
    assert [model for model in asked if len(model) == 1] == [[op] for op in ops]
    infer_shapes(forget(plain))
    assert made(edited) == made(plain)


def test_calls_are_told_apart_by_the_bodies_of_their_functions(load):
    text = CHAIN.replace("float[2, 3, 4] x", "float[3, 3, 3] x").replace("{6, 4}", "{3, 9}")
    first, second, plain = load(text), load(text), load(text)
    for graph in (first, second, plain):
        run_passes(graph, [FuseOperators()])
    known = KnownTypes()
    infer_shapes(first, known)
    for graph in (second, plain):
        (body,) = (f for f in graph.functions if any(node.op == "Softmax" for node in f.nodes))
        (node,) = (node for node in body.nodes if node.op == "Softmax")
        node.op, node.attrs = "Cast", {"to": onnx.TensorProto.FLOAT16}
    infer_shapes(second, known)
    infer_shapes(plain)
    assert made(second) == made(plain) != made(first)


@pytest.mark.parametrize(
    "text",
    [
        CHAIN.replace("2, 3, 4", "n, 3, 4").replace("{6, 4}", "{-1, 4}"),
        CHAIN.replace("Reshape(a, target)", "Reshape(a, d)").replace(
            "b = ", "s = Shape(x)  d = Slice(s, axes, target)  b = "
        ),
    ],
)
def test_graphs_whose_sizes_follow_from_values_are_inferred_whole(load, asked, text: str):
    graph, plain = load(text), load(text)
    asked.clear()
    infer_shapes(forget(graph), KnownTypes())
    assert any(len(model) == len(graph.nodes) for model in asked)
    infer_shapes(forget(plain))
    assert made(graph) == made(plain)
