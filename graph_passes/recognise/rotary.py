"""Write rotary embeddings as two products and a sum over pairs of halves.

    x * cos + Concat(-x1, x0) * sin                          x = [x0 x1] along the last axis
    Concat(x0 * cos - x1 * sin, x0 * sin + x1 * cos)         as ONNX's RotaryEmbedding is defined

are, with the halves along an axis of their own, broadcast over both results,

    y = x0 * [cos0 sin1] + x1 * [-sin0 cos1]

The halves are then read where they lie and the result is written at once: one element-wise operator, of
the same products and sums. Su et al., "RoFormer", arXiv 2104.09864, equation 34. Cosines and sines may be
computed; what is made of them is made once for all that read them. Pairs of neighbours are rotated alike, as that
paper has them, their axis behind that of the pairs. Tokens in front that are not rotated, those of a class, are
rotated by nothing where cosines and sines are constants: ``Concat(x[:n], rotated x[n:])`` is one operator, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    is_op,
    made_by,
    producer,
    same_dims,
    why_any_shared,
)
from wpk.graph_passes.movement.chains.views import MOST_AXES
from wpk.graph_passes.recognise.turned import range_of, turned


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
        pairs: Whether pairs of neighbours are rotated, not of elements of both halves.
        tokens: How many in front are not rotated.
        axis: Along which these lie, counted from the last one: negative.
    """

    x: gs.Tensor
    half: int
    cosines: tuple[_Factor, _Factor]
    sines: tuple[_Factor, _Factor]
    inner: list[gs.Tensor]
    output: gs.Tensor
    pairs: bool = False
    tokens: int = 0
    axis: int = -2

    def apart(self, shape: Dims) -> Dims:
        """A shape with the last axis parted in two: that of halves, or pairs, and that along them."""
        return [*shape[:-1], self.half, 2] if self.pairs else [*shape[:-1], 2, self.half]


class RotaryHalves(Rule[_Rotation]):
    """Compute both halves of a rotation from both, without a tensor of turned halves."""

    name = "rotary-halves"
    ops = ("Add", "Concat")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rotation | Refusal | None:
        """Match a sum of two products, one of which is of the other's turned halves; or both results' Concat."""
        if is_op(node, "Add"):
            found = None if _tokens_of(node) else next(_rotations(node), None)
        else:
            found = next(_pairs(node), None) or _behind_tokens(node)
        if found is None:
            return None
        reason = _why_not(found) or why_any_shared(graph, found.inner)
        return refusal(node, reason) or found

    def rewrite(self, editor: GraphEditor, match: _Rotation) -> None:
        """Part the last axis, and multiply each half by what both results have of it."""
        sizes, axis = dims(match.x) or [], -1 if match.pairs else -2
        shape = match.apart(sizes)
        keep = [0] * (len(sizes) - 1)
        target = [*keep, match.half, 2] if match.pairs else [*keep, 2, match.half]
        paired = editor.constant(f"{match.x.name}_paired", np.array(target, np.int64))
        parted = editor.add("Reshape", [match.x, paired], like=match.x, shape=shape)
        first, second = _parted(editor, parted, axis)
        cos0, cos1 = (_beside(editor, match, each, 1.0) for each in match.cosines)
        sin0, sin1 = (_beside(editor, match, each, 0.0) for each in match.sines)
        negative = editor.add("Neg", [sin0], like=sin0)
        of_first = _stacked(editor, cos0, sin1, axis)
        of_second = _stacked(editor, negative, cos1, axis)
        like = match.output
        products = [
            editor.add("Mul", [part, factors], like=like, shape=shape)
            for part, factors in ((first, of_first), (second, of_second))
        ]
        total = editor.add("Add", products, like=like, shape=shape)
        joined = editor.constant(f"{like.name}_joined", np.array([*keep, 2 * match.half], np.int64))
        editor.replace(like, editor.add("Reshape", [total, joined], like=like))


def _tokens_of(node: gs.Node) -> bool:
    """Whether a sum is a rotation that `_behind_tokens` matches with what lies in front of it."""
    readers = node.outputs[0].outputs
    return any(is_op(each, "Concat") and _behind_tokens(each) is not None for each in readers)


