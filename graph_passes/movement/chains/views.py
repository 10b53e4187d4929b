"""What a chain of views does to memory, and the shortest chain that does the same.

A view (Reshape, Flatten, Squeeze, Unsqueeze, Transpose) neither computes nor drops an element. A
chain of them is described by *factors*: each dimension of the source is a product of factors, and
each dimension of the result is a sequence of them. Reshape splits factors and regroups them,
Transpose reorders groups:

    [B, S, 768]  Reshape  [B, S, 12, 64]  Transpose 0213  [B, 12, S, 64]
    (B)(S)(h d)           (B)(S)(h)(d)                    (B)(h)(S)(d)

A kernel can read the result straight from the source when every dimension of the result has one
stride there: its factors are neighbours in the source, in order.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.query import Dims, dims, is_op, producer

Dim = int | str | None

_BATCH_AXES = 2
"""Axes of a batch that kernels of products walk."""

MOST_AXES = 5
"""That a kernel walks (`wpk.problems.Elementwise`): what moves more blocks of elements takes two copies."""


@dataclass(frozen=True)
class Factor:
    """Part of one dimension of the source.

    Attributes:
        axis: The dimension.
        size: Elements; a symbol where the dimension is free.
        step: Elements of that dimension between neighbours of this factor.
    """

    axis: int
    size: int | str
    step: int = 1


Groups = tuple[tuple[Factor, ...], ...]


@dataclass(frozen=True)
class Views:
    """A chain of views from ``source`` to ``target``, as the factors of each target dimension."""

    source: tuple[Dim, ...]
    target: tuple[Dim, ...]
    groups: Groups

    def blocks(self, cut_from: int | None = None) -> list[list[Factor]]:
        """Maximal runs of factors that are neighbours in the source, in the target's order.

        Args:
            cut_from: The dimension of the target from which on each one begins a run; by default none does.
        """
        merged = len(self.groups) if cut_from is None else cut_from
        front = [factor for group in self.groups[:merged] for factor in group]
        return self._runs([front, *self.groups[merged:]])

    def _runs(self, parts: Sequence[Sequence[Factor]]) -> list[list[Factor]]:
        runs: list[list[Factor]] = []
        for part in parts:
            for index, factor in enumerate(part):
                if index and _adjacent(runs[-1][-1], factor, self.source):
                    runs[-1].append(factor)
                else:
                    runs.append([factor])
        return runs

    def moves(self) -> bool:
        """Tell whether elements change their order in memory."""
        return len(self.blocks()) > 1

    def why_too_many(self) -> str | None:
        """Say why no kernel reads or writes all of it in place, whatever the strides."""
        count = len(self.blocks())
        return (
            f"{count} blocks change places, kernels have {MOST_AXES} axes"
            if count > MOST_AXES
            else None
        )

    def reads_strided(self) -> bool:
        """Tell whether each target dimension has one stride in the source."""
        return all(_one_stride(group, self.source) for group in self.groups)

    def foldings(self) -> set[int] | None:
        """Where a batch of matrices, the last two dimensions of the target, can be parted in two with a stride each.

        Kernels of products walk two axes in front of a matrix (`wpk.lowering.batch_axes`).

        Returns:
            How many of the batch's dimensions go into the first of the two; None where any number does, since there
            are no more than two, or where sizes are free.
        """
        sizes = [size for size in self.target if isinstance(size, int)]
        batch = sizes[:-2]
        if len(batch) <= _BATCH_AXES or len(sizes) < len(self.target):
            return None
        return {
            place
            for place in range(1, len(batch))
            if self._parts_at((prod(batch[:place]), prod(batch[place:]), *sizes[-2:]))
        }

    def joins_rows(self) -> bool:
        """Whether all dimensions but the last have one stride together."""
        sizes = [size for size in self.target if isinstance(size, int)]
        return len(sizes) == len(self.target) and self._parts_at((prod(sizes[:-1]), sizes[-1]))

    def _parts_at(self, shape: Sequence[int]) -> bool:
        groups = regroup(self.groups, list(shape))
        return groups is not None and all(_one_stride(group, self.source) for group in groups)

    def writes_strided(self) -> bool:
        """Tell whether each source dimension has one stride in the target."""
        order = [factor for group in self.groups for factor in group]
        position = {(f.axis, f.step): index for index, f in enumerate(order)}
        for axis in range(len(self.source)):
            own = sorted((f for f in order if f.axis == axis), key=lambda f: -f.step)
            places = [position[(f.axis, f.step)] for f in own]
            if any(b != a + 1 for a, b in itertools.pairwise(places)):
                return False
        return True


def views_before(tensor: gs.Tensor) -> list[gs.Node]:
    """Return the views that make ``tensor``, first to last."""
    chain: list[gs.Node] = []
    maker = producer(tensor)
    while maker is not None and is_op(maker, *VIEWS):
        chain.insert(0, maker)
        maker = producer(maker.inputs[0])
    return chain


def viewed(tensor: gs.Tensor) -> gs.Tensor:
    """Return what the views before ``tensor`` start from: itself where there are none."""
    chain = views_before(tensor)
    return chain[0].inputs[0] if chain else tensor


def trace(source: gs.Tensor, chain: Sequence[gs.Node]) -> Views | None:
    """Describe ``chain``, which starts at ``source``; None when a shape is not known well enough, or holds nothing."""
    shape = dims(source)
    if shape is None or 0 in shape:
        return None
    groups: Groups | None = tuple(
        () if size == 1 else (Factor(axis, size),)
        for axis, size in enumerate(shape)
        if size is not None
    )
    if groups is None or len(groups) != len(shape):
        return None
    for node in chain:
        groups = _step(node, groups)
        if groups is None:
            return None
    target = dims(chain[-1].outputs[0]) if chain else shape
    return None if target is None else Views(tuple(shape), tuple(target), groups)


def _step(node: gs.Node, groups: Groups) -> Groups | None:
    if is_op(node, "Transpose"):
        perm = node.attrs.get("perm", list(range(len(groups)))[::-1])
        return tuple(groups[axis] for axis in perm)
    shape = dims(node.outputs[0])
    return None if shape is None else regroup(groups, shape)


def regroup(groups: Groups, shape: Dims) -> Groups | None:
    """Spread the factors of ``groups``, in order, over dimensions of sizes ``shape``.

    One dimension may be unknown: it gets what the others leave.
    """
    factors = [factor for group in groups for factor in group]
    unknown = [axis for axis, size in enumerate(shape) if size is None]
    if len(unknown) > 1:
        return None
    split = unknown[0] if unknown else len(shape)
    front: list[tuple[Factor, ...]] = []
    for size in shape[:split]:
        taken = _take(factors, size, last=False)
        if taken is None:
            return None
        front.append(taken)
    back: list[tuple[Factor, ...]] = []
    for size in reversed(shape[split + 1 :]):
        taken = _take(factors, size, last=True)
        if taken is None:
            return None
        back.insert(0, taken)
    if unknown:
        return (*front, tuple(factors), *back)
    return None if factors else (*front, *back)


def _take(factors: list[Factor], size: Dim, *, last: bool) -> tuple[Factor, ...] | None:
    """Take factors of product ``size`` off one end of ``factors``, splitting one where needed."""
    end = -1 if last else 0
    if isinstance(size, str):
        if factors and factors[end].size == size:
            return (factors.pop(end),)
        return None
    taken: list[Factor] = []
    left = int(size or 1)
    while left > 1:
        if not factors or not isinstance(factors[end].size, int):
            return None
        factor = factors.pop(end)
        have = int(factor.size)
        if left % have == 0:
            part, left = factor, left // have
        elif have % left == 0:
            part, rest = _split(factor, have // left if last else left, last=last)
            factors.insert(len(factors) if last else 0, rest)
            left = 1
        else:
            return None
        taken.insert(0 if last else len(taken), part)
    return tuple(taken)


def _split(factor: Factor, outer: int, *, last: bool) -> tuple[Factor, Factor]:
    """Split into ``outer`` times the rest; the part to take comes first."""
    inner = int(factor.size) // outer
    high = replace(factor, size=outer, step=factor.step * inner)
    low = replace(factor, size=inner)
    return (low, high) if last else (high, low)


def _adjacent(high: Factor, low: Factor, source: Sequence[Dim]) -> bool:
    """Whether stepping ``high`` once is the same as stepping through all of ``low``."""
    if high.axis == low.axis:
        return isinstance(low.size, int) and high.step == low.step * low.size
    between = source[high.axis + 1 : low.axis]
    ordered = high.step == 1 and high.axis < low.axis
    return ordered and all(size == 1 for size in between) and _outermost(low, source)


def _outermost(factor: Factor, source: Sequence[Dim]) -> bool:
    """Whether the factor reaches up to the whole of its dimension."""
    whole = source[factor.axis]
    if isinstance(whole, int) and isinstance(factor.size, int):
        return factor.size * factor.step == whole
    return factor.size == whole


def _one_stride(group: Sequence[Factor], source: Sequence[Dim]) -> bool:
    return all(_adjacent(a, b, source) for a, b in itertools.pairwise(group))
