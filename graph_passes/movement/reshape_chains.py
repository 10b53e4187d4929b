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

from wpk.graph_passes.core.base import GraphPass, PassResult
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.query import Dims, dims, live_nodes, made_by
from wpk.graph_passes.movement.reshape_target import reshape_target

RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")

MANY = 1_000_003
"""Stands for every size of the free dimension; a prime, so that it divides into nothing by accident."""


class ReshapeChains(GraphPass):
    """Leave at most one Reshape and one Transpose of a chain of them."""

    name = "reshape-chains"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Merge pairs; longer chains fall in later rounds."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, *RESHAPES, "Transpose"):
            if node.op == "Transpose":
                done = _merge_transposes(editor, node) or _transpose_to_reshape(editor, node)
            else:
                done = _merge_around_transpose(editor, node) or _merge_reshapes(
                    editor, node, result
                )
            result.rewritten += int(done)
        return result


def _merge_reshapes(editor: GraphEditor, node: gs.Node, result: PassResult) -> bool:
    first = made_by(node.inputs[0], *RESHAPES)
    if first is None:
        return False
    source, output = first.inputs[0], node.outputs[0]
    target = reshape_target(dims(source), dims(output))
    if target is None:
        result.refuse(
            node, f"no constant target reshapes {dims(source)} to {dims(output)} for every batch"
        )
        return False
    _make_reshape(editor, source, output, target)
    return True


def _make_reshape(
    editor: GraphEditor, source: gs.Tensor, output: gs.Tensor, target: list[int]
) -> None:
    sizes = editor.constant(f"{output.name}_shape", np.array(target, np.int64))
    editor.replace(output, editor.add("Reshape", [source, sizes], like=output))


def permutation(node: gs.Node) -> list[int] | None:
    """Return the order of a Transpose; without the attribute it reverses."""
    if "perm" in node.attrs:
        return [int(axis) for axis in node.attrs["perm"]]
    shape = dims(node.inputs[0])
    return None if shape is None else list(reversed(range(len(shape))))


def _merge_transposes(editor: GraphEditor, node: gs.Node) -> bool:
    first = made_by(node.inputs[0], "Transpose")
    if first is None:
        return False
    inner, outer = permutation(first), permutation(node)
    if inner is None or outer is None:
        return False
    merged = [inner[axis] for axis in outer]
    output = node.outputs[0]
    new = editor.add("Transpose", [first.inputs[0]], like=output, attrs={"perm": merged})
    editor.replace(output, new)
    return True


def _transpose_to_reshape(editor: GraphEditor, node: gs.Node) -> bool:
    shape, perm = dims(node.inputs[0]), permutation(node)
    if shape is None or perm is None or perm == sorted(perm):
        return False
    moved = [axis for axis in perm if shape[axis] != 1]
    target = reshape_target(shape, [shape[axis] for axis in perm])
    if moved != sorted(moved) or target is None:
        return False
    _make_reshape(editor, node.inputs[0], node.outputs[0], target)
    return True


def _merge_around_transpose(editor: GraphEditor, node: gs.Node) -> bool:
    transpose = made_by(node.inputs[0], "Transpose")
    first = made_by(transpose.inputs[0], *RESHAPES) if transpose is not None else None
    if transpose is None or first is None:
        return False
    source = sizes_of(dims(first.inputs[0]))
    merged = sizes_of(dims(first.outputs[0]), source)
    output, perm = sizes_of(dims(node.outputs[0]), source), permutation(transpose)
    if source is None or merged is None or output is None or perm is None:
        return False
    groups = _merged_groups(source, merged)
    if groups is None:
        return False
    order = [axis for index in perm for axis in groups[index]]
    if [source[axis] for axis in order] != output:
        return False
    new = editor.add("Transpose", [first.inputs[0]], like=node.outputs[0], attrs={"perm": order})
    editor.replace(node.outputs[0], new)
    return True


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
