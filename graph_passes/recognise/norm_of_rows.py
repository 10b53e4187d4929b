"""Write one operator of a normalisation, along the last axes or along the channels of an image.

    x / sqrt(mean(x^2, 1) + eps) * gamma    ->  Transpose(RMSNormalization(Transpose(x), gamma))    x of n x c x ...

Operators normalise along the last axes. Channels lie there in memory (`channels-last`), so that the transposes around
it move nothing.
"""

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import is_graph_output, rank, split_constant, static_shape


def row_shape(x: gs.Tensor, axes: Sequence[int]) -> list[int] | None:
    """Return the sizes of neighbouring ``axes`` of ``x``; None where one is free."""
    return static_shape(gs.Variable("", None, (x.shape or [])[axes[0] : axes[-1] + 1]))


def following(
    editor: GraphEditor, node: gs.Node, op: str, axes: Sequence[int]
) -> gs.Constant | None:
    """Return the constant that the only reader of a node applies, when it spans the normalised axes.

    Args:
        editor: Of the graph.
        node: Its result is normalised.
        op: Of the reader.
        axes: That were normalised: neighbours.

    Returns:
        The constant, of the normalised axes alone.
    """
    tensor = node.outputs[0]
    readers = tensor.outputs
    if is_graph_output(editor.graph, tensor) or len(readers) != 1 or readers[0].op != op:
        return None
    sides = split_constant(readers[0])
    if sides is None or sides[1].dtype != tensor.dtype:
        return None
    constant, shape = sides[1], row_shape(tensor, axes) or []
    behind = (rank(tensor) or 0) - 1 - axes[-1]
    held = list(constant.shape)
    while len(held) > len(shape) + behind and held[0] == 1 and behind:
        held = held[1:]
    if held != [*shape, *[1] * behind]:
        return None
    if not behind:
        return constant
    return moved_constant(
        editor.new_name(f"{constant.name}_row"), constant, lambda array: array.reshape(shape)
    )


def write_norm(
    editor: GraphEditor,
    op: str,
    x: gs.Tensor,
    axes: Sequence[int],
    epsilon: float,
    scale: gs.Constant | None,
    bias: gs.Constant | None,
    last: gs.Node,
) -> None:
    """Let one node stand for a normalisation.

    Args:
        editor: Of the graph.
        op: LayerNormalization or RMSNormalization.
        x: What is normalised.
        axes: Along which: the last, or others that are turned there.
        epsilon: Added to the variance.
        scale: Of the normalised axes; ones are made where there is none.
        bias: Likewise; None where nothing is added.
        last: The node whose result is replaced.
    """
    parts, output = NodeParts(editor, last), last.outputs[0]
    others = [axis for axis in range(rank(x) or 0) if axis not in axes]
    perm = [*others, *axes]
    is_last = perm == sorted(perm)
    rows = x if is_last else parts.transposed(x, perm)
    if scale is None:
        ones = np.ones(row_shape(x, axes) or [], x.dtype)
        scale = editor.constant(f"{output.name}_ones", ones)
    constants = [scale] if bias is None else [scale, bias]
    made = parts.add(op, rows, *constants, axis=len(others), epsilon=epsilon, stash_type=1)
    editor.replace(output, made if is_last else parts.transposed(made, np.argsort(perm).tolist()))
