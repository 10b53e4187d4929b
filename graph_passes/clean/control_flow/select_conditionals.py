"""Compute both branches of a small If, and choose between what they give.

    If(c) { then: y = f(x) } { else: y = g(x) }   ->   y = Where(c, f(x), g(x))
                                                       y = Or(And(c, f(x)), And(Not(c), g(x))) of booleans

So torch writes ``and`` and ``or`` of a scripted function. The branches are a few element-wise nodes on a few
elements, which cost less than to wait for the condition. Nothing in them can fail: no index that is
computed, no division of integers, no shape that only a run decides.
"""

from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.control_flow.subgraphs import copy_nodes, detach, name_constants_apart
from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.known import stored
from wpk.graph_passes.core.query import (
    element_type,
    integers,
    is_op,
    rank,
    static_shape,
    used_outputs,
    values,
)

MAX_NODES = 8
"""Of a branch, constants left out: as many as become one kernel or two."""

MAX_ELEMENTS = 4096
"""Of each result: a kernel takes no longer for them than it takes to start."""

_TYPES = ("bool", "float32", "float64", "int32", "int64", "uint8")
"""What ONNX Runtime chooses between."""

_CANNOT_FAIL = (
    *("Abs", "Add", "And", "Cast", "Equal", "Exp", "Greater", "GreaterOrEqual", "Identity"),
    *("Less", "LessOrEqual", "Max", "Min", "Mul", "Neg", "Not", "Or", "Relu", "Sigmoid", "Sub"),
    *("Tanh", "Unsqueeze", "Where", "Xor"),
)

_BRANCHES = ("then_branch", "else_branch")


class SelectConditionals(Rule[gs.Node]):
    """Write an If that is computed, and whose branches are small, as a Where."""

    name = "select-conditionals"
    ops = ("If",)

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | None:
        """Look at both branches; what is known to be decided, or is no small one, stays."""
        (condition,) = node.inputs
        if values(condition) is not None or rank(condition) != 0:
            return None
        used = used_outputs(graph, node)
        shapes = [static_shape(tensor) for tensor in used]
        if not all(shape is not None and prod(shape) <= MAX_ELEMENTS for shape in shapes):
            return None
        if any(str(element_type(tensor)) not in _TYPES for tensor in used):
            return None
        branches = [node.attrs[name] for name in _BRANCHES]
        for tensor, shape in zip(used, shapes, strict=True):
            place = [t is tensor for t in node.outputs].index(True)
            claims = (static_shape(branch.outputs[place]) for branch in branches)
            if any(claim not in (None, shape) for claim in claims):
                return None
        return node if all(_is_small(branch) for branch in branches) else None

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Put copies of both branches' nodes into the graph, and a Where for each result."""
        node, graph = match, editor.graph
        (condition,), outputs = node.inputs, list(node.outputs)
        sides = []
        for name in _BRANCHES:
            branch, made = node.attrs[name], dict[int, gs.Tensor]()
            name_constants_apart(graph, branch, editor.new_name)
            graph.nodes.extend(copy_nodes(branch.nodes, made, editor.new_name))
            sides.append([made.get(id(each), each) for each in branch.outputs])
            detach(branch)
        node.attrs.clear()
        node.inputs.clear()
        node.outputs.clear()
        for output, one, other in zip(outputs, *sides, strict=True):
            if output.is_empty():
                continue
            op, inputs = "Where", [condition, one, other]
            if str(element_type(output)) == "bool":
                opposite = editor.add("Not", [condition], like=condition)
                first = editor.add("And", [condition, one], like=output)
                op, inputs = "Or", [first, editor.add("And", [opposite, other], like=output)]
            name = editor.new_name(f"{output.name}_{op}")
            graph.nodes.append(gs.Node(op, name, {}, inputs, [output]))


def _is_small(branch: gs.Graph) -> bool:
    """Whether a branch has few nodes, none of which can fail."""
    nodes = [each for each in branch.nodes if each.op != "Constant"]
    made = {id(tensor) for each in branch.nodes for tensor in each.outputs}
    read = [tensor for each in nodes for tensor in each.inputs if id(tensor) not in made]
    return (
        len(nodes) <= MAX_NODES
        and all(static_shape(tensor) is not None for tensor in (*read, *branch.outputs))
        and all(is_op(each, *_CANNOT_FAIL) or _takes_known(each) for each in nodes)
    )


def _takes_known(node: gs.Node) -> bool:
    """Whether a node takes elements at constant places that there are."""
    if not is_op(node, "Gather"):
        return False
    shape, places = static_shape(node.inputs[0]), integers(stored(node.inputs[1]))
    if shape is None or places is None:
        return False
    size = shape[int(node.attrs.get("axis", 0))]
    return all(-size <= place < size for place in places)
