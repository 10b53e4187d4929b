"""Channels last: where axes go, and the standard operators that can follow them there.

    perm of rank 4: NCHW -> NHWC is (0, 2, 3, 1), back (0, 3, 1, 2); rank 3 alike without H.

A *follower* is a data movement that works on channels-last tensors once its axes are renamed.
"""

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.query import given, integers, is_op, rank, values

# Images and sequences with channels; wpk has no kernels for volumes (rank 5).
RANKS = (3, 4)

FOLLOWERS = ("Concat", "Pad", "Resize", "Slice", "Split")


def to_last(dimensions: int) -> list[int]:
    """Return the permutation from channels first to channels last."""
    return [0, *range(2, dimensions), 1]


def to_first(dimensions: int) -> list[int]:
    """Return the permutation from channels last to channels first."""
    return [0, dimensions - 1, *range(1, dimensions - 1)]


def moved_axis(axis: int, dimensions: int) -> int:
    """Say where an axis of a channels-first tensor is in the channels-last one."""
    return to_last(dimensions).index(axis % dimensions)


def why_not_follow(node: gs.Node) -> str | None:
    """Say why a data movement cannot work on channels-last tensors."""
    if not is_op(node, *FOLLOWERS):
        return f"{node.op} has no channels-last form"
    if node.op == "Concat" or node.op == "Split":
        return None
    for index in _constant_inputs(node):
        tensor = given(node, index)
        if tensor is not None and values(tensor) is None:
            return f"'{tensor.name}' of {node.op} is not constant"
    roi = given(node, 1) if node.op == "Resize" else None
    box = values(roi)
    if roi is not None and (box is None or box.size > 0):
        return f"Resize crops to '{roi.name}'"
    return None


def _constant_inputs(node: gs.Node) -> Sequence[int]:
    return {"Pad": (1, 3), "Resize": (2, 3), "Slice": (1, 2, 3, 4)}[node.op]


def rename_axes(editor: GraphEditor, node: gs.Node) -> None:
    """Make a follower mean the same on channels-last tensors; shapes are the caller's business."""
    dimensions = rank(node.inputs[0]) or 0
    if node.op in ("Concat", "Split"):
        node.attrs["axis"] = moved_axis(int(node.attrs.get("axis", 0)), dimensions)
    elif node.op == "Slice":
        _rename_axes_input(editor, node, 3, dimensions)
    elif node.op == "Pad":
        _rename_pad(editor, node, dimensions)
    elif "axes" in node.attrs:
        node.attrs["axes"] = [moved_axis(axis, dimensions) for axis in node.attrs["axes"]]
    else:
        for index in (2, 3):
            _permute_input(editor, node, index, dimensions)


def _rename_axes_input(editor: GraphEditor, node: gs.Node, index: int, dimensions: int) -> None:
    axes = integers(given(node, index))
    if axes is None:
        axes = list(range(len(integers(node.inputs[1]) or [])))
    kind = node.inputs[1].dtype if is_op(node, "Slice") else np.int64  # that of starts and ends
    moved = np.array([moved_axis(axis, dimensions) for axis in axes], kind)
    _set_input(node, index, editor.constant(f"{node.name}_axes", moved))


def _rename_pad(editor: GraphEditor, node: gs.Node, dimensions: int) -> None:
    if given(node, 3) is not None:
        _rename_axes_input(editor, node, 3, dimensions)
        return
    pads = np.array(integers(node.inputs[1]), np.int64).reshape(2, dimensions)
    moved = pads[:, to_last(dimensions)].reshape(-1)
    _set_input(node, 1, editor.constant(f"{node.name}_pads", moved))


def _permute_input(editor: GraphEditor, node: gs.Node, index: int, dimensions: int) -> None:
    """Permute an input that has one number for each dimension (scales or sizes of a Resize)."""
    array = values(given(node, index))
    if array is not None and array.size == dimensions:
        moved = array.reshape(-1)[to_last(dimensions)]
        _set_input(node, index, editor.constant(f"{node.name}_per_axis", moved))


def _set_input(node: gs.Node, index: int, tensor: gs.Tensor) -> None:
    inputs = list(node.inputs)
    while len(inputs) <= index:
        inputs.append(gs.Variable.empty())
    inputs[index] = tensor
    node.inputs = inputs
