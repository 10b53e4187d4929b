"""Joins, cuts, picks and reductions behind a Transpose that takes the first dimension away; and stacks."""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.query import Dims, dims, given, integers, made_by, values
from wpk.graph_passes.core.reductions import reduced_axes
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES
from wpk.graph_passes.movement.transposes.turns import Swap, Turn, turn_of

_AXES = 3
"""The place of a Slice's axes."""


def behind_concat(node: gs.Node, turn: Turn) -> Swap | None:
    """Match a Concat of transposes that are alike."""
    turns = [turn_of(tensor) for tensor in node.inputs]
    sources = [each.source for each in turns if each is not None and each.perm == turn.perm]
    axis = turn.perm[int(node.attrs["axis"]) % len(turn.perm)]
    shape = _unturned(node.outputs[0], turn)
    if axis == 0 or shape is None or len(sources) != len(node.inputs):
        return None
    output, attrs = node.outputs[0], {"axis": axis}
    return Swap(
        output,
        lambda editor: editor.add("Concat", sources, like=output, shape=shape, attrs=attrs),
        turn.perm,
    )


def stacked_behind(node: gs.Node) -> Swap | None:
    """Match a Concat of tensors that got a dimension in front of the free one: it may stand behind it."""
    views = [made_by(tensor, *RESHAPES) for tensor in node.inputs]
    sources = [view.inputs[0] for view in views if view is not None]
    output, shape = node.outputs[0], dims(node.outputs[0])
    apart = int(node.attrs["axis"]) != 0 or shape is None or len(shape) < 2
    if apart or shape is None or not isinstance(shape[1], str) or len(sources) != len(views):
        return None
    count, *rest = shape
    parts = [dims(tensor) for tensor in node.inputs]
    if any(part != [1, *rest] for part in parts) or any(dims(each) != rest for each in sources):
        return None
    batch, *inner = rest
    row: Dims = [batch, 1, *inner]

    def make(editor: GraphEditor) -> gs.Tensor:
        axis = editor.constant(f"{node.name}_axis", np.array([1], np.int64))
        rows = [editor.add("Unsqueeze", [x, axis], like=output, shape=row) for x in sources]
        whole: Dims = [batch, count, *inner]
        return editor.add("Concat", rows, like=output, shape=whole, attrs={"axis": 1})

    return Swap(output, make, [1, 0, *range(2, len(shape))])


def behind_slice(node: gs.Node, turn: Turn) -> Swap | None:
    """Match a Slice along known dimensions."""
    axes, shape = integers(given(node, _AXES)), _unturned(node.outputs[0], turn)
    if axes is None or shape is None or any(turn.perm[axis] == 0 for axis in axes):
        return None
    new = np.array([turn.perm[axis] for axis in axes], np.int64)
    others = list(node.inputs)

    def make(editor: GraphEditor) -> gs.Tensor:
        others[0], others[_AXES] = turn.source, editor.constant(f"{node.name}_axes", new)
        return editor.add("Slice", others, like=node.outputs[0], shape=shape)

    return Swap(node.outputs[0], make, turn.perm)


def behind_picks(node: gs.Node, turn: Turn) -> Swap | None:
    """Match a GatherND of constant places along neighbouring dimensions: there they are one, and it is a Gather."""
    index, source, output = values(node.inputs[1]), dims(turn.source) or [], node.outputs[0]
    if index is None or index.size == 0 or int(node.attrs.get("batch_dims", 0)):
        return None
    count, first = index.shape[-1], turn.perm[0]
    sizes = [size for size in source[first : first + count] if isinstance(size, int)]
    known = all(isinstance(size, int) for size in source[1:]) and len(sizes) == count
    if not known or turn.perm[:count] != list(range(first, first + count)):
        return None
    at = index.astype(np.int64)
    inside = np.moveaxis(np.where(at < 0, at + np.array(sizes), at), -1, 0)
    places = np.ravel_multi_index(tuple(inside), sizes)
    joined: Dims = [*source[:first], int(np.prod(sizes)), *source[first + count :]]
    picked: Dims = [*source[:first], *places.shape, *source[first + count :]]
    grown = places.ndim - count
    rest = [axis + grown * (axis > first) for axis in turn.perm[count:]]

    def make(editor: GraphEditor) -> gs.Tensor:
        target = np.array([0, *(int(size or 0) for size in joined[1:])], np.int64)
        sizes = editor.constant(f"{node.name}_sizes", target)
        flat = editor.add("Reshape", [turn.source, sizes], like=output, shape=joined)
        where = editor.constant(f"{node.name}_places", places)
        attrs = {"axis": first}
        return editor.add("Gather", [flat, where], like=output, shape=picked, attrs=attrs)

    return Swap(output, make, [*range(first, first + places.ndim), *rest])


def behind_reduction(node: gs.Node, turn: Turn) -> Swap | None:
    """Match a reduction that keeps the first dimension of what is transposed."""
    reduced, source = reduced_axes(node), dims(turn.source)
    if not reduced or source is None or any(turn.perm[axis] == 0 for axis in reduced):
        return None
    axes = sorted(turn.perm[axis] for axis in reduced)
    keeps = bool(node.attrs.get("keepdims", 1))
    left = [place for place in range(len(turn.perm)) if keeps or place not in axes]
    perm = [left.index(place) for place in turn.perm if place in left]
    shape: Dims = [1 if place in axes else source[place] for place in left]
    attrs = {name: value for name, value in node.attrs.items() if name != "axes"}

    def make(editor: GraphEditor) -> gs.Tensor:
        inputs, own = [turn.source], dict(attrs)
        if given(node, 1) is None:
            own["axes"] = axes
        else:
            inputs.append(editor.constant(f"{node.name}_axes", np.array(axes, np.int64)))
        return editor.add(node.op, inputs, like=node.outputs[0], shape=shape, attrs=own)

    return Swap(node.outputs[0], make, perm)


def _unturned(output: gs.Tensor, turn: Turn) -> Dims | None:
    """The shape of an output in the order of what is transposed."""
    shape = dims(output)
    return None if shape is None else [shape[turn.perm.index(i)] for i in range(len(shape))]
