"""Write rotary embeddings as two products and a sum over pairs of halves.

    x * cos + Concat(-x1, x0) * sin                          x = [x0 x1] along the last axis
    Concat(x0 * cos - x1 * sin, x0 * sin + x1 * cos)         as ONNX's RotaryEmbedding is defined

are, with the halves along an axis of their own, broadcast over both results,

    y = x0 * [cos0 sin1] + x1 * [-sin0 cos1]

The halves are then read where they lie and the result is written at once: one element-wise operator, of
the same products and sums. Su et al., "RoFormer", arXiv 2104.09864, equation 34. Cosines and sines may be
computed; what is made of them is made once for all that read them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import (
    dims,
    given,
    integers,
    is_op,
    made_by,
    producer,
    same_dims,
    why_any_shared,
)
from wpk.graph_passes.movement.views import MOST_AXES


class _Factor(NamedTuple):
    """What half of ``x`` is multiplied by: a tensor, or a half of one."""

    tensor: gs.Tensor
    half: int | None


@dataclass(frozen=True)
class _Rotation:
    """The parts of a rotation.

    Attributes:
        x: What is rotated.
        half: Elements of each half of its last axis.
        cosines: What the first half of ``x`` has in the first result, and the second half in the second.
        sines: What the second half of ``x`` has in the first result, negated, and the first in the second.
        inner: What the nodes in between make, which vanishes.
        output: The result.
    """

    x: gs.Tensor
    half: int
    cosines: tuple[_Factor, _Factor]
    sines: tuple[_Factor, _Factor]
    inner: list[gs.Tensor]
    output: gs.Tensor


class RotaryHalves(Rule[_Rotation]):
    """Compute both halves of a rotation from both, without a tensor of turned halves."""

    name = "rotary-halves"
    ops = ("Add", "Concat")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rotation | Refusal | None:
        """Match a sum of two products, one of which is of the other's turned halves; or both results' Concat."""
        found = next(_rotations(node) if is_op(node, "Add") else _pairs(node), None)
        if found is None:
            return None
        reason = _why_not(found) or why_any_shared(graph, found.inner)
        return refusal(node, reason) or found

    def rewrite(self, editor: GraphEditor, match: _Rotation) -> None:
        """Part the last axis, and multiply each half by what both results have of it."""
        sizes, half = dims(match.x) or [], match.half
        shape = [*sizes[:-1], 2, half]
        keep = [0] * (len(sizes) - 1)
        target = editor.constant(f"{match.x.name}_paired", np.array([*keep, 2, half], np.int64))
        paired = editor.add("Reshape", [match.x, target], like=match.x, shape=shape)
        first, second = _parted(editor, paired)
        cos0, cos1 = (_beside(editor, each, half) for each in match.cosines)
        sin0, sin1 = (_beside(editor, each, half) for each in match.sines)
        turned = editor.add("Neg", [sin0], like=sin0)
        of_first = _stacked(editor, cos0, sin1)
        of_second = _stacked(editor, turned, cos1)
        like = match.output
        products = [
            editor.add("Mul", [part, factors], like=like, shape=shape)
            for part, factors in ((first, of_first), (second, of_second))
        ]
        total = editor.add("Add", products, like=like, shape=shape)
        joined = editor.constant(f"{like.name}_joined", np.array([*keep, 2 * half], np.int64))
        editor.replace(like, editor.add("Reshape", [total, joined], like=like))


def _rotations(node: gs.Node) -> Iterator[_Rotation]:
    """Read a sum as a rotation, in every order of its operands."""
    products = [made_by(tensor, "Mul") for tensor in node.inputs]
    for plain, turned in permutations(products):
        if plain is None or turned is None:
            continue
        for (x, cos), (halves, sin) in (
            (a, b) for a in permutations(plain.inputs) for b in permutations(turned.inputs)
        ):
            between = _turned_halves(halves, x)
            if between is not None:
                half = int((dims(x) or [0])[-1] or 0) // 2
                inner = [plain.outputs[0], turned.outputs[0], *between]
                cosines, sines = ((_Factor(t, 0), _Factor(t, 1)) for t in (cos, sin))
                yield _Rotation(x, half, cosines, sines, inner, node.outputs[0])


def _pairs(node: gs.Node) -> Iterator[_Rotation]:
    """Read a Concat as the two results of a rotation, in every order of their operands."""
    output, sizes = node.outputs[0], dims(node.outputs[0])
    if not sizes or len(node.inputs) != 2 or int(node.attrs["axis"]) % len(sizes) != len(sizes) - 1:
        return
    difference, total = made_by(node.inputs[0], "Sub"), made_by(node.inputs[1], "Add")
    if difference is None or total is None:
        return
    minuend, subtrahend = (made_by(tensor, "Mul") for tensor in difference.inputs)
    addends = [made_by(tensor, "Mul") for tensor in total.inputs]
    products = [minuend, subtrahend, *addends]
    for third, fourth in permutations(addends):
        if minuend is None or subtrahend is None or third is None or fourth is None:
            return
        for (x0, cos0), (x1, sin0) in (
            (a, b) for a in permutations(minuend.inputs) for b in permutations(subtrahend.inputs)
        ):
            sin1, cos1 = _other(third, x0), _other(fourth, x1)
            x = _whole(x0, x1)
            if x is None or sin1 is None or cos1 is None:
                continue
            inner = [t for each in (*products, difference, total) if each for t in each.outputs]
            cosines, sines = (
                (_Factor(a, None), _Factor(b, None)) for a, b in ((cos0, cos1), (sin0, sin1))
            )
            yield _Rotation(x, int(sizes[-1] or 0) // 2, cosines, sines, inner, output)


def _other(product: gs.Node, factor: gs.Tensor) -> gs.Tensor | None:
    """The other factor of a product; None where it has not the first one."""
    first, second = product.inputs
    return second if first is factor else first if second is factor else None


def _whole(x0: gs.Tensor, x1: gs.Tensor) -> gs.Tensor | None:
    """The tensor whose halves two tensors are; None where they are not."""
    part = producer(x0)
    sizes = dims(part.inputs[0]) if part is not None and part.inputs else None
    if part is None or not sizes or not isinstance(sizes[-1], int) or sizes[-1] % 2:
        return None
    axis, half = len(sizes) - 1, sizes[-1] // 2
    ranges = [_range_of(each, part.inputs[0], axis) for each in (x0, x1)]
    return part.inputs[0] if ranges == [(0, half), (half, 2 * half)] else None


def _turned_halves(tensor: gs.Tensor, x: gs.Tensor) -> list[gs.Tensor] | None:
    """Return what is made on the way from ``x`` to ``Concat(-x1, x0)``; None where the tensor is none."""
    joined, sizes = made_by(tensor, "Concat"), dims(x)
    if joined is None or not sizes or len(joined.inputs) != 2:
        return None
    axis, size = len(sizes) - 1, sizes[-1]
    if int(joined.attrs["axis"]) % len(sizes) != axis or not isinstance(size, int) or size % 2:
        return None
    negative = made_by(joined.inputs[0], "Neg")
    if negative is None:
        return None
    second, first = negative.inputs[0], joined.inputs[1]
    ranges = [_range_of(part, x, axis) for part in (first, second)]
    if ranges != [(0, size // 2), (size // 2, size)]:
        return None
    return [tensor, negative.outputs[0]]


def _range_of(part: gs.Tensor, x: gs.Tensor, axis: int) -> tuple[int, int] | None:
    """Return which elements of ``x`` along an axis a Slice or Split takes; None where it takes others."""
    node, size = producer(part), (dims(x) or [])[axis]
    if node is None or not is_op(node, "Slice", "Split") or node.inputs[0] is not x:
        return None
    assert isinstance(size, int)  # `_turned_halves` looked
    rank_of_x = len(dims(x) or [])
    if is_op(node, "Split"):
        sizes = [(dims(output) or [None])[-1] for output in node.outputs]
        index = next(i for i, output in enumerate(node.outputs) if output is part)
        if int(node.attrs.get("axis", 0)) % rank_of_x != axis:
            return None
        before = [n for n in sizes[: index + 1] if isinstance(n, int)]
        return (sum(before[:-1]), sum(before)) if len(before) == index + 1 else None
    bounds = [integers(given(node, index)) for index in (1, 2, 3)]
    steps = [1] if given(node, 4) is None else integers(given(node, 4))
    if any(bound is None or len(bound) != 1 for bound in bounds) or steps != [1]:
        return None
    start, end, along = (bound[0] for bound in bounds if bound is not None)
    if along % rank_of_x != axis:
        return None
    begin, stop, _ = slice(start, end).indices(size)
    return begin, stop


def _why_not(found: _Rotation) -> str | None:
    shape = dims(found.x) or []
    if not same_dims(shape, dims(found.output)):
        return f"'{found.output.name}' has another shape than '{found.x.name}'"
    if len(shape) + 1 > MOST_AXES:
        return f"halves of {len(shape)} dimensions have more than the {MOST_AXES} axes that kernels walk"
    factors = [*found.cosines, *found.sines]
    for tensor, half in factors:
        wanted = found.half if half is None else 2 * found.half
        if (dims(tensor) or [None])[-1] != wanted:
            return f"'{tensor.name}' has no number of its own for each of {wanted} elements"
    first = factors[0].tensor
    for tensor, _ in factors:
        if not same_dims(dims(first), dims(tensor)):
            return f"'{first.name}' and '{tensor.name}' have different shapes"
    return None


def _parted(editor: GraphEditor, paired: gs.Variable) -> list[gs.Tensor]:
    """The two halves, each with an axis of one element in front of its last one."""
    axis = len(paired.shape) - 2
    shape = [*paired.shape[:axis], 1, paired.shape[-1]]
    sizes = editor.constant(f"{paired.name}_sizes", np.array([1, 1], np.int64))
    halves = [
        gs.Variable(editor.new_name(f"{paired.name}_half"), paired.dtype, list(shape))
        for _ in range(2)
    ]
    name = editor.new_name(f"{paired.name}_halves")
    editor.graph.nodes.append(gs.Node("Split", name, {"axis": axis}, [paired, sizes], halves))
    return halves


def _beside(editor: GraphEditor, factor: _Factor, half: int) -> gs.Tensor:
    """A factor with an axis of one element in front of its last one."""
    tensor, index = factor
    shape = dims(tensor) or []
    part = tensor
    if index is not None:
        bounds = [
            editor.constant(f"{tensor.name}_{what}", np.array([value], np.int64))
            for what, value in (
                *(("begin", index * half), ("end", (index + 1) * half)),
                ("axis", len(shape) - 1),
            )
        ]
        part = editor.add("Slice", [tensor, *bounds], like=tensor, shape=[*shape[:-1], half])
    axis = editor.constant(f"{tensor.name}_pair", np.array([len(shape) - 1], np.int64))
    return editor.add("Unsqueeze", [part, axis], like=tensor, shape=[*shape[:-1], 1, half])


def _stacked(editor: GraphEditor, first: gs.Tensor, second: gs.Tensor) -> gs.Tensor:
    """Two halves after each other."""
    shape = dims(first) or []
    joined = [*shape[:-2], 2, shape[-1]]
    attrs = {"axis": len(shape) - 2}
    return editor.add("Concat", [first, second], like=first, shape=joined, attrs=attrs)