def _behind_tokens(node: gs.Node) -> _Rotation | None:
    """Read a Concat as that of some tokens and of the rotation of all others of the same tensor."""
    sizes, added = dims(node.outputs[0]), made_by(node.inputs[-1], "Add")
    if not sizes or added is None or len(node.inputs) != 2:
        return None
    axis = int(node.attrs["axis"]) % len(sizes)
    found = next(_rotations(added), None)
    part = made_by(found.x, "Slice") if found is not None else None
    size = sizes[axis]
    if found is None or part is None or not isinstance(size, int) or axis == len(sizes) - 1:
        return None
    whole = part.inputs[0]
    ranges = [range_of(each, whole, axis) for each in (node.inputs[0], found.x)]
    tokens = size - int((dims(found.x) or [])[axis] or 0)
    factors = [each.tensor for each in (*found.cosines, *found.sines)]
    from_last = axis - len(sizes)
    constant = all(
        isinstance(each, gs.Constant)
        and len(each.shape) >= -from_last
        and each.shape[from_last] == size - tokens
        for each in factors
    )
    if ranges != [(0, tokens), (tokens, size)] or not constant:
        return None
    inner = [*found.inner, found.output]
    return replace(
        found, x=whole, inner=inner, output=node.outputs[0], tokens=tokens, axis=from_last
    )


def _rotations(node: gs.Node) -> Iterator[_Rotation]:
    """Read a sum as a rotation, in every order of its operands."""
    products = [made_by(tensor, "Mul") for tensor in node.inputs]
    for plain, product in permutations(products):
        if plain is None or product is None:
            continue
        for (x, cos), (halves, sin) in (
            (a, b) for a in permutations(plain.inputs) for b in permutations(product.inputs)
        ):
            between = turned(halves, x)
            if between is not None:
                half = int((dims(x) or [0])[-1] or 0) // 2
                inner = [plain.outputs[0], product.outputs[0], *between.inner]
                cosines, sines = ((_Factor(t, 0), _Factor(t, 1)) for t in (cos, sin))
                yield _Rotation(
                    x, half, cosines, sines, inner, node.outputs[0], pairs=between.pairs
                )


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
    ranges = [range_of(each, part.inputs[0], axis) for each in (x0, x1)]
    return part.inputs[0] if ranges == [(0, half), (half, 2 * half)] else None


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


def _parted(editor: GraphEditor, paired: gs.Variable, axis: int) -> list[gs.Tensor]:
    """The two parts along an axis, which has one element of each."""
    shape = list(paired.shape)
    shape[axis] = 1
    sizes = editor.constant(f"{paired.name}_sizes", np.array([1, 1], np.int64))
    halves = [
        gs.Variable(editor.new_name(f"{paired.name}_half"), paired.dtype, list(shape))
        for _ in range(2)
    ]
    name = editor.new_name(f"{paired.name}_halves")
    attrs = {"axis": len(shape) + axis}
    editor.graph.nodes.append(gs.Node("Split", name, attrs, [paired, sizes], halves))
    return halves


def _beside(editor: GraphEditor, match: _Rotation, factor: _Factor, of_tokens: float) -> gs.Tensor:
    """A factor with an axis of one element where both parts have theirs.

    ``of_tokens`` is what it is for tokens that are not rotated.
    """
    tensor = _for_tokens(editor, match, factor.tensor, of_tokens)
    shape = dims(tensor) or []
    if factor.half is None:
        axis = editor.constant(f"{tensor.name}_pair", np.array([len(shape) - 1], np.int64))
        wide = [*shape[:-1], 1, match.half]
        return editor.add("Unsqueeze", [tensor, axis], like=tensor, shape=wide)
    apart = match.apart(shape)
    target = [0] * (len(shape) - 1) + [int(size or 0) for size in apart[-2:]]
    sizes = editor.constant(f"{tensor.name}_apart", np.array(target, np.int64))
    both = editor.add("Reshape", [tensor, sizes], like=tensor, shape=apart)
    axis_of_parts = len(apart) - (1 if match.pairs else 2)
    bounds = [
        editor.constant(f"{tensor.name}_{what}", np.array([value], np.int64))
        for what, value in (
            ("begin", factor.half),
            ("end", factor.half + 1),
            ("axis", axis_of_parts),
        )
    ]
    part = list(apart)
    part[axis_of_parts] = 1
    return editor.add("Slice", [both, *bounds], like=tensor, shape=part)


def _for_tokens(
    editor: GraphEditor, match: _Rotation, tensor: gs.Tensor, number: float
) -> gs.Tensor:
    """A constant with a number for each token in front."""
    if not match.tokens or not isinstance(tensor, gs.Constant):
        return tensor
    before = [(0, 0)] * len(tensor.shape)
    before[match.axis] = (match.tokens, 0)
    return moved_constant(
        editor.new_name(f"{tensor.name}_tokens"),
        tensor,
        lambda array: np.pad(array, before, constant_values=number),
    )


def _stacked(editor: GraphEditor, first: gs.Tensor, second: gs.Tensor, axis: int) -> gs.Tensor:
    """Two parts after each other."""
    joined = list(dims(first) or [])
    joined[axis] = 2
    attrs = {"axis": len(joined) + axis}
    return editor.add("Concat", [first, second], like=first, shape=joined, attrs=attrs)
