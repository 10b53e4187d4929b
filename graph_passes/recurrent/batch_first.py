"""Let a recurrent operator take the batch in front where it lies there.

    LSTM(Transpose(x))  ->  Transpose(LSTM<layout = 1>(x))

Exporters write layout 0 alone, also where the model has the batch in front. A free batch must stay there,
since kernels take their leading extent at run time.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import Dims, made_by
from wpk.graph_passes.movement.chains.reshape_chains import permutation
from wpk.graph_passes.recurrent.edits import fresh, turned
from wpk.graph_passes.recurrent.node import C0, H0, OPERATORS, RecurrentNode, X

_SWAP = (1, 0, 2)


class RecurrentBatchFirst(Rule[RecurrentNode]):
    """Move the Transpose in front of a recurrent operator behind it."""

    name = "recurrent-batch-first"
    ops = OPERATORS

    def match(self, graph: gs.Graph, node: gs.Node) -> RecurrentNode | Refusal | None:
        """Match an input that a Transpose takes the first dimension of to the second place."""
        del graph
        turn = made_by(node.inputs[X], "Transpose")
        order = permutation(turn) if turn is not None else None
        if node.attrs.get("layout", 0) or order is None or order[1] != 0:
            return None
        read = RecurrentNode.read(node)
        return refusal(node, read) if isinstance(read, str) else read

    def rewrite(self, editor: GraphEditor, match: RecurrentNode) -> None:
        """Write the node again, with transposes around it."""
        node, count = match.node, len(match.directions)
        inputs = [
            turned(editor, tensor, _SWAP, f"{tensor.name}_batch_first")
            if place in (X, H0, C0) and not tensor.is_empty()
            else tensor
            for place, tensor in enumerate(node.inputs)
        ]
        states: Dims = [match.batch, count, match.hidden]
        shapes: list[Dims] = [[states[0], match.steps, count, match.hidden], states, states]
        outputs, ends = [], []
        for place, tensor in enumerate(node.outputs):
            if tensor.is_empty():
                outputs.append(gs.Variable.empty())
                continue
            new = fresh(editor, tensor, shapes[place], f"{tensor.name}_batch_first")
            outputs.append(new)
            ends.append((tensor, new, (1, 2, 0, 3) if place == 0 else _SWAP))
        attrs = {**node.attrs, "layout": 1}
        name = editor.new_name(f"{node.name}_batch_first")
        editor.graph.nodes.append(gs.Node(node.op, name, attrs, inputs, outputs))
        for old, new, perm in ends:
            editor.replace(old, turned(editor, new, perm, f"{old.name}_turned"))
