"""Let a Loop collect what it inserts into a sequence that is joined behind it.

    s = Loop(SequenceEmpty()) { s' = SequenceInsert(s, t) }   ->   z = Loop() { collects t }
    y = ConcatFromSequence<axis, new_axis = 1>(s)                  y = z, its turns moved to that axis
    y = ConcatFromSequence<0, new_axis = 0>(s)                     y = z, turns and first axis as one

So torch writes a list that a scripted loop appends to. Exact: elements are moved. A Loop without any turn
gives an empty tensor then, where joining an empty sequence is an error.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.control_flow.subgraphs import tensors_within
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import is_graph_output, is_op, made_by, producer, rank

_OF_LOOP = 2
"""Inputs of a Loop, and of its body, in front of the states."""


@dataclass(frozen=True)
class _Sequence:
    """A sequence that a Loop carries.

    Attributes:
        node: The Loop.
        state: The number of the state.
        part: What each turn inserts.
        joins: What joins it.
    """

    node: gs.Node
    state: int
    part: gs.Tensor
    joins: list[gs.Node]


class CollectedSequences(Rule[_Sequence]):
    """Make one sequence of a Loop an output that it collects; others wait for the next round."""

    name = "collected-sequences"
    ops = ("Loop",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Sequence | Refusal | None:
        """Find a sequence that is empty at first; one that more happens to is the reason why it stays."""
        reason = None
        for state, tensor in enumerate(node.inputs[_OF_LOOP:]):
            if made_by(tensor, "SequenceEmpty") is None:
                continue
            found = _sequence(graph, node, state)
            if isinstance(found, _Sequence):
                return found
            reason = found
        return None if reason is None else Refusal(node.name, reason)

    def rewrite(self, editor: GraphEditor, match: _Sequence) -> None:
        """Take the state away, collect its parts, and write what moves them."""
        node, body, number = match.node, match.node.attrs["body"], match.state
        insert = producer(body.outputs[1 + number])
        assert insert is not None
        insert.inputs.clear()
        insert.outputs.clear()
        body.nodes = [each for each in body.nodes if each is not insert]
        part = gs.Variable(editor.new_name(f"{match.part.name}_part"), match.part.dtype)
        name = editor.new_name(f"{match.part.name}_Identity")
        body.nodes.append(gs.Node("Identity", name, {}, [match.part], [part]))
        body.inputs = _without(body.inputs, _OF_LOOP + number)
        body.outputs = [*_without(body.outputs, 1 + number), part]
        whole = gs.Variable(editor.new_name(f"{node.name}_parts"), match.part.dtype)
        node.inputs = _without(node.inputs, _OF_LOOP + number)
        node.outputs = [*_without(node.outputs, number), whole]
        for join in match.joins:
            (output,) = join.outputs
            op, inputs, attrs = _moves(editor, join, whole)
            join.inputs.clear()
            join.outputs.clear()
            wanted = editor.new_name(f"{output.name}_{op}")
            editor.graph.nodes.append(gs.Node(op, wanted, attrs, inputs, [output]))


def _sequence(graph: gs.Graph, node: gs.Node, state: int) -> _Sequence | str:
    """Read a state that is an empty sequence at first, or say what keeps it one."""
    body, output = node.attrs["body"], node.outputs[state]
    within, given = body.inputs[_OF_LOOP + state], body.outputs[1 + state]
    insert = made_by(given, "SequenceInsert")
    read = [t for t in tensors_within(body.nodes) if t is within]
    if insert is None or insert.inputs[0] is not within or len(insert.inputs) > _OF_LOOP:
        return f"its body does not append to the sequence '{within.name}'"
    if len(read) != 1 or any(each is within for each in body.outputs):
        return f"its body does more with the sequence '{within.name}' than append to it"
    readers = list(output.outputs)
    if is_graph_output(graph, output) or not all(
        is_op(each, "ConcatFromSequence") for each in readers
    ):
        return f"the sequence '{output.name}' is not only joined"
    for join in readers:
        reason = _why_not(join)
        if reason is not None:
            return reason
    return _Sequence(node, state, insert.inputs[1], readers)


def _why_not(join: gs.Node) -> str | None:
    """Say why what joins a sequence cannot move parts of turns instead."""
    (output,) = join.outputs
    if rank(output) is None:
        return f"the rank of '{output.name}' is not known"
    if not join.attrs.get("new_axis", 0) and int(join.attrs["axis"]) % (rank(output) or 1):
        return f"'{output.name}' joins parts along another axis than the first"
    return None


def _moves(
    editor: GraphEditor, join: gs.Node, whole: gs.Tensor
) -> tuple[str, list[gs.Tensor], dict[str, object]]:
    """What makes a joined sequence of the parts of all turns: an operator, its inputs and attributes."""
    (output,) = join.outputs
    axes = rank(output) or 1
    axis = int(join.attrs["axis"]) % axes
    if join.attrs.get("new_axis", 0):
        if axis == 0:
            return "Identity", [whole], {}
        order = list(range(1, axes))
        return "Transpose", [whole], {"perm": [*order[:axis], 0, *order[axis:]]}
    minus_one = editor.constant(f"{output.name}_all", np.array([-1]))
    bounds = [
        editor.constant(f"{output.name}_{word}", np.array([value]))
        for word, value in (("from", 2), ("to", np.iinfo(np.int64).max))
    ]
    name = f"{output.name}_lengths"
    lengths = editor.add("Shape", [whole], like=minus_one, shape=[axes + 1], name=name)
    rest = editor.add("Slice", [lengths, *bounds], like=minus_one, shape=[axes - 1])
    target = [minus_one, rest]
    shape = editor.add("Concat", target, like=minus_one, shape=[axes], attrs={"axis": 0})
    return "Reshape", [whole, shape], {}


def _without(tensors: list[gs.Tensor], number: int) -> list[gs.Tensor]:
    return [*tensors[:number], *tensors[number + 1 :]]
