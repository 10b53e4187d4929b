"""Move transposes that take the first dimension away behind what they may follow.

    MatMul(Transpose(x), w)       ->  Transpose(MatMul(x, w))         the last dimension stays last
    f(Transpose(x), c)            ->  Transpose(f(x, c))              f element-wise or on last rows
    Gather(Transpose(x), number)  ->  Transpose(Gather(x, number))
    GatherND(Transpose(x), i)     ->  Transpose(Gather(Reshape(x), i'))   i constant
    Concat, Slice, ReduceSum …    ->  the same                        along dimensions but the first
    Concat(Unsqueeze(x, 0), ...)  ->  Transpose(Concat(Unsqueeze(x, 1), ...))     x's batch is free
    Reshape(Transpose(x))         ->  Transpose(Reshape(Transpose(Reshape(x))))
    Reshape(Transpose(x))         ->  Reshape(Transpose(x))           a batch of one: it need not move

torch's multi-head attention computes with the sequence in front: [batch, s, e] to [s, batch, e], and
back at its end. Kernels take their leading extent, a batch that may be free, at run time, so such a
pair must meet before lowering. In the last form the first Reshape splits, the inner Transpose keeps
the first dimension in front, the second Reshape merges; what is the identity is left out.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import ROWS, SOFTMAX, is_elementwise
from wpk.graph_passes.core.known import is_constant
from wpk.graph_passes.core.query import REDUCTIONS, Dims, dims, is_op, same_dims
from wpk.graph_passes.movement.chains.reshape_chains import MANY, RESHAPES, sizes_of
from wpk.graph_passes.movement.transposes.behind_joins import (
    behind_concat,
    behind_picks,
    behind_reduction,
    behind_slice,
    stacked_behind,
)
from wpk.graph_passes.movement.transposes.turns import Swap, Turn, turn_of


class BatchInFront(Rule[Swap]):
    """Let the first dimension stay in front for as long as the graph allows."""

    name = "batch-in-front"

    def match(self, graph: gs.Graph, node: gs.Node) -> Swap | None:
        """Match a node behind a transpose, which moves by this node; later rounds carry it on."""
        turn = next((t for x in node.inputs if (t := turn_of(x)) is not None), None)
        if turn is None or not node.outputs:
            return stacked_behind(node) if is_op(node, "Concat") and node.outputs else None
        if is_op(node, "MatMul"):
            return _behind_product(node, turn)
        if is_op(node, "Gather"):
            return _behind_gather(node, turn)
        if is_op(node, "GatherND"):
            return behind_picks(node, turn)
        if is_op(node, "Concat"):
            return behind_concat(node, turn)
        if is_op(node, "Slice"):
            return behind_slice(node, turn)
        if is_op(node, *REDUCTIONS):
            return behind_reduction(node, turn)
        if is_op(node, *RESHAPES):
            return _behind_reshape(node, turn)
        if is_elementwise(node) or is_op(node, *ROWS, *SOFTMAX):
            return _behind_rows(node, turn)
        return None

    def rewrite(self, editor: GraphEditor, match: Swap) -> None:
        """Write the node, and the transpose behind it."""
        output, attrs = match.output, {"perm": match.perm}
        new = editor.add("Transpose", [match.make(editor)], like=output, attrs=attrs)
        editor.replace(output, new)


def _behind_product(node: gs.Node, turn: Turn) -> Swap | None:
    weight, output = node.inputs[1], node.outputs[0]
    if not turn.keeps_rows or not isinstance(weight, gs.Constant) or len(weight.shape) != 2:
        return None
    shape = [*(dims(turn.source) or [])[:-1], int(weight.shape[1])]
    inputs = [turn.source, weight]
    return Swap(
        output, lambda editor: editor.add("MatMul", inputs, like=output, shape=shape), turn.perm
    )


def _behind_rows(node: gs.Node, turn: Turn) -> Swap | None:
    output, rank = node.outputs[0], len(turn.perm)
    along = range(rank) if is_elementwise(node) else [rank - 1]  # dimensions that it may mix
    if not is_elementwise(node) and int(node.attrs.get("axis", -1)) % rank not in along:
        return None
    inputs: list[gs.Tensor] = []
    for tensor in node.inputs:
        own = turn_of(tensor)
        if own is not None and own.perm == turn.perm and same_dims(dims(tensor), dims(output)):
            inputs.append(own.source)
        elif _is_row(tensor):
            inputs.append(tensor)
        else:
            return None
    plain = is_elementwise(node) and all(t.is_empty() or t.values.size == 1 for t in _rows(inputs))
    if len(node.outputs) != 1 or not (turn.keeps_rows or plain):
        return None
    shape, attrs = dims(turn.source), node.attrs
    return Swap(
        output,
        lambda editor: editor.add(node.op, inputs, like=output, shape=shape, attrs=attrs),
        turn.perm,
    )


def _rows(tensors: list[gs.Tensor]) -> list[gs.Tensor]:
    return [t for t in tensors if is_constant(t)]


def _is_row(tensor: gs.Tensor) -> bool:
    """Whether a tensor is a constant that differs along the last dimension only, or absent."""
    if not isinstance(tensor, gs.Constant):
        return bool(tensor.is_empty())
    return all(size == 1 for size in tensor.shape[:-1])


def _behind_gather(node: gs.Node, turn: Turn) -> Swap | None:
    index, output = node.inputs[1], node.outputs[0]
    if not isinstance(index, gs.Constant) or len(index.shape) != 0:
        return None
    perm = list(turn.perm)
    axis = perm.pop(int(node.attrs.get("axis", 0)) % len(perm))
    if axis == 0:
        return None
    shape = dims(turn.source) or []
    rest: Dims = [*shape[:axis], *shape[axis + 1 :]]
    inputs, attrs = [turn.source, index], {"axis": axis}
    return Swap(
        output,
        lambda editor: editor.add("Gather", inputs, like=output, shape=rest, attrs=attrs),
        [place - int(place > axis) for place in perm],
    )


def _behind_reshape(node: gs.Node, turn: Turn) -> Swap | None:
    output = node.outputs[0]
    source = sizes_of(dims(turn.source))
    if source is not None and source[0] == 1:
        return _without_batch(output, turn)
    before = [source[axis] for axis in turn.perm] if source is not None else None
    after = sizes_of(dims(output), before)
    parts = _common_parts(before, after) if before is not None and after is not None else None
    if source is None or after is None or parts is None:
        return None
    extents, split, merged = parts
    places = [split[turn.perm.index(axis)] for axis in range(len(turn.perm))]
    own = [part for group in places for part in group]  # the parts in the order of the source
    groups = [[own.index(part) for part in group] for group in merged]
    order = sorted(range(len(groups)), key=lambda i: 0 not in groups[i])  # the others as they are
    if not groups or groups[order[0]][:1] != [0]:
        return None
    inner = [part for i in order for part in groups[i]]
    sizes = [extents[part] for part in own]

    def make(editor: GraphEditor) -> gs.Tensor:
        tensor = _reshaped(editor, turn.source, output, source, sizes)
        kept = [sizes[part] for part in inner]
        if inner != sorted(inner):
            shape, attrs = _named(turn.source, kept), {"perm": inner}
            tensor = editor.add("Transpose", [tensor], like=output, shape=shape, attrs=attrs)
        return _reshaped(editor, tensor, output, kept, [after[i] for i in order])

    return Swap(output, make, [order.index(i) for i in range(len(order))])


def _without_batch(output: gs.Tensor, turn: Turn) -> Swap | None:
    """Keep a first dimension of one in front, and reshape to what the output is."""
    sizes = sizes_of(dims(output))
    if sizes is None or any(size % MANY == 0 for size in sizes):
        return None
    perm = [0, *(axis for axis in turn.perm if axis != 0)]
    shape = dims(turn.source) or []
    target = np.array(sizes, np.int64)

    def make(editor: GraphEditor) -> gs.Tensor:
        attrs, own = {"perm": perm}, [shape[axis] for axis in perm]
        tensor = editor.add("Transpose", [turn.source], like=output, shape=own, attrs=attrs)
        constant = editor.constant(f"{output.name}_sizes", target)
        return editor.add("Reshape", [tensor, constant], like=output, shape=list(sizes))

    return Swap(output, make, list(range(len(sizes))))


def _reshaped(
    editor: GraphEditor, tensor: gs.Tensor, like: gs.Tensor, old: list[int], new: list[int]
) -> gs.Tensor:
    """Reshape where that changes something; an extent that holds the free dimension is -1."""
    if old == new:
        return tensor
    target = np.array([-1 if size % MANY == 0 else size for size in new], np.int64)
    sizes = editor.constant(f"{like.name}_parts", target)
    return editor.add("Reshape", [tensor, sizes], like=like, shape=_named(tensor, new))


def _named(tensor: gs.Tensor, sizes: list[int]) -> Dims:
    """Sizes with the name of the tensor's free dimension in them; None for multiples of it."""
    symbol = next((dim for dim in dims(tensor) or [] if isinstance(dim, str)), None)
    return [size if size % MANY else symbol if size == MANY else None for size in sizes]


_Parts = tuple[list[int], list[list[int]], list[list[int]]]


def _common_parts(before: list[int], after: list[int]) -> _Parts | None:
    """Extents that both shapes are made of in row-major order, and which make each dimension."""
    extents: list[int] = []
    made: list[list[list[int]]] = [[[] for _ in before], [[] for _ in after]]
    left = [[axis, size] for axis, size in enumerate(before) if size != 1]
    right = [[axis, size] for axis, size in enumerate(after) if size != 1]
    while left and right:
        a, b = left[0], right[0]
        part = min(a[1], b[1])
        if part == 0 or a[1] % part or b[1] % part:
            return None
        for side, (axis, _) in enumerate((a, b)):
            made[side][axis].append(len(extents))
        extents.append(part)
        for rest in (left, right):
            rest[0][1] //= part
            if rest[0][1] == 1:
                rest.pop(0)
    return None if left or right else (extents, made[0], made[1])
