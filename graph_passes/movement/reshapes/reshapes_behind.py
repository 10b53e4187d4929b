"""Move Reshapes that leave rows alone behind the element-wise nodes that read them.

    f(Reshape(x), z, c)  ->  Reshape(f(x, Reshape(z), c))     x of a product or convolution, later than z's

Exact: f computes element by element, and constants meet the same places of a row. The kernel that computes ``x`` can
then take f as its epilogue: residuals are added to images, and products give sequences of their pixels.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.kinds import is_anchor, is_elementwise
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    made_by,
    producer,
    same_dims,
    why_not_replace,
    why_shared,
)
from wpk.graph_passes.core.reshape_target import reshape_target
from wpk.graph_passes.movement.chains.latest_anchor import LatestAnchors
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES

_LEAST_RANK = 3
"""Of tensors: matrices are what products of one row give anyway."""


@dataclass(frozen=True)
class _Behind:
    """An element-wise node, and the Reshape that moves behind it."""

    node: gs.Node
    reshape: gs.Node


class ReshapesBehind(Rule[_Behind]):
    """Let element-wise nodes compute in the shape of what makes their operands."""

    name = "reshapes-behind"

    def match(self, graph: gs.Graph, node: gs.Node) -> _Behind | Refusal | None:
        """Match where the operand that is ready last is reshaped."""
        if not is_elementwise(node) or len(node.outputs) != 1:
            return None
        shape = dims(node.outputs[0])
        whole = [t for t in node.inputs if not isinstance(t, gs.Constant) and not t.is_empty()]
        if shape is None or not all(same_dims(dims(t), shape) for t in whole):
            return None
        if not any(_rows_before(t) for t in whole) or not all(
            _spreads_along_rows(t, shape) for t in node.inputs if isinstance(t, gs.Constant)
        ):
            return None
        latest = _latest(graph, whole)
        reshape = None if latest is None else _rows_before(latest)
        if latest is None or reshape is None:
            return None
        source = dims(reshape.inputs[0])
        if any(reshape_target(dims(t), source) is None or _has_zero(t) for t in whole):
            return None
        reason = why_shared(graph, latest) if len(whole) > 1 else None
        reason = reason or why_not_replace(graph, node.outputs[0], reshape.outputs[0])
        return refusal(node, reason) or _Behind(node, reshape)

    def rewrite(self, editor: GraphEditor, match: _Behind) -> None:
        """Write the node, and the Reshape behind it."""
        node, source = match.node, match.reshape.inputs[0]
        output, inside = node.outputs[0], dims(source)
        inputs = [_inside(editor, tensor, inside) for tensor in node.inputs]
        new = editor.add(node.op, inputs, like=output, shape=inside, attrs=node.attrs)
        sizes = _sizes(editor, output, inside, dims(output))
        editor.replace(output, editor.add("Reshape", [new, sizes], like=output))


def _latest(graph: gs.Graph, tensors: list[gs.Tensor]) -> gs.Tensor | None:
    """The one that a product makes which is ready after all others; None where no single one is."""
    anchors = LatestAnchors(graph)
    places = [anchors.before(tensor) for tensor in tensors]
    last = max(places)
    return tensors[places.index(last)] if last >= 0 and places.count(last) == 1 else None


def _rows_before(tensor: gs.Tensor) -> gs.Node | None:
    """The Reshape that makes a tensor of what an operator gives, if rows stay what they are."""
    reshape = made_by(tensor, *RESHAPES)
    if reshape is None:
        return None
    source = reshape.inputs[0]
    before, after = dims(source), dims(tensor)
    turned = made_by(source, "Transpose")
    maker = producer(source if turned is None else turned.inputs[0])
    if before is None or after is None or not (is_anchor(maker) or is_elementwise(maker)):
        return None
    is_wide = min(len(before), len(after)) >= _LEAST_RANK
    return reshape if is_wide and before[-1] is not None and before[-1] == after[-1] else None


def _spreads_along_rows(constant: gs.Constant, shape: Dims) -> bool:
    """Whether a constant has one number, or one for each place of a row."""
    width = constant.shape[-1] if len(constant.shape) else 1
    return (
        len(constant.shape) <= len(shape)
        and int(np.prod(constant.shape)) == width
        and width in (1, shape[-1])
    )


def _has_zero(tensor: gs.Tensor) -> bool:
    return 0 in (dims(tensor) or [])


def _inside(editor: GraphEditor, tensor: gs.Tensor, shape: Dims | None) -> gs.Tensor:
    """An operand in the shape before the Reshape."""
    if tensor.is_empty():
        return tensor
    if isinstance(tensor, gs.Constant):
        if len(tensor.shape) <= 1:
            return tensor
        return moved_constant(
            editor.new_name(f"{tensor.name}_row"), tensor, lambda array: array.reshape(-1)
        )
    before = made_by(tensor, *RESHAPES)
    if before is not None and same_dims(dims(before.inputs[0]), shape):
        return before.inputs[0]
    sizes = _sizes(editor, tensor, dims(tensor), shape)
    return editor.add("Reshape", [tensor, sizes], like=tensor, shape=shape)


def _sizes(
    editor: GraphEditor, tensor: gs.Tensor, source: Dims | None, shape: Dims | None
) -> gs.Tensor:
    target = reshape_target(source, shape)
    return editor.constant(f"{tensor.name}_sizes", np.array(target, np.int64))
