"""Where elements that nodes only move lie in the tensor that they come from."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.query import dims, given, integers, is_op, producer, static_shape, values
from wpk.graph_passes.movement.chains.reshape_chains import permutation

Places = NDArray[np.int64]
"""Of each element of a tensor: where it lies in the source, in row-major order."""

_MOVING = ("Gather", "Slice", "Split", *VIEWS)
"""Nodes that give elements of their first input only."""


def whole_rows(places: Places, width: int) -> NDArray[np.int64] | None:
    """Of which rows a tensor consists; None where it takes one apart."""
    if places.size % width:
        return None
    runs = places.reshape(-1, width)
    first = runs[:, :1]
    whole = not (first % width).any() and bool((runs == first + np.arange(width)).all())
    return first[:, 0] // width if whole else None


def moves(node: gs.Node | None) -> bool:
    """Whether a node gives elements of its first input, which its other inputs, constants, choose."""
    return node is not None and is_op(node, *_MOVING) and all(map(is_constant, node.inputs[1:]))


def moved_from(tensor: gs.Tensor, source: gs.Tensor) -> Places | None:
    """Return where the elements of a tensor lie in the one that nodes for which `moves` holds made it of."""
    shape = static_shape(source)
    chain: list[tuple[gs.Node, gs.Tensor]] = []
    while tensor is not source:
        node = producer(tensor)
        if node is None or not moves(node):
            return None
        chain.insert(0, (node, tensor))
        tensor = node.inputs[0]
    if shape is None:
        return None
    places: Places | None = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    for node, output in chain:
        if places is not None:
            places = (
                _part(node, output, places)
                if is_op(node, "Split")
                else MOVES[node.op](node, [places])
            )
    return places


def _part(node: gs.Node, output: gs.Tensor, data: Places) -> Places | None:
    """The part that an output of a Split has."""
    axis = int(node.attrs.get("axis", 0))
    shapes = [static_shape(each) for each in node.outputs]
    if any(shape is None for shape in shapes):
        return None
    sizes = [shape[axis] for shape in shapes if shape is not None]
    number = next(i for i, each in enumerate(node.outputs) if each is output)
    return np.split(data, np.cumsum(sizes)[:-1], axis)[number]


def _slice(node: gs.Node, data: list[Places]) -> Places | None:
    starts, ends = integers(node.inputs[1]), integers(node.inputs[2])
    if starts is None or ends is None:
        return None
    axes = integers(given(node, 3)) if given(node, 3) is not None else list(range(len(starts)))
    steps = integers(given(node, 4)) if given(node, 4) is not None else [1] * len(starts)
    if axes is None or steps is None or any(step < 1 for step in steps):
        return None
    places = data[0]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        cut = [slice(None)] * places.ndim
        cut[axis] = slice(start, end, step)
        places = places[tuple(cut)]
    return places


def _concat(node: gs.Node, data: list[Places]) -> Places | None:
    return np.concatenate(data, axis=int(node.attrs["axis"]))


def _transpose(node: gs.Node, data: list[Places]) -> Places | None:
    perm = permutation(node)
    return None if perm is None else data[0].transpose(perm)


def _reshape(node: gs.Node, data: list[Places]) -> Places | None:
    """By the shape of what the node gives, of which one size may follow from the others."""
    sizes = dims(node.outputs[0])
    if sizes is None or sum(not isinstance(size, int) for size in sizes) > 1:
        return None
    target = [size if isinstance(size, int) else -1 for size in sizes]
    rest = int(np.prod([size for size in target if size != -1]))
    if not rest:
        return None
    fits = data[0].size % rest == 0 if -1 in target else data[0].size == rest
    return data[0].reshape(target) if fits else None


def _gather(node: gs.Node, data: list[Places]) -> Places | None:
    index = values(node.inputs[1])
    axis = int(node.attrs.get("axis", 0))
    size = data[0].shape[axis]
    if index is None or index.min(initial=0) < -size or index.max(initial=-size) >= size:
        return None
    return np.take(data[0], index.astype(np.int64), axis)


MOVES: Mapping[str, Callable[[gs.Node, list[Places]], Places | None]] = {
    "Slice": _slice,
    "Concat": _concat,
    "Transpose": _transpose,
    "Gather": _gather,
    **{op: _reshape for op in VIEWS if op != "Transpose"},
}
"""What nodes that only move elements give of where the elements of their inputs lie."""
