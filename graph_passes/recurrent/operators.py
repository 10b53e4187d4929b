"""Part a recurrent operator in the product of all its inputs, and the recurrence that is left.

    Y = LSTM(x, w, r, b)   ->   p = MatMul(x, w^T)    y = lstm(p, r, b)    Y = Reshape(y)

The product needs no state, so that it is one for all steps. The recurrence is a function whose body is
the same operator with the identity for w. It gives one tensor: the states of all steps, and behind them the
last h and the last c, where they are read; where no sequence ends early they are slices of the states.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.functions import make_call
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    is_graph_output,
    is_op,
    same_dims,
    type_number,
    why_not_replace,
)
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES
from wpk.graph_passes.recurrent.edits import cut, fresh, reshaped, turned
from wpk.graph_passes.recurrent.node import C0, GATES, H0, OPERATORS, RecurrentNode, W, X

ACTIVATIONS = ("Sigmoid", "Tanh", "Relu", "Softsign", "Softplus")
"""Those without parameters."""

_SWAP = (1, 0, 2)


class RecurrentOperators(Rule[RecurrentNode]):
    """Write the product and the function; runs when types are set, before operators are fused."""

    name = "recurrent-operators"
    ops = OPERATORS

    def match(self, graph: gs.Graph, node: gs.Node) -> RecurrentNode | Refusal:
        """Match one direction of what kernels compute."""
        del graph
        read = RecurrentNode.read(node)
        if isinstance(read, str):
            return Refusal(node.name, read)
        return refusal(node, _why_not(read)) or read

    def rewrite(self, editor: GraphEditor, match: RecurrentNode) -> None:
        """Connect what read the node's outputs with the function's one tensor."""
        _Parts(editor, match).write()


def _why_not(match: RecurrentNode) -> str | None:
    strange = [each for each in match.activations if each not in ACTIVATIONS]
    if len(match.directions) != 1:
        return "it goes in both directions, which a pass was to part"
    if strange:
        return f"the activation {strange[0]}; carried are {', '.join(ACTIVATIONS)}"
    if match.node.attrs.get("input_forget", 0):
        return "its input and forget gates are coupled"
    if any(name in match.node.attrs for name in ("activation_alpha", "activation_beta")):
        return "its activations have parameters"
    if match.batch is None:
        return f"the batch of '{match.node.inputs[X].name}' is not known"
    return None


class _Parts:
    """What one node becomes."""

    def __init__(self, editor: GraphEditor, match: RecurrentNode) -> None:
        self.editor, self.match, self.node = editor, match, match.node
        self.name, self.x, self.batch_first = self.node.name, self.node.inputs[X], match.batch_first
        self.outputs = [self.node.outputs[0], *(self._read(place) for place in (1, 2))]
        self.slots = max(
            place for place, output in enumerate(self.outputs) if output is not None or not place
        )

    def _read(self, place: int) -> gs.Tensor | None:
        """An output that somebody reads."""
        output = self.match.output(place)
        if output is None or not (output.outputs or is_graph_output(self.editor.graph, output)):
            return None
        return output

    def write(self) -> None:
        """Write the product, the function, and the views of what it gives."""
        projected = self._projected()
        states = self._fresh(self._rows(self.match.steps + self.slots), "states")
        body = self._body(projected, states)
        make_call(self.editor.graph, body, states, stem=self.node.op.lower())
        self._reconnect(states)

    def _rows(self, count: int) -> Dims:
        """The shape of so many states of all sequences."""
        batch, hidden = self.match.batch, self.match.hidden
        return [batch, count, hidden] if self.batch_first else [count, batch, hidden]

    def _projected(self) -> gs.Tensor:
        """The product of all inputs and the weights."""
        w, gates = self.node.inputs[W], GATES[self.node.op] * self.match.hidden
        if isinstance(w, gs.Constant):
            name = self.editor.new_name(f"{w.name}_columns")
            columns: gs.Tensor = moved_constant(name, w, lambda array: array[0].T)
        else:
            rows = reshaped(self.editor, w, [gates, w.shape[-1]], f"{w.name}_rows")
            columns = turned(self.editor, rows, (1, 0), f"{w.name}_columns")
        shape: Dims = [*self.x.shape[:2], gates]
        return self.editor.add(
            "MatMul", [self.x, columns], like=self.x, shape=shape, name=f"{self.name}_projection"
        )

    def _reconnect(self, states: gs.Tensor) -> None:
        """Let readers of the node's outputs read parts of the states."""
        axis, steps = int(self.batch_first), self.match.steps
        first = states
        if self.slots:
            first = cut(self.editor, states, axis, 0, steps, f"{states.name}_steps")
        y = self.outputs[0]
        if y is not None and not y.is_empty():
            self._reconnect_steps(y, first)
        for place, output in enumerate(self.outputs):
            if place and output is not None:
                at, name = steps + place - 1, f"{output.name}_state"
                self.editor.replace(output, cut(self.editor, states, axis, at, 1, name))

    def _reconnect_steps(self, y: gs.Tensor, steps: gs.Tensor) -> None:
        """Let readers that take the dimension of the directions away read what has none."""
        editor = self.editor
        for reader in [node for node in y.outputs if is_op(node, *RESHAPES)]:
            output = reader.outputs[0]
            if same_dims(dims(output), dims(steps)) and not why_not_replace(
                editor.graph, output, steps
            ):
                editor.replace(output, steps)
                steps = steps if steps.inputs else output  # whose name was kept
        shape = list(dims(steps) or [])
        shape.insert(1 + int(self.batch_first), 1)
        if y.outputs or is_graph_output(editor.graph, y):
            editor.replace(y, reshaped(editor, steps, shape, f"{y.name}_directions"))

    def _body(self, projected: gs.Tensor, states: gs.Tensor) -> list[gs.Node]:
        """The nodes of the function: the operator with an identity, in time-major form."""
        nodes: list[gs.Node] = []
        inputs = list(self.node.inputs)
        inputs[X], inputs[W] = projected, self._identity(nodes)
        for place in (X, H0, C0) if self.batch_first else ():
            if self.match.input(place) is not None:
                inputs[place] = self._turned(nodes, inputs[place])
        batch, hidden = self.match.batch, self.match.hidden
        made = [self._fresh([self.match.steps, 1, batch, hidden], "y")]
        made += [self._fresh([1, batch, hidden], word) for word in ("h", "c")[: self.slots]]
        self.node.attrs = {**self.node.attrs, "layout": 0}
        self.node.inputs, self.node.outputs = inputs, made
        nodes.append(self.node)
        last = self._fresh([self.match.steps, batch, hidden], "rows")
        axes = self.editor.constant(f"{self.name}_axes", np.array([1], np.int64))
        self._append(nodes, "Squeeze", [made[0], axes], last)
        if self.slots:
            shape: Dims = [self.match.steps + self.slots, batch, hidden]
            whole = self._fresh(shape, "all")
            self._append(nodes, "Concat", [last, *made[1:]], whole, axis=0)
            last = whole
        if self.batch_first:
            self._append(nodes, "Transpose", [last], states, perm=list(_SWAP))
        else:
            nodes[-1].outputs = [states]
        return nodes

    def _identity(self, nodes: list[gs.Node]) -> gs.Tensor:
        """What makes the operator's own product one with the identity, without weights for it."""
        size = GATES[self.node.op] * self.match.hidden
        zeros, eye = self._fresh([size, size], "zeros"), self._fresh([size, size], "eye")
        zeros.dtype = np.dtype(np.float32)
        sizes = self.editor.constant(f"{self.name}_sizes", np.array([size, size], np.int64))
        self._append(nodes, "ConstantOfShape", [sizes], zeros)
        self._append(nodes, "EyeLike", [zeros], eye, dtype=type_number(self.x))
        identity = self._fresh([1, size, size], "identity")
        axes = self.editor.constant(f"{self.name}_identity_axes", np.array([0], np.int64))
        self._append(nodes, "Unsqueeze", [eye, axes], identity)
        return identity

    def _turned(self, nodes: list[gs.Node], tensor: gs.Tensor) -> gs.Tensor:
        """A tensor with steps in front."""
        shape = list(tensor.shape)
        new = self._fresh([shape[1], shape[0], shape[2]], f"{tensor.name}_turned")
        self._append(nodes, "Transpose", [tensor], new, perm=list(_SWAP))
        return new

    def _append(
        self,
        nodes: list[gs.Node],
        op: str,
        inputs: list[gs.Tensor],
        output: gs.Tensor,
        **attrs: object,
    ) -> None:
        name = self.editor.new_name(f"{self.name}_{op}")
        node = gs.Node(op, name, attrs, inputs, [output])
        self.editor.graph.nodes.append(node)
        nodes.append(node)

    def _fresh(self, shape: Dims, word: str) -> gs.Variable:
        return fresh(self.editor, self.x, shape, f"{self.name}_{word}")
