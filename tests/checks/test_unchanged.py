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


def _kept(original: gs.Graph, rewritten: gs.Graph, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is computed once in graphs of one input."""
    seen, has = list[str](), UnchangedNodes.has

    def noted(self: UnchangedNodes, node: FlatNode) -> bool:
        seen.extend(node.known_as if has(self, node) else ())
        return has(self, node)

    monkeypatch.setattr(UnchangedNodes, "has", noted)
    x = np.random.default_rng(1).standard_normal((2, 3)).astype(np.float32)
    assert not compare_graphs(flatten(original), flatten(rewritten), {"x": x}).differences
    return seen


def _small(body: str, opset: int = 17) -> gs.Graph:
    head = f'<ir_version: 8, opset_import: ["": {opset}]> m (float[2,3] x) => (float[2,3] y)'
    return gs.import_onnx(onnx.parser.parse_model(f"{head} {{ {body} }}"))


def test_a_missing_operand_is_missing_in_both(monkeypatch: pytest.MonkeyPatch) -> None:
    original, rewritten = (
        _small("h = Constant<value_float = 0.5>()  y = Clip(x, h)") for _ in "ab"
    )
    for graph in (original, rewritten):
        _node(graph, "Clip").inputs.insert(1, gs.Variable.empty())
    assert _kept(original, rewritten, monkeypatch) == ["h", "y"]


def test_what_a_node_makes_of_nothing_is_a_constant_by_any_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = _small("h = Constant<value_float = 0.5>()  y = Max(x, h)")
    rewritten = _small("g = Constant<value_float = 0.5>()  y = Max(x, g)")
    assert _kept(original, rewritten, monkeypatch) == ["y"]


@pytest.mark.parametrize(("opset", "kept"), [(13, ["a", "y"]), (12, ["y"])])
def test_a_node_is_the_same_in_opsets_that_define_it_alike(
    opset: int, kept: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most models are raised to one opset, and few of their nodes mean anything else there."""
    body = "a = Sigmoid(x)  y = Elu(a)"
    assert _kept(_small(body, opset), _small(body, 20), monkeypatch) == kept


BRANCHES = """a = Exp(x)  b = Neg(x)  s = ReduceSum<keepdims = 0>(x)  yes = Cast<to = 9>(s)
    y = If(yes) <then_branch = one () => (float[2,3] t) { t = Identity(a) },
                 else_branch = two () => (float[2,3] u) { u = Identity(b) }>"""


def test_what_a_branch_reads_is_an_operand(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["a", "b", "s", "yes", "y"]
    assert _kept(_small(BRANCHES), _small(BRANCHES), monkeypatch) == names
    wrong = _small(BRANCHES.replace("a = Exp", "a = Sin").replace("b = Neg", "b = Sin"))
    x = np.ones((2, 3), np.float32)
    found = compare_graphs(flatten(_small(BRANCHES)), flatten(wrong), {"x": x}).differences
    assert {"a", "b", "y"} <= {each.tensor for each in found}
