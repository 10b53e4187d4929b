"""The contract holds for every pass, whatever the pass does."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest

from wpk.errors import GraphError
from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.query import why_not_replace
from wpk.graph_passes.core.tidy import remove_dead_nodes, sort_nodes

CHAIN = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y) { h = Relu(x)  y = Neg(h) }
"""


class _Rename(GraphPass):
    name = "rename"

    def apply(self, graph: gs.Graph) -> PassResult:
        graph.outputs[0].name = "z"
        return PassResult(rewritten=1)


class _Retype(GraphPass):
    name = "retype"

    def apply(self, graph: gs.Graph) -> PassResult:
        graph.outputs[0].dtype = np.dtype(np.float16)
        return PassResult(rewritten=1)


class _Reshape(GraphPass):
    name = "reshape"

    def apply(self, graph: gs.Graph) -> PassResult:
        graph.outputs[0].shape = [3, 2]
        return PassResult(rewritten=1)


class _Crash(GraphPass):
    name = "crash"

    def apply(self, graph: gs.Graph) -> PassResult:
        for node in graph.nodes:
            if node.op == "Neg":
                raise KeyError("axis")
        return PassResult()


class _Picky(GraphPass):
    name = "picky"

    def requires(self, graph: gs.Graph) -> str | None:
        return f"opset {graph.opset} is odd"

    def apply(self, graph: gs.Graph) -> PassResult:
        return PassResult()


class _Duplicate(GraphPass):
    name = "duplicate"

    def apply(self, graph: gs.Graph) -> PassResult:
        graph.nodes[1].name = graph.nodes[0].name
        return PassResult(rewritten=1)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (_Rename(), r"pass rename broke the graph: the graph's outputs were \['y'\], are \['z'\]"),
        (_Retype(), "pass retype broke the graph: output 'y' had type float32, has float16"),
        (_Reshape(), r"pass reshape broke the graph: output 'y' had shape \(2, 3\), has \(3, 2\)"),
        (_Crash(), r"pass crash failed at node 'Neg_1' \(Neg\): KeyError: 'axis'"),
        (_Picky(), "pass picky cannot run: opset 17 is odd"),
        (_Duplicate(), "pass duplicate broke the graph: two nodes are called 'Relu_0'"),
    ],
)
def test_names_the_pass_that_breaks_the_contract(load, broken, message):
    with pytest.raises(GraphError, match=message) as caught:
        broken(load(CHAIN))
    assert f"--skip-pass {broken.name}" in caught.value.fix


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda graph: setattr(graph.nodes[0], "name", ""), "a Relu node has no name"),
        (lambda graph: setattr(graph.nodes[0].outputs[0], "name", "y"), "two tensors are called"),
    ],
)
def test_refuses_graphs_whose_names_do_not_identify(load, spoil, message):
    graph = load(CHAIN)
    spoil(graph)
    with pytest.raises(GraphError, match=message):
        _Picky()(graph)


def test_sorting_keeps_the_order_of_a_sorted_graph_and_repairs_a_shuffled_one(load):
    graph = load(CHAIN)
    names = [node.name for node in graph.nodes]
    sort_nodes(graph)
    assert [node.name for node in graph.nodes] == names
    graph.nodes.reverse()
    sort_nodes(graph)
    assert [node.name for node in graph.nodes] == names


def test_sorting_reports_a_cycle(load):
    graph = load(CHAIN)
    graph.nodes[0].inputs = [graph.nodes[1].outputs[0]]
    with pytest.raises(GraphError, match="cycle through nodes Neg_1, Relu_0"):
        sort_nodes(graph)


def test_sorting_is_not_limited_by_depth():
    x = gs.Variable("x", np.float32, [1])
    graph = gs.Graph([], [x], [x], opset=17)
    editor = GraphEditor(graph)
    tensor: gs.Tensor = x
    for _ in range(3000):
        tensor = editor.add("Relu", [tensor], like=tensor, name="r")
    graph.outputs = [tensor]
    graph.nodes.reverse()
    sort_nodes(graph)
    assert graph.nodes[0].inputs[0] is x


def test_dead_nodes_go_and_what_subgraphs_read_stays(load):
    graph = load("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x, bool c) => (float[2] y) {
   used = Relu(x)
   dead = Neg(x)
   y = If (c) <then_branch = a () => (float[2] p) { p = Identity(used) },
               else_branch = b () => (float[2] q) { q = Identity(x) }>
}""")
    assert remove_dead_nodes(graph) == 1
    assert [node.op for node in graph.nodes] == ["Relu", "If"]


def test_replacing_a_graph_output_keeps_its_name(load):
    graph = load(CHAIN)
    editor = GraphEditor(graph)
    output = graph.outputs[0]
    new = editor.add("Abs", [graph.inputs[0]], like=output)
    editor.replace(output, new)
    assert graph.outputs[0].name == "y"
    assert graph.outputs[0].inputs[0].op == "Abs"


def test_replacing_a_graph_output_by_an_input_is_refused_in_words(load):
    graph = load(CHAIN)
    editor = GraphEditor(graph)
    reason = why_not_replace(graph, graph.outputs[0], graph.inputs[0])
    assert reason == "'y' is a graph output and 'x' is an input or a constant"
    with pytest.raises(ValueError, match="is a graph output"):
        editor.replace(graph.outputs[0], graph.inputs[0])


def test_replacing_one_of_several_outputs_keeps_the_others(load):
    graph = load("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[4] x) => (float[2] y, float[2] z) {
   a, b = Split(x)
   y = Relu(a)
   z = Relu(b)
}""")
    editor = GraphEditor(graph)
    split = graph.nodes[0]
    first, second = split.outputs
    editor.replace(first, second)
    assert split.outputs[0].is_empty()
    assert split.outputs[1] is second
    assert len(second.outputs) == 2
