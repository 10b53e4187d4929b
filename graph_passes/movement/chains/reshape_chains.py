"""Merge chains of nodes that only rename dimensions or change their order.

    r2(r1(x))                          ->  Reshape(x)         r: Reshape, Flatten, Squeeze, Unsqueeze
    Transpose(Transpose(x, p), q)      ->  Transpose(x, p[q])
    Transpose(x) that moves only ones  ->  Reshape(x)
    r2(Transpose(r1(x)))               ->  Transpose(x)       r1 merges dimensions, r2 splits the same

The last form is what exporters write around attention: [1, 12, 64, 64] to [12, 64, 64] and back.
"""

import math

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import NewConstant, Refusal, Replacement, ReplacementRule
from wpk.graph_passes.core.query import Dims, dims, made_by
from wpk.graph_passes.core.reshape_target import reshape_target

RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")

MANY = 1_000_003
"""Stands for every size of the free dimension; a prime, so that it divides into nothing by accident."""


class ReshapeChains(ReplacementRule):
    """Leave at most one Reshape and one Transpose of a chain of them."""

    name = "reshape-chains"
    ops = (*RESHAPES, "Transpose")

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Match pairs; longer chains fall in later rounds."""
        if node.op == "Transpose":
            return _merged_transposes(node) or _transpose_as_reshape(node)
        return _merged_around_transpose(node) or _merged_reshapes(node)


def _merged_reshapes(node: gs.Node) -> Replacement | Refusal | None:
    first = made_by(node.inputs[0], *RESHAPES)
    if first is None:
        return None
    source, output = first.inputs[0], node.outputs[0]
    target = reshape_target(dims(source), dims(output))
    if target is None:
        reason = f"no constant target reshapes {dims(source)} to {dims(output)} for every batch"
        return Refusal(node.name, reason)
    return _reshape(source, output, target)


def _reshape(source: gs.Tensor, output: gs.Tensor, target: list[int]) -> Replacement:
    sizes = NewConstant(f"{output.name}_shape", np.array(target, np.int64))
    return Replacement(output, "Reshape", [source, sizes])


def permutation(node: gs.Node) -> list[int] | None:
    """Return the order of a Transpose; without the attribute it reverses."""
    if "perm" in node.attrs:
        return [int(axis) for axis in node.attrs["perm"]]
    shape = dims(node.inputs[0])
    return None if shape is None else list(reversed(range(len(shape))))


def _merged_transposes(node: gs.Node) -> Replacement | None:
    first = made_by(node.inputs[0], "Transpose")
    if first is None:
        return None
    inner, outer = permutation(first), permutation(node)
    if inner is None or outer is None:
        return None
    merged = [inner[axis] for axis in outer]
    return Replacement(node.outputs[0], "Transpose", [first.inputs[0]], {"perm": merged})


def _transpose_as_reshape(node: gs.Node) -> Replacement | None:
    shape, perm = dims(node.inputs[0]), permutation(node)
    if shape is None or perm is None or perm == sorted(perm):
        return None
    moved = [axis for axis in perm if shape[axis] != 1]
    target = reshape_target(shape, [shape[axis] for axis in perm])
    if moved != sorted(moved) or target is None:
        return None
    return _reshape(node.inputs[0], node.outputs[0], target)


def _merged_around_transpose(node: gs.Node) -> Replacement | None:
    transpose = made_by(node.inputs[0], "Transpose")
    first = made_by(transpose.inputs[0], *RESHAPES) if transpose is not None else None
    if transpose is None or first is None:
        return None
    source = sizes_of(dims(first.inputs[0]))
    merged = sizes_of(dims(first.outputs[0]), source)
    output, perm = sizes_of(dims(node.outputs[0]), source), permutation(transpose)
    if source is None or merged is None or output is None or perm is None:
        return None
    groups = _merged_groups(source, merged)
    if groups is None:
        return None
    order = [axis for index in perm for axis in groups[index]]
    if [source[axis] for axis in order] != output:
        return None
    return Replacement(node.outputs[0], "Transpose", [first.inputs[0]], {"perm": order})


def sizes_of(shape: Dims | None, source: list[int] | None = None) -> list[int] | None:
    """Return a shape in numbers; None if it does not say them.

    A symbol is `MANY`. With ``source``, the sizes that a Reshape turns into this shape, the one
    dimension that is not a number follows from them.
    """
    if shape is None:
        return None
    known = [size for size in shape if isinstance(size, int)]
    if len(known) == len(shape):
        return known
    free = next(size for size in shape if not isinstance(size, int))
    if len(known) + 1 < len(shape) or 0 in known or (source is None and free is None):
        return None
    rest = math.prod(known)
    if source is not None and math.prod(source) % rest:
        return None
    size = MANY if source is None else math.prod(source) // rest
    return [dim if isinstance(dim, int) else size for dim in shape]


def _merged_groups(source: list[int], merged: list[int]) -> list[list[int]] | None:
    """Return which neighbouring source dimensions make each merged one; None if one is split."""
    if 0 in source:
        return None
    groups: list[list[int]] = []
    axis = 0
    for size in merged:
        group: list[int] = []
        product = 1
        while product < size or (not group and axis < len(source)):
            if axis == len(source):
                return None
            product *= source[axis]
            group.append(axis)
            axis += 1
        if product != size:
            return None
        groups.append(group)
    while axis < len(source) and groups:
        if source[axis] != 1:
            return None
        groups[-1].append(axis)
        axis += 1
    return groups if axis == len(source) else None
