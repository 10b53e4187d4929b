"""Write a Loop over the rows of tensors as a Scan.

    Loop(size of x along its first axis, s) { s', t = f(s, Gather(x, i)) }   ->   Scan(s, x) { s', t = f(s, x_i) }

So torch writes ``for i in range(len(x))`` of a scripted function. What a Scan collects has a known length, also
where that is a free dimension, and its turns are given rows that nobody has to look up.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.control_flow.loops import holds
from wpk.graph_passes.clean.control_flow.subgraphs import copy_nodes, detach, with_nested
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import dims, given, is_op, rank, values
from wpk.graph_passes.core.sizes import Size, known_sizes, size_of

_OF_LOOP = 2
"""Inputs of a Loop, and of its body, in front of the states."""


@dataclass(frozen=True)
class _Rows:
    """A Loop with the nodes that look rows up in its body."""

    node: gs.Node
    lookups: Sequence[gs.Node]


class LoopsToScans(Rule[_Rows]):
    """Write Loops that take a turn for each row, and read the turn's number for nothing else, as Scans."""

    name = "loops-to-scans"
    ops = ("Loop",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rows | Refusal | None:
        """Find what is looked up; other uses of the turn's number are the reason why a Loop stays."""
        body, count, runs = node.attrs["body"], given(node, 0), given(node, 1)
        size = None if count is None else size_of(count)
        begins = None if runs is None else values(runs)
        if size is None or not (runs is None or (begins is not None and begins.all())):
            return None
        number, before = body.inputs[:_OF_LOOP]
        if not holds(body.outputs[0], before) or rank(number) != 0:
            return None
        if any(getattr(each, "type", "") != "tensor_type" for each in body.inputs[_OF_LOOP:]):
            return None
        readers = [n for n in with_nested(body.nodes) if any(t is number for t in n.inputs)]
        if not readers or any(each is number for each in body.outputs):
            return None
        own = {id(t) for t in body.inputs} | {id(t) for n in body.nodes for t in n.outputs}
        outer = {id(each) for each in body.nodes}
        for each in readers:
            if id(each) not in outer or not _takes_rows(each, number, size, own):
                return Refusal(node.name, f"its body reads the turn's number in {each.op}")
        return _Rows(node, readers)

    def rewrite(self, editor: GraphEditor, match: _Rows) -> None:
        """Put a Scan in the place of the Loop."""
        node, body = match.node, match.node.attrs["body"]
        before = body.inputs[1]
        true = np.full([1] * (rank(before) or 0), True)
        replaced: dict[int, gs.Tensor] = {id(before): editor.constant(f"{before.name}_true", true)}
        rows: dict[int, gs.Tensor] = {}
        parts: list[gs.Tensor] = []
        for each in match.lookups:
            whole = each.inputs[0]
            if id(whole) not in rows:
                rows[id(whole)] = whole
                shape = (dims(whole) or [])[1:]
                part = gs.Variable(editor.new_name(f"{whole.name}_row"), whole.dtype, shape)
                parts.append(part)
            replaced[id(each.outputs[0])] = parts[list(rows).index(id(whole))]
        gone = {id(each) for each in match.lookups}
        kept = [each for each in body.nodes if id(each) not in gone]
        nodes = copy_nodes(kept, replaced, editor.new_name)
        results = [replaced.get(id(each), each) for each in body.outputs[1:]]
        for place, each in enumerate(results):
            if any(each is part for part in parts):  # ONNX Runtime gives something else
                results[place] = gs.Variable(editor.new_name(f"{each.name}_given"), each.dtype)
                name = editor.new_name(f"{each.name}_Identity")
                nodes.append(gs.Node("Identity", name, {}, [each], [results[place]]))
        states, outputs = list(node.inputs[_OF_LOOP:]), list(node.outputs)
        within = gs.Graph(
            nodes=nodes,
            inputs=[*body.inputs[_OF_LOOP:], *parts],
            outputs=results,
            name=body.name,
            opset=body.opset,
            import_domains=body.import_domains,
        )
        detach(body)
        node.attrs.clear()
        node.inputs.clear()
        node.outputs.clear()
        attrs = {"body": within, "num_scan_inputs": len(parts)}
        name = editor.new_name(f"{node.name}_Scan")
        inputs = [*states, *rows.values()]
        editor.graph.nodes.append(gs.Node("Scan", name, attrs, inputs, outputs))


def _takes_rows(node: gs.Node, number: gs.Tensor, size: Size, own: set[int]) -> bool:
    """Whether a node takes the turn's row of a tensor from outside that has one for each turn."""
    if not is_op(node, "Gather") or node.attrs.get("axis", 0) or node.inputs[1] is not number:
        return False
    whole = node.inputs[0]
    sizes = known_sizes((dims(whole) or [None])[:1])
    return id(whole) not in own and whole is not number and sizes == (size,)
