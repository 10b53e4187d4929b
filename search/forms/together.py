"""Several choices looked at in one lowering: where they lie apart, what each changes can be told from the others.

Lowering a form costs the same whatever it changes. So choices that decide over operators far from each other are
taken back together, and the operators that differ then are parted into regions: those that share a node, a value or a
buffer. A region in which nodes of one choice lie is what that choice changes. Where a region has several owners,
nothing is told of them, and each is lowered alone. What is told decides what is worth measuring, and no more: forms
that are measured or taken are lowered as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from wpk.lowering.program import Program
from wpk.problems import Problem

MOST_TOGETHER = 16
"""Choices that are looked at in one lowering."""

Keys = tuple[str, ...]
"""Of the sites of one choice: one class, or two that meet."""


@dataclass(frozen=True)
class Part:
    """An operator of a form, as far as neighbours are told from others by it.

    Attributes:
        nodes: What it computes, by name.
        problem: The description of its work.
        touched: Values that it reads and writes, and the buffers that these lie in.
    """

    nodes: tuple[str, ...]
    problem: Problem
    touched: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Change:
    """What a choice does to a form's operators.

    Attributes:
        gone: Problems that fewer operators have, each as often as there are fewer of it.
        new: Problems that more operators have, likewise.
    """

    gone: Counter[Problem]
    new: Counter[Problem]


def parts_of(program: Program) -> tuple[Part, ...]:
    """Return the operators of a lowered model; those that ONNX Runtime executes are among them."""
    values = program.values
    parts = []
    for each in program.operators:
        own = [values[name] for name in (*each.inputs, *each.outputs) if name in values]
        touched = {("value", v.name) for v in own} | {("buffer", v.buffer) for v in own}
        parts.append(Part(each.nodes, each.problem, frozenset(touched)))
    return tuple(parts)


def lying_apart(
    around: Neighbours, nodes: Mapping[Keys, Collection[str]], most: int = MOST_TOGETHER
) -> list[Keys]:
    """Return the first of some choices, and of those behind it that have no operator and no neighbour in common.

    Args:
        around: The operators of the form that the choices are of.
        nodes: What each choice decides over, in the order in which they are wanted.
        most: Number of choices.
    """
    reached, chosen = set[int](), list[Keys]()
    for keys, own in nodes.items():
        near = around.of(own)
        if near and near.isdisjoint(reached):
            reached |= near
            chosen.append(keys)
        elif not chosen:
            return [keys]
        if len(chosen) == most:
            break
    return chosen


def told_apart(
    before: Sequence[Part], after: Sequence[Part], nodes: Mapping[Keys, Collection[str]]
) -> dict[Keys, Change]:
    """Return what each choice changed, as far as that can be told.

    Args:
        before: A form's operators.
        after: The operators where all of the choices are decided otherwise.
        nodes: What each choice decides over.
    """
    regions = _regions(_only_in(before, after), _only_in(after, before))
    owners = [
        [k for k, own in nodes.items() if not region.holds.isdisjoint(own)] for region in regions
    ]
    if not all(owners):
        return {}
    unsure = {keys for each in owners if len(each) > 1 for keys in each}
    held = {node for part in before for node in part.nodes}
    sure = [k for k, own in nodes.items() if k not in unsure and not held.isdisjoint(own)]
    changes = {keys: Change(Counter(), Counter()) for keys in sure}
    for region, (owner, *_) in zip(regions, owners, strict=True):
        if owner in changes:
            changes[owner].gone.update(region.gone)
            changes[owner].new.update(region.new)
    return {k: Change(each.gone - each.new, each.new - each.gone) for k, each in changes.items()}


class Neighbours:
    """Which operators hold a node, and which are next to these."""

    def __init__(self, parts: Sequence[Part]) -> None:
        """Find out, once for a form."""
        self._parts = parts
        self._holders = _places((place, each.nodes) for place, each in enumerate(parts))
        self._touching = _places((place, each.touched) for place, each in enumerate(parts))

    def of(self, nodes: Collection[str]) -> set[int]:
        """Places of those that hold some nodes, and of their neighbours; none where one of the nodes has no holder."""
        if not all(node in self._holders for node in nodes):
            return set()
        holding = {place for node in nodes for place in self._holders[node]}
        touched = {thing for place in holding for thing in self._parts[place].touched}
        return holding | {place for thing in touched for place in self._touching[thing]}


def _places(things: Iterable[tuple[int, Iterable[object]]]) -> dict[object, list[int]]:
    places: dict[object, list[int]] = {}
    for place, own in things:
        for thing in own:
            places.setdefault(thing, []).append(place)
    return places


def _only_in(parts: Sequence[Part], others: Sequence[Part]) -> list[Part]:
    """The operators that have no equal among others."""
    there = Counter(map(_identity, others))
    found = []
    for each in parts:
        identity = _identity(each)
        if there[identity]:
            there[identity] -= 1
        else:
            found.append(each)
    return found


def _identity(part: Part) -> object:
    """The nodes that an operator computes, and how; of a copy, which computes none, what it touches."""
    return part.nodes or part.touched, part.problem


@dataclass
class _Region:
    """Operators that are connected."""

    holds: set[str]
    gone: list[Problem]
    new: list[Problem]


def _regions(gone: Sequence[Part], new: Sequence[Part]) -> list[_Region]:
    """Part operators into those that are connected by nodes or values."""
    both = [*gone, *new]
    root = list(range(len(both)))

    def find(place: int) -> int:
        while root[place] != place:
            root[place] = place = root[root[place]]
        return place

    for places in _places(_connecting(both)).values():
        for place in places[1:]:
            root[find(place)] = find(places[0])
    regions: dict[int, _Region] = {}
    for place, each in enumerate(both):
        region = regions.setdefault(find(place), _Region(set(), [], []))
        region.holds.update(each.nodes)
        (region.gone if place < len(gone) else region.new).append(each.problem)
    return list(regions.values())


def _connecting(parts: Sequence[Part]) -> Iterator[tuple[int, Iterable[object]]]:
    for place, each in enumerate(parts):
        yield place, (*each.nodes, *each.touched)
