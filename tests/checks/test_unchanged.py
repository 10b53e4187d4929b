"""Nodes that passes left alone are computed once, and no others are taken for such."""

from collections.abc import Callable

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.checks.pass_check import compare_graphs
from wpk.checks.unchanged import UnchangedNodes
from wpk.lowering.flat_graph import FlatNode, flatten

TEXT = """<ir_version: 8, opset_import: ["": 17]>
m (float[2,9] x) => (float[2,9] y)
<float[9] c = {0}, float[1] w = {0}>
{
    a = Mul(x, c)
    b = Gemm<alpha = 2.0>(a, w)
    d = Sub(b, x)
    r = LeakyRelu<alpha = 0.5>(d)
    y = Exp(r)
}"""
ALL = ["a", "b", "d", "r", "y"]
WEIGHTS = np.random.default_rng(0).standard_normal((9, 9)).astype(np.float32)
Change = Callable[[gs.Graph], None]


def _graph() -> gs.Graph:
    loaded = gs.import_onnx(onnx.parser.parse_model(TEXT))
    _node(loaded, "Mul").inputs[1] = gs.Constant("c", np.arange(9, dtype=np.float32))
    _node(loaded, "Gemm").inputs[1] = gs.Constant("w", WEIGHTS)
    return loaded


def _node(graph: gs.Graph, op: str) -> gs.Node:
    return next(node for node in graph.nodes if node.op == op)


def _taken(change: Change, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """What is computed once, and what differs, where a graph is changed."""
    original, edited, seen = flatten(_graph()), _graph(), list[str]()
    change(edited)
    has = UnchangedNodes.has

    def noted(self: UnchangedNodes, node: FlatNode) -> bool:
        found = has(self, node)
        seen.extend(node.known_as if found else ())
        return found

    monkeypatch.setattr(UnchangedNodes, "has", noted)
    x = np.random.default_rng(1).standard_normal((2, 9)).astype(np.float32)
    found = compare_graphs(original, flatten(edited), {"x": x})
    return seen, [each.tensor for each in found.differences]


def _nothing(graph: gs.Graph) -> None:
    del graph


def _other_attribute(graph: gs.Graph) -> None:
    _node(graph, "LeakyRelu").attrs["alpha"] = 0.25


def _other_order(graph: gs.Graph) -> None:
    node = _node(graph, "Sub")
    node.inputs = node.inputs[::-1]


def _other_operand(graph: gs.Graph) -> None:
    node = _node(graph, "Sub")
    node.inputs[1] = _node(graph, "Mul").outputs[0]


def _other_operator(graph: gs.Graph) -> None:
    _node(graph, "Exp").op = "Sigmoid"


def _other_constant(graph: gs.Graph) -> None:
    values = np.arange(9, dtype=np.float32)
    values[4] = np.nextafter(values[4], np.float32(9))
    _node(graph, "Mul").inputs[1] = gs.Constant("c2", values)


def _other_weights(graph: gs.Graph) -> None:
    """More numbers than are compared: where they lie says it."""
    weights = WEIGHTS.copy()
    weights[4, 4] += 1.0
    _node(graph, "Gemm").inputs[1] = gs.Constant("w2", weights)


def _turned_weights(graph: gs.Graph) -> None:
    """The same memory, seen in another order."""
    _node(graph, "Gemm").inputs[1] = gs.Constant("w2", WEIGHTS.T)


def _equal_constant(graph: gs.Graph) -> None:
    _node(graph, "Mul").inputs[1] = gs.Constant("c2", np.arange(9, dtype=np.float64))


def _cast(graph: gs.Graph) -> None:
    node = _node(graph, "Gemm")
    narrow = gs.Variable("narrow", np.float16)
    cast = gs.Node("Cast", "cast", {"to": onnx.TensorProto.FLOAT16}, [node.inputs[0]], [narrow])
    graph.nodes.insert(1, cast)
    node.inputs[0] = narrow


@pytest.mark.parametrize("change", [_nothing, _equal_constant, _cast])
def test_what_a_pass_left_alone_is_computed_once(
    change: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _taken(change, monkeypatch) == (ALL, [])


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        (_other_constant, "a"),
        (_other_weights, "b"),
        (_turned_weights, "b"),
        (_other_order, "d"),
        (_other_operand, "d"),
        (_other_attribute, "r"),
        (_other_operator, "y"),
    ],
)
def test_a_node_that_differs_in_anything_is_computed_and_so_is_what_reads_it(
    change: Change, differs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind a tensor that is not right the rewritten graph goes on with its own value."""
    found, wrong = _taken(change, monkeypatch)
    place = ALL.index(differs)
    assert found[:place] == ALL[:place]
    assert {*ALL[place : place + 2]}.isdisjoint(found)
    assert wrong[0] == differs


def test_what_is_computed_once_is_the_originals_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fault that the conditions keep away: a node that is taken for the original's is not seen."""
    assert _taken(_other_operator, monkeypatch)[1] == ["y"]
    monkeypatch.setattr("wpk.checks.unchanged._kind", lambda _node: ("", "", ()))
    original, edited = flatten(_graph()), _graph()
    _other_operator(edited)
    x = np.ones((2, 9), np.float32)
    assert compare_graphs(original, flatten(edited), {"x": x}).differences == []


def test_the_same_node_of_another_opset_is_computed_again() -> None:
    """Softmax without an axis was over all elements behind the first axis once, and is over the last axis now."""
    text = """<ir_version: 8, opset_import: ["": 11]>
    m (float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }"""
    original, edited = (gs.import_onnx(onnx.parser.parse_model(text)) for _ in range(2))
    edited.opset = 13
    x = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    found = compare_graphs(flatten(original), flatten(edited), {"x": x})
    assert [each.tensor for each in found.differences] == ["y"]
