"""The form of a model whose partition is nearest to a given one: which choices of the passes lead there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from wpk.errors import WpkError
from wpk.graph_passes import Site
from wpk.lowering.lowered_model import LoweredModel
from zoo.operators import Partition, Work, works_of

MOST_LOWERED = 120
"""Forms of one model that are looked at."""

Lower = Callable[[frozenset[str]], LoweredModel]
"""Lowers the model with the sites of these keys decided otherwise."""

Choices = Callable[[Iterable[Site]], Iterator[frozenset[str]]]
"""What is decided at once, given a site of each class."""


@dataclass(frozen=True)
class Tried:
    """A form that was lowered.

    Attributes:
        changed: Its keys.
        sites: Where there was a choice.
        partition: Its operators.
        holders: What each node is computed in.
    """

    changed: frozenset[str]
    sites: tuple[Site, ...]
    partition: Partition
    holders: dict[str, Work]

    def difference(self, given: Partition) -> tuple[Partition, Partition]:
        """Operators that only the given partition has, and those that only this form has."""
        return given - self.partition, self.partition - given

    def distance(self, given: Partition) -> int:
        """How many these are."""
        return sum(side.total() for side in self.difference(given))


def nearest(lower: Lower, given: Partition, begin: frozenset[str] = frozenset()) -> Tried:
    """The form with the fewest operators in which it differs from a partition, of those that greedy steps lead to.

    Of the choices over operators that differ, whole kinds are decided otherwise first (sites of a pass in the same words), then
    single ones, as long as `MOST_LOWERED` allows; keys that name no place of the form any more are left out.

    Args:
        lower: Lowers the model in a form.
        given: The partition that is looked for.
        begin: Keys of a form that was near before passes changed, to begin with if it still is nearer than the passes' own.
    """
    return _Search(lower, given).result(begin)


class _Search:
    def __init__(self, lower: Lower, given: Partition) -> None:
        self._lower, self._given = lower, given
        self._known: dict[frozenset[str], Tried | None] = {}

    def result(self, begin: frozenset[str]) -> Tried:
        found = [form for keys in (frozenset[str](), begin) if (form := self._tried(keys))]
        best = min(found, key=lambda form: form.distance(self._given))
        while True:
            nearer = self._decided(self._decided(best, _kinds), _classes)
            if nearer is best:
                return self._without_lost(best)
            best = nearer

    def _decided(self, best: Tried, choices: Choices) -> Tried:
        """Decide one choice after the other otherwise, each that brings the form nearer, until none does."""
        while True:
            begun = best
            for keys in choices(self._concerned(best)):
                tried = self._tried(best.changed ^ keys)
                if tried is not None and tried.distance(self._given) < best.distance(self._given):
                    best = tried
            if best is begun:
                return best

    def _without_lost(self, best: Tried) -> Tried:
        """Leave out keys that name no place of the form."""
        kept = best.changed & {site.key for site in best.sites}
        return tried(self._lower(kept)) if kept != best.changed else best

    def _concerned(self, form: Tried) -> list[Site]:
        """A site of each class that decides over an operator which differs, or over a node that a later pass replaced.

        Where the other partition only has more operators, any may have to be parted.
        """
        _, own = form.difference(self._given)
        own = own or form.partition
        found = {
            site.key: site
            for site in form.sites
            if any(form.holders.get(node) in own or node not in form.holders for node in site.nodes)
        }
        return list(found.values())[::-1] if form.distance(self._given) else []

    def _tried(self, changed: frozenset[str]) -> Tried | None:
        if changed not in self._known:
            if len(self._known) >= MOST_LOWERED:
                return None
            try:
                self._known[changed] = tried(self._lower(changed))
            except WpkError:
                self._known[changed] = None
        return self._known[changed]


def tried(lowered: LoweredModel) -> Tried:
    """A lowered model as a form that was tried."""
    works = list(works_of(lowered.program))
    holders = {node: work for work, operator in works for node in operator.nodes}
    partition = Partition(work for work, _ in works)
    return Tried(lowered.source.changed, lowered.sites, partition, holders)


def _kinds(sites: Iterable[Site]) -> Iterator[frozenset[str]]:
    """Sites of one pass in the same words, all together."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for site in sites:
        kinds.setdefault((site.pass_name, site.words), set()).add(site.key)
    yield from (frozenset(keys) for keys in kinds.values())


def _classes(sites: Iterable[Site]) -> Iterator[frozenset[str]]:
    """Sites of one key."""
    yield from (frozenset([site.key]) for site in sites)


def words(partition: Partition) -> list[str]:
    """A partition's operators as text, ascending."""
    return [f"{count} times {work}" for work, count in sorted(partition.items())]
