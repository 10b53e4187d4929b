"""Copy in two steps what moves more axes than a kernel has.

    Transpose(x, perm)  ->  Transpose(Transpose(x, first), rest)

Axes that stay side by side count as one, and those of one element not at all; a kernel walks five. The
first step moves one block of axes, so that it has at most four. No operator takes such a Transpose inside
(`wpk.graph_passes.fusion.absorb`). Windows that are cut out of images or
videos need this: transformers with shifted windows, and grids of attention.
"""

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import Dims, dims
from wpk.graph_passes.movement.chains.reshape_chains import permutation
from wpk.graph_passes.movement.chains.views import MOST_AXES


class _Steps(NamedTuple):
    """A Transpose, and the two that it becomes."""

    node: gs.Node
    first: list[int]
    rest: list[int]


class TransposeParts(Rule[_Steps]):
    """Divide Transposes; runs last, since other passes would merge them again."""

    name = "transpose-parts"
    ops = ("Transpose",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Steps | Refusal | None:
        """Match a Transpose of too many axes."""
        del graph
        shape, perm = dims(node.inputs[0]), permutation(node)
        if shape is None or perm is None or _groups(perm, shape) <= MOST_AXES:
            return None
        if perm[0] and not isinstance(shape[0], int):
            return refusal(node, f"it takes the free dimension of '{node.inputs[0].name}' away")
        moves = [(first, _rest(perm, first)) for first in _block_moves(perm, shape)]
        first, rest = min(moves, key=lambda each: _groups(each[1], [shape[a] for a in each[0]]))
        return _Steps(node, first, rest)

    def rewrite(self, editor: GraphEditor, match: _Steps) -> None:
        """Write the first step before the node, which makes the rest."""
        x = match.node.inputs[0]
        shape = [x.shape[axis] for axis in match.first]
        name = f"{match.node.name}_first"
        moved = editor.add(
            "Transpose", [x], like=x, shape=shape, name=name, attrs={"perm": match.first}
        )
        match.node.inputs = [moved]
        match.node.attrs["perm"] = match.rest


def _moving(perm: list[int], shape: Dims) -> list[list[int]]:
    """The axes that have more than one element, in the new order, those that stay side by side together."""
    there = [axis for axis in range(len(shape)) if shape[axis] != 1]
    follows = dict(itertools.pairwise(there))
    groups: list[list[int]] = []
    for axis in (each for each in perm if shape[each] != 1):
        if groups and follows.get(groups[-1][-1]) == axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def _groups(perm: list[int], shape: Dims) -> int:
    """How many axes a copy has."""
    return len(_moving(perm, shape))


def _block_moves(perm: list[int], shape: Dims) -> Iterator[list[int]]:
    """Orders in which one block of neighbouring groups changed its place with the block before it."""
    groups = sorted(_moving(perm, shape))
    ones = [axis for axis in range(len(shape)) if shape[axis] == 1]
    start = 0 if perm[0] else 1
    for a in range(start, len(groups)):
        for b in range(a + 1, len(groups)):
            for c in range(b + 1, len(groups) + 1):
                order = [*groups[:a], *groups[b:c], *groups[a:b], *groups[c:]]
                yield [*(axis for group in order for axis in group), *ones]


def _rest(perm: list[int], first: list[int]) -> list[int]:
    """What is left to do after the first step."""
    return [first.index(axis) for axis in perm]
