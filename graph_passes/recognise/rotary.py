"""Write rotary embeddings as two products and a sum over pairs of halves.

    x * cos + Concat(-x1, x0) * sin     x = [x0 x1] along the last axis, as exporters write it

is, with the halves along an axis of their own, broadcast over both results,

    y = x0 * [cos0 sin1] + x1 * [-sin0 cos1]

The halves are then read where they lie and the result is written at once: one element-wise operator, of
the same products and sums. Su et al., "RoFormer", arXiv 2104.09864, equation 34. Cosines and sines may be
computed; what is made of them is made once for all that read them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

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
    rank,
    same_dims,
    why_any_shared,
)


@dataclass(frozen=True)
class _Rotation:
    """The parts of a rotation.

    Attributes:
        x: What is rotated.
        half: Elements of each half of its last axis.
        cos: What it is multiplied by; its last axis is that of ``x``.
        sin: What its turned halves are multiplied by.
        inner: What the nodes in between make, which vanishes.
        output: The result.
    """

    x: gs.Tensor
    half: int
    cos: gs.Tensor
    sin: gs.Tensor
    inner: list[gs.Tensor]
    output: gs.Tensor


class RotaryHalves(Rule[_Rotation]):
    """Compute both halves of a rotation from both, without a tensor of turned halves."""

    name = "rotary-halves"
    ops = ("Add",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Rotation | Refusal | None:
        """Match a sum of two products, one of which is of the other's turned halves."""
        found = next(_rotations(node), None)
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
        cos0, cos1 = (_half_of(editor, match.cos, half, index) for index in range(2))
        sin0, sin1 = (_half_of(editor, match.sin, half, index) for index in range(2))
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
                yield _Rotation(x, half, cos, sin, inner, node.outputs[0])


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
    for factor in (found.cos, found.sin):
        if rank(factor) is None or (dims(factor) or [None])[-1:] != shape[-1:]:
            return f"'{factor.name}' has no number of its own for each of {shape[-1]} elements"
    if not same_dims(dims(found.cos), dims(found.sin)):
        return f"'{found.cos.name}' and '{found.sin.name}' have different shapes"
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


def _half_of(editor: GraphEditor, tensor: gs.Tensor, half: int, index: int) -> gs.Tensor:
    """A half of the last axis, with an axis of one element in front of it."""
    shape = dims(tensor) or []
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
