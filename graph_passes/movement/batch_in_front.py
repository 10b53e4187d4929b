"""Move transposes that take the first dimension away behind what they may follow.

    MatMul(Transpose(x), w)       ->  Transpose(MatMul(x, w))         the last dimension stays last
    f(Transpose(x), c)            ->  Transpose(f(x, c))              f element-wise or on last rows
    Gather(Transpose(x), number)  ->  Transpose(Gather(x, number))
    Reshape(Transpose(x))         ->  Transpose(Reshape(Transpose(Reshape(x))))

torch's multi-head attention computes with the sequence in front: [batch, s, e] to [s, batch, e], and
back at its end. Kernels take their leading extent, a batch that may be free, at run time, so such a
pair must meet before lowering. In the last form the first Reshape splits, the inner Transpose keeps
the first dimension in front, the second Reshape merges; what is the identity is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.base import GraphPass, PassResult
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.kinds import ROWS, SOFTMAX, is_elementwise
from wpk.graph_passes.core.query import Dims, dims, is_op, made_by, same_dims
from wpk.graph_passes.movement.reshape_chains import MANY, RESHAPES, permutation, sizes_of


@dataclass(frozen=True)
class _Turned:
    """A Transpose that takes the first dimension away: its input, and where dimensions come from."""

    source: gs.Tensor
    perm: list[int]

    @property
    def keeps_rows(self) -> bool:
        """Whether the last dimension stays the last."""
        return self.perm[-1] == len(self.perm) - 1


class BatchInFront(GraphPass):
    """Let the first dimension stay in front for as long as the graph allows."""

    name = "batch-in-front"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Move each transpose by one node; later rounds carry it on."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in list(graph.nodes):
            turned = next((t for x in node.inputs if (t := _turned(x)) is not None), None)
            if turned is not None and node.outputs:
                rule = _rule(node)
                result.rewritten += int(rule is not None and rule(editor, node, turned))
        return result


_Rule = Callable[[GraphEditor, gs.Node, _Turned], bool]


def _rule(node: gs.Node) -> _Rule | None:
    if is_op(node, "MatMul"):
        return _behind_product
    if is_op(node, "Gather"):
        return _behind_gather
    if is_op(node, *RESHAPES):
        return _behind_reshape
    return _behind_rows if is_elementwise(node) or is_op(node, *ROWS, *SOFTMAX) else None


def _turned(tensor: gs.Tensor) -> _Turned | None:
    node = made_by(tensor, "Transpose")
    perm = permutation(node) if node is not None else None
    if node is None or perm is None or perm[0] == 0 or dims(node.inputs[0]) is None:
        return None
    return _Turned(node.inputs[0], perm)


def _turn(editor: GraphEditor, output: gs.Tensor, moved: gs.Tensor, perm: list[int]) -> bool:
    """Make ``output`` the transpose of ``moved``."""
    editor.replace(output, editor.add("Transpose", [moved], like=output, attrs={"perm": perm}))
    return True


def _behind_product(editor: GraphEditor, node: gs.Node, turned: _Turned) -> bool:
    weight = node.inputs[1]
    if not turned.keeps_rows or not isinstance(weight, gs.Constant) or len(weight.shape) != 2:
        return False
    shape = [*(dims(turned.source) or [])[:-1], int(weight.shape[1])]
    inputs = [turned.source, weight]
    product = editor.add("MatMul", inputs, like=node.outputs[0], shape=shape)
    return _turn(editor, node.outputs[0], product, turned.perm)


def _behind_rows(editor: GraphEditor, node: gs.Node, turned: _Turned) -> bool:
    output, rank = node.outputs[0], len(turned.perm)
    along = range(rank) if is_elementwise(node) else [rank - 1]  # dimensions that it may mix
    if not is_elementwise(node) and int(node.attrs.get("axis", -1)) % rank not in along:
        return False
    inputs: list[gs.Tensor] = []
    for tensor in node.inputs:
        own = _turned(tensor)
        if own is not None and own.perm == turned.perm and same_dims(dims(tensor), dims(output)):
            inputs.append(own.source)
        elif _is_row(tensor):
            inputs.append(tensor)
        else:
            return False
    plain = is_elementwise(node) and all(t.is_empty() or t.values.size == 1 for t in _rows(inputs))
    if len(node.outputs) != 1 or not (turned.keeps_rows or plain):
        return False
    shape = dims(turned.source)
    moved = editor.add(node.op, inputs, like=output, shape=shape, attrs=node.attrs)
    return _turn(editor, output, moved, turned.perm)


def _rows(tensors: list[gs.Tensor]) -> list[gs.Tensor]:
    return [t for t in tensors if t.is_empty() or isinstance(t, gs.Constant)]


def _is_row(tensor: gs.Tensor) -> bool:
    """Whether a tensor is a constant that differs along the last dimension only, or absent."""
    if not isinstance(tensor, gs.Constant):
        return bool(tensor.is_empty())
    return all(size == 1 for size in tensor.shape[:-1])


def _behind_gather(editor: GraphEditor, node: gs.Node, turned: _Turned) -> bool:
    index = node.inputs[1]
    if not isinstance(index, gs.Constant) or len(index.shape) != 0:
        return False
    perm = list(turned.perm)
    axis = perm.pop(int(node.attrs.get("axis", 0)) % len(perm))
    if axis == 0:
        return False
    shape = dims(turned.source) or []
    rest: Dims = [*shape[:axis], *shape[axis + 1 :]]
    output = node.outputs[0]
    inputs = [turned.source, index]
    picked = editor.add("Gather", inputs, like=output, shape=rest, attrs={"axis": axis})
    return _turn(editor, output, picked, [place - int(place > axis) for place in perm])


def _behind_reshape(editor: GraphEditor, node: gs.Node, turned: _Turned) -> bool:
    output = node.outputs[0]
    source = sizes_of(dims(turned.source))
    before = [source[axis] for axis in turned.perm] if source is not None else None
    after = sizes_of(dims(output), before)
    parts = _common_parts(before, after) if before is not None and after is not None else None
    if source is None or after is None or parts is None:
        return False
    extents, split, merged = parts
    places = [split[turned.perm.index(axis)] for axis in range(len(turned.perm))]
    own = [part for group in places for part in group]  # the parts in the order of the source
    groups = [[own.index(part) for part in group] for group in merged]
    order = sorted(range(len(groups)), key=lambda i: 0 not in groups[i])  # the others as they are
    if not groups or groups[order[0]][:1] != [0]:
        return False
    inner = [part for i in order for part in groups[i]]
    sizes = [extents[part] for part in own]
    tensor = _reshaped(editor, turned.source, output, source, sizes)
    if inner != sorted(inner):
        shape = _named(turned.source, [sizes[part] for part in inner])
        attrs = {"perm": inner}
        tensor = editor.add("Transpose", [tensor], like=output, shape=shape, attrs=attrs)
    sizes = [sizes[part] for part in inner]
    tensor = _reshaped(editor, tensor, output, sizes, [after[i] for i in order])
    return _turn(editor, output, tensor, [order.index(i) for i in range(len(order))])


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
