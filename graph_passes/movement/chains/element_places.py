"""Where elements that nodes only move lie in the tensor that they come from."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import gcd

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
    found = moved_runs(tensor, source)
    return None if found is None else elements_of(*found)


def elements_of(places: Places, run: int) -> Places:
    """Return where elements lie whose runs do so (`moved_runs`)."""
    if run == 1:
        return places
    elements = places[..., None] * run + np.arange(run)
    return elements.reshape(*places.shape[:-1], places.shape[-1] * run)


def moved_runs(tensor: gs.Tensor, source: gs.Tensor) -> tuple[Places, int] | None:
    """Return where runs of a tensor's last dimension lie in the source, counted in runs, and how long they are.

    A large batch has millions of elements, and nodes mostly move whole rows of channels: runs are as long as none of
    the nodes takes one apart, one element at the least.
    """
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
    run = longest_run([source, *(output for _, output in chain)])
    if run > 1 and not all(keeps_runs(node) for node, _ in chain):
        run = 1
    places: Places | None = first_places(shape, run)
    for node, output in chain:
        if places is not None:
            is_part = is_op(node, "Split")
            places = _part(node, output, places) if is_part else moved(node, [places], run)
    return None if places is None else (places, run)


def longest_run(tensors: Iterable[gs.Tensor]) -> int:
    """Return how many elements of the last dimension may lie together in all of some tensors; one where none need."""
    sizes = [(dims(tensor) or [None])[-1] for tensor in tensors]
    lasting = [size for size in sizes if isinstance(size, int) and size > 0]
    return gcd(*lasting) if len(lasting) == len(sizes) else 1


def keeps_runs(node: gs.Node) -> bool:
    """Whether a movement leaves runs of the last dimension together, where the sizes of both sides are whole runs."""
    rank = len(dims(node.inputs[0]) or [])
    if not rank:
        return False
    if is_op(node, "Transpose"):
        perm = permutation(node)
        return perm is not None and perm[-1] == rank - 1
    if is_op(node, "Slice"):
        axes = integers(given(node, 3)) if given(node, 3) is not None else [rank - 1]
        return axes is not None and all(axis % rank != rank - 1 for axis in axes)
    if is_op(node, "Concat", "Split", "Gather"):
        return bool(int(node.attrs.get("axis", 0)) % rank != rank - 1)
    return is_op(node, *VIEWS)


def first_places(shape: Sequence[int], run: int = 1) -> Places:
    """Return where the runs of a tensor of some shape lie in itself."""
    places = np.arange(int(np.prod(shape)) // run, dtype=np.int64)
    return places.reshape([*shape[:-1], shape[-1] // run] if run > 1 else shape)


def moved(node: gs.Node, data: list[Places], run: int = 1) -> Places | None:
    """Return what a movement gives of where runs of its inputs lie; None where that is not certain."""
    if is_op(node, "Transpose") or not is_op(node, *VIEWS):
        return MOVES[node.op](node, data)
    return _reshape(node, data, run)


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


def _reshape(node: gs.Node, data: list[Places], run: int = 1) -> Places | None:
    """By the shape of what the node gives, of which one size may follow from the others."""
    sizes = dims(node.outputs[0])
    if sizes and isinstance(sizes[-1], int):
        sizes = [*sizes[:-1], sizes[-1] // run]
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
