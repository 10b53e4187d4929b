"""Leave out what a recurrent operator's first and last states can do without.

LSTM(x, w, r, b, , zeros, zeros)      ->  LSTM(x, w, r, b)
LSTM(x, w, r, b, all steps)           ->  LSTM(x, w, r, b)         lengths that cut nothing
Y_h of LSTM(x, w, r, b)               ->  a slice of Y             where no sequence ends early
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import (
    Dims,
    integers,
    is_graph_output,
    is_op,
    producer,
    values,
)
from wpk.graph_passes.recurrent.edits import cut, fresh, reshaped
from wpk.graph_passes.recurrent.node import C0, H0, LENGTHS, OPERATORS, RecurrentNode

_KEEP_ZEROS = (
    *("Expand", "Slice", "Split", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Identity"),
    *("Cast", "Gather"),
)
"""Operators that give zeros where their first input holds nothing else."""


class RecurrentStates(Rule[RecurrentNode]):
    """Drop states of zeros and full lengths, and take the last state from all states."""

    name = "recurrent-states"
    ops = OPERATORS

    def match(self, graph: gs.Graph, node: gs.Node) -> RecurrentNode | None:
        """Match what one of the forms applies to."""
        read = RecurrentNode.read(node)
        if isinstance(read, str) or len(read.directions) != 1:
            return None
        return read if _needless(read) or _takes_slice(graph, read) else None

    def rewrite(self, editor: GraphEditor, match: RecurrentNode) -> None:
        """Take inputs away; write the slice."""
        needless = _needless(match)
        node = match.node
        node.inputs = [
            gs.Variable.empty() if place in needless else tensor
            for place, tensor in enumerate(node.inputs)
        ]
        if _takes_slice(editor.graph, match):
            _write_slice(editor, match)


def _needless(match: RecurrentNode) -> list[int]:
    found = [place for place in (H0, C0) if _is_zero(match.input(place))]
    lengths = integers(match.input(LENGTHS))
    if lengths is not None and min(lengths, default=0) >= match.steps:
        found.append(LENGTHS)
    return found


def _is_zero(tensor: gs.Tensor | None) -> bool:
    """Whether a tensor is known to hold nothing but zeros, however many."""
    if tensor is None:
        return False
    if isinstance(tensor, gs.Constant):
        array = values(tensor)
        return array is not None and not np.any(array)
    node = producer(tensor)
    if node is None:
        return False
    if is_op(node, "ConstantOfShape"):
        value = node.attrs.get("value")
        return value is None or not np.any(getattr(value, "values", value))
    if is_op(node, "Concat"):
        return all(map(_is_zero, node.inputs))
    return is_op(node, *_KEEP_ZEROS) and _is_zero(node.inputs[0])


def _takes_slice(graph: gs.Graph, match: RecurrentNode) -> bool:
    last = match.output(1)
    lengths = match.input(LENGTHS)
    if last is None or (lengths is not None and LENGTHS not in _needless(match)):
        return False
    return bool(last.outputs) or is_graph_output(graph, last)


def _write_slice(editor: GraphEditor, match: RecurrentNode) -> None:
    node, last = match.node, match.node.outputs[1]
    batch_first = match.batch_first
    if node.outputs[0].is_empty():
        shape: Dims = [match.steps, 1, match.batch, match.hidden]
        if batch_first:
            shape = [match.batch, match.steps, 1, match.hidden]
        node.outputs = [fresh(editor, last, shape, f"{last.name}_all"), *node.outputs[1:]]
    at = 0 if match.directions == ("reverse",) else match.steps - 1
    part = cut(editor, node.outputs[0], int(batch_first), at, 1, f"{last.name}_step")
    form: Dims = [match.batch, 1, match.hidden] if batch_first else [1, match.batch, match.hidden]
    state = reshaped(editor, part, form, f"{last.name}_state")
    editor.replace(last, state)
