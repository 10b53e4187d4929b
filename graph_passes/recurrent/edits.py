"""Nodes that passes of recurrent operators write: cuts, turns, reshapes."""

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.query import Dims, dims, element_type
from wpk.graph_passes.core.reshape_target import target_of


def turned(editor: GraphEditor, tensor: gs.Tensor, perm: Sequence[int], name: str) -> gs.Tensor:
    """Return the tensor with its dimensions in another order."""
    shape = dims(tensor)
    new: Dims | None = None if shape is None else [shape[axis] for axis in perm]
    attrs = {"perm": list(perm)}
    return editor.add("Transpose", [tensor], like=tensor, shape=new, name=name, attrs=attrs)


def cut(
    editor: GraphEditor, tensor: gs.Tensor, axis: int, start: int, count: int, name: str
) -> gs.Tensor:
    """Return a part of a tensor along an axis; of a constant, a constant."""
    if isinstance(tensor, gs.Constant):
        part = tuple([slice(None)] * axis + [slice(start, start + count)])
        new = moved_constant(editor.new_name(name), tensor, lambda array: array[part])
        return new
    shape = list(dims(tensor) or [])
    shape[axis] = count
    bounds = [
        editor.constant(f"{name}_{word}", np.array([value], np.int64))
        for word, value in (("start", start), ("end", start + count), ("axis", axis))
    ]
    return editor.add("Slice", [tensor, *bounds], like=tensor, shape=shape, name=name)


def reshaped(editor: GraphEditor, tensor: gs.Tensor, shape: Dims, name: str) -> gs.Tensor:
    """Return the tensor in another shape, in which at most one dimension is no number."""
    target = target_of(dims(tensor) or [], shape)
    assert target is not None  # one symbol, which the source has, too
    sizes = editor.constant(f"{name}_shape", np.array(target, np.int64))
    return editor.add("Reshape", [tensor, sizes], like=tensor, shape=shape, name=name)


def joined(editor: GraphEditor, tensors: Sequence[gs.Tensor], axis: int, name: str) -> gs.Tensor:
    """Return the tensors one after the other along an axis."""
    shape = list(dims(tensors[0]) or [])
    shape[axis] = sum(int(each.shape[axis]) for each in tensors)
    like, attrs = tensors[0], {"axis": axis}
    return editor.add("Concat", tensors, like=like, shape=shape, name=name, attrs=attrs)


def fresh(editor: GraphEditor, like: gs.Tensor, shape: Dims, name: str) -> gs.Variable:
    """Return a new tensor that no node makes yet."""
    return gs.Variable(editor.new_name(name), element_type(like), list(shape))
