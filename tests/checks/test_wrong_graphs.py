"""Rewritten graphs that compute something else where a comparison could be too quick to see it."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.checks.pass_check import PassComparison, compare_graphs
from wpk.errors import GraphError
from wpk.lowering.flat_graph import flatten

HEAD = '<ir_version: 8, opset_import: ["": 17]>\n'
X = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
LIMITED = "m (float[2,3] x) => (float[2,3] y) <float h = {0.5}> { y = Max(x, h) }"
PLAIN = "m (float[2,3] x) => (float[2,3] y) { a = Relu(x)  y = Exp(a) }"
TWO = "m (float[2,3] x) => (float[2,3] y, float[2,3] z) { y = Relu(x)  z = Exp(x) }"
DRAWN = "m (float[2,3] x) => (float[2,3] y) { r = RandomNormalLike(x)  y = Add(r, x) }"
WHOLE = "m (float[2,3] x) => (int64[2,3] y) { f = Floor(x)  y = Cast<to = 7>(f) }"
BYTES = "m (float[2,3] x) => (uint8[2,3] y) <float s = {1}, uint8 z = {0}> { y = QuantizeLinear(x, s, z) }"
HALVES = """m (float[2,3] x) => (float[1,2] y, float[1,2] z, float[2,2] q, float[2] f)
<float h = {0}, float[2] c = {1, 2}, float[2] k = {3, 4}, int64[1] first = {0}, int64[1] last = {2}, int64[1] axis = {1}>
{ r = Max(x, h)  s = Slice(r, first, last, axis)  y, z = Split(s)  q = Mul(s, c)  f = Cast<to = 1>(k) }"""

Inputs = Mapping[str, np.ndarray]


def _graph(text: str) -> gs.Graph:
    loaded = gs.import_onnx(onnx.parser.parse_model(HEAD + text))
    for place, node in enumerate(loaded.nodes):
        node.name = f"{node.op}_{place}"
    return loaded


def _limited() -> gs.Graph:
    """A Clip without its lower limit, which the parser of texts cannot say."""
    graph = _graph(LIMITED)
    (node,) = graph.nodes
    node.op, node.inputs = "Clip", [node.inputs[0], gs.Variable.empty(), node.inputs[1]]
    return graph


def _node(graph: gs.Graph, op: str) -> gs.Node:
    return next(node for node in graph.nodes if node.op == op)


def _found(original: gs.Graph, rewritten: gs.Graph, inputs: Inputs) -> list[str]:
    found: PassComparison = compare_graphs(flatten(original), flatten(rewritten), inputs)
    return [each.tensor for each in found.differences]


def _given_a_limit(graph: gs.Graph) -> None:
    _node(graph, "Clip").inputs[1] = gs.Constant("low", np.array(0.25, np.float32))


def _without_a_limit(graph: gs.Graph) -> None:
    _node(graph, "Clip").inputs[2] = gs.Variable.empty()


def _input_made_constant(graph: gs.Graph) -> None:
    graph.inputs = []
    _node(graph, "Relu").inputs[0] = gs.Constant("x", X)


def _result_made_constant(graph: gs.Graph) -> None:
    node = _node(graph, "Relu")
    node.inputs[0] = gs.Constant("c", X)


def _result_made_a_folded_constant(graph: gs.Graph) -> None:
    _node(graph, "Exp").inputs[0] = gs.Constant("a", np.maximum(X, 0))
    graph.nodes.remove(_node(graph, "Relu"))


def _output_left_out(graph: gs.Graph) -> None:
    graph.outputs = graph.outputs[:1]
    graph.cleanup()


def _output_renamed(graph: gs.Graph) -> None:
    graph.outputs[1].name = "another"


def _name_used_twice(graph: gs.Graph) -> None:
    _node(graph, "Exp").outputs[0].name = "y"


def _random(graph: gs.Graph) -> None:
    _node(graph, "Relu").op = "RandomNormalLike"


def _drawn_wider(graph: gs.Graph) -> None:
    _node(graph, "RandomNormalLike").attrs["scale"] = 5.0


def _drawn_once(graph: gs.Graph) -> None:
    _node(graph, "RandomNormalLike").op = "Neg"


def _narrow(graph: gs.Graph) -> None:
    _node(graph, "Cast").attrs["to"] = onnx.TensorProto.INT32


def _whole_numbers_in_floating_point(graph: gs.Graph) -> None:
    _node(graph, "Cast").attrs["to"] = onnx.TensorProto.FLOAT


def _outputs_exchanged(graph: gs.Graph) -> None:
    node = _node(graph, "Split")
    node.outputs = list(node.outputs)[::-1]


def _one_operand_more(graph: gs.Graph) -> None:
    _node(graph, "Max").inputs.append(gs.Constant("more", np.array(0.75, np.float32)))


def _constant_seen_otherwise(graph: gs.Graph) -> None:
    node = _node(graph, "Mul")
    node.inputs[1] = gs.Constant("turned", node.inputs[1].values.reshape(2, 1))


def _constant_of_the_same_bits(graph: gs.Graph) -> None:
    node = _node(graph, "Cast")
    node.inputs[0] = gs.Constant("bits", node.inputs[0].values.view(np.int32))


def _operand_computed(graph: gs.Graph) -> None:
    node, other = _node(graph, "Mul"), gs.Variable("other")
    graph.nodes.insert(0, gs.Node("Exp", "exp", {}, [node.inputs[1]], [other]))
    node.inputs[1] = other


def _signed(graph: gs.Graph) -> None:
    """The same bits: 0."""
    _node(graph, "QuantizeLinear").inputs[2] = gs.Constant("signed", np.array(0, np.int8))


@pytest.mark.parametrize(
    ("model", "change", "differ"),
    [
        (LIMITED, _given_a_limit, "y"),
        (LIMITED, _without_a_limit, "y"),
        (PLAIN, _input_made_constant, "x"),
        (PLAIN, _result_made_constant, "a"),
        (PLAIN, _result_made_a_folded_constant, "a"),
        (PLAIN, _random, "a"),
        (TWO, _output_left_out, "z"),
        (TWO, _output_renamed, "z"),
        (TWO, _name_used_twice, "y"),
        (DRAWN, _drawn_wider, "r"),
        (DRAWN, _drawn_once, "r"),
        (BYTES, _signed, "y"),
        (HALVES, _outputs_exchanged, "y"),
        (HALVES, _one_operand_more, "r"),
        (HALVES, _operand_computed, "q"),
        (HALVES, _constant_seen_otherwise, "q"),
        (HALVES, _constant_of_the_same_bits, "f"),
        (WHOLE, _narrow, "y"),
        (WHOLE, _whole_numbers_in_floating_point, "y"),
    ],
)
def test_another_graph_is_not_the_model(
    model: str, change: Callable[[gs.Graph], None], differ: str
) -> None:
    original, rewritten = ((_limited() if model == LIMITED else _graph(model)) for _ in "ab")
    assert _found(original, rewritten, {"x": X}) == []
    rewritten = _limited() if model == LIMITED else _graph(model)
    change(rewritten)
    assert differ in _found(original, rewritten, {"x": X})


@pytest.mark.parametrize(
    ("right", "wrong", "x"),
    [
        ("t = Add(x, large)  y = Exp(t)", "t = Add(x, large)  q = Exp(t)  y = Neg(q)", X),
        ("y = Log(x)", "y = Sin(x)", np.abs(X) * (X.min() < X)),
        ("y = Log(x)", "q = Log(x)  y = Max(q, least)", np.abs(X) * (X.min() < X)),
        ("s = Mul(x, x)  m = Add(s, masks)  y = Neg(m)", "s2 = Abs(x)  m = Add(s2, masks)  y = Neg(m)", X),
    ],
    ids=["squares beyond float64", "infinity beside numbers", "a number for infinity", "a mask beside scores"],
)  # fmt: skip
def test_no_number_of_a_tensor_hides_the_others(right: str, wrong: str, x: np.ndarray) -> None:
    text = """m (float[2,3] x) => (float[2,3] y)
    <float large = {400}, float least = {-3e38}, float[3] masks = {0, -3e38, 0}> { BODY }"""
    original = _graph(text.replace("BODY", right))
    assert _found(original, _graph(text.replace("BODY", right)), {"x": x}) == []
    assert _found(original, _graph(text.replace("BODY", wrong)), {"x": x}) != []


def test_a_large_number_times_nothing_allows_nothing() -> None:
    """A mask that masks nothing, and scores: what is computed has other names, so that all of it is one region."""
    text = """m (float[2,3] x, float[2,3] mask) => (float[2,3] y) <float one = {1}, float low = {-3e38}>
    { a1 = Sub(one, mask)  m1 = Mul(a1, low)  s1 = Mul(x, x)  y = Add(s1, m1) }"""
    inputs = {"x": X, "mask": np.ones((2, 3), np.float32)}
    other = text.replace("1 =", "2 =").replace("1,", "2,").replace("1)", "2)")
    assert _found(_graph(text), _graph(other), inputs) == []
    wrong = other.replace("Mul(x, x)", "Abs(x)")
    assert _found(_graph(text), _graph(wrong), inputs) == ["y"]


def test_an_output_is_compared_by_its_own_name_whatever_a_body_calls_it() -> None:
    original, rewritten = _graph(PLAIN), flatten(_graph(PLAIN.replace("Exp(a)", "Sin(a)")))
    *others, last = rewritten.nodes
    hidden = type(last)(last.proto, last.operator, ("inside",))
    graph = type(rewritten)((*others, hidden), {}, ("x",), ("y",), rewritten.opset)
    found = compare_graphs(flatten(original), graph, {"x": X})
    assert [each.tensor for each in found.differences] == ["y"]


def test_outputs_without_a_name_are_not_one_tensor() -> None:
    text = """m (float[2,3] x) => (int64[2,1] y, int64[2,1] z) <int64[1] k = {1}>
    { a, y = TopK(x, k)  b, z = TopK<largest = 0>(x, k) }"""
    graph = _graph(text)
    for node in graph.nodes:
        node.outputs[0] = gs.Variable.empty()
    assert _found(graph, graph, {"x": X}) == []


def test_what_is_computed_of_no_elements_may_be_a_constant() -> None:
    text = "m (float[0] x) => (float y) { p = ReduceProd<keepdims = 0>(x)  y = Neg(p) }"
    rewritten = _graph(text)
    _node(rewritten, "Neg").inputs[0] = gs.Constant("p", np.array(1, np.float32))
    rewritten.nodes.remove(_node(rewritten, "ReduceProd"))
    assert _found(_graph(text), rewritten, {"x": np.zeros(0, np.float32)}) == []


def test_the_numbers_of_the_model_are_nobodys_to_write() -> None:
    graph = _graph(LIMITED)
    flatten(graph)
    with pytest.raises(ValueError, match="read-only"):
        graph.nodes[0].inputs[1].values[...] = 1.0


@pytest.mark.parametrize("value", [0.5, 0.25])
def test_constants_of_one_name_hold_the_same_numbers(value: float) -> None:
    graph = _graph(TWO)
    for node, number in zip(graph.nodes, (0.5, value), strict=True):
        node.op = "Add"
        node.inputs.append(gs.Constant("c", np.array([number], np.float32)))
    if value == 0.5:
        assert list(flatten(graph).constants) == ["c"]
        return
    with pytest.raises(GraphError, match="two constants of the graph are called 'c'"):
        flatten(graph)
