"""The form of a model whose partition is nearest to a given one: which choices lead there, and which passes left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from wpk.errors import WpkError
from wpk.graph_passes import Site
from wpk.lowering.lowered_model import LoweredModel
from zoo.lowered_forms import OWN, Decisions
from zoo.operators import Partition, Work, works_of

MOST_LOWERED = 240
"""Forms of one model that are looked at."""

MOST_TOGETHER = 3
"""Choices that are decided otherwise, each a choice only behind the one before, until operators must be nearer."""


Lower = Callable[[Decisions], LoweredModel]
"""Lowers the model in a form."""


@dataclass(frozen=True)
class Tried:
    """A form that was lowered.

    Attributes:
        decisions: What makes it; keys that name no place of it are not among them.
        sites: Where there was a choice.
        rewriting: Names of the passes that rewrote anything.
        partition: Its operators.
        holders: What each node is computed in.
    """

    decisions: Decisions
    sites: tuple[Site, ...]
    rewriting: frozenset[str]
    partition: Partition
    holders: dict[str, Work]

    def difference(self, given: Partition) -> tuple[Partition, Partition]:
        """Operators that only the given partition has, and those that only this form has."""
        return given - self.partition, self.partition - given

    def distance(self, given: Partition) -> int:
        """How many these are."""
        return sum(side.total() for side in self.difference(given))


Choices = Callable[[Tried], Iterator[Decisions]]
"""What may be decided at once, given the form in which it would be decided otherwise."""


def nearest(
    lower: Lower,
    given: Partition,
    newer: Collection[str] = (),
    begin: Decisions = OWN,
) -> Tried:
    """The form with the fewest operators in which it differs from a partition, of those that greedy steps lead to.

    Of forms that are equally near it is the one that leaves out the fewest passes, and of these the one that changes the fewest
    sites. The search begins with the nearest of a few: the passes' own form, the one without any newer pass, and the one that
    was near before. Of the choices over operators that differ whole kinds are decided otherwise first (sites of a pass in the
    same words), then newer passes are left out one by one, then single sites are decided otherwise; last, whatever is not needed is
    taken back, pass by pass and site by site. This goes on until nothing is nearer, or `MOST_LOWERED` forms were looked at.
    A form that passes or lowering refuse is none.

    Args:
        lower: Lowers the model in a form.
        given: The partition that is looked for.
        newer: Names of the passes that may be left out.
        begin: The form that was near before passes changed.
    """
    return _Search(lower, given, frozenset(newer)).result(begin)


class _Search:
    def __init__(self, lower: Lower, given: Partition, newer: frozenset[str]) -> None:
        self._lower, self._given, self._newer = lower, given, newer
        self._known: dict[Decisions, Tried | None] = {}
        self._left = MOST_LOWERED

    def result(self, begin: Decisions) -> Tried:
        best = min(self._beginnings(begin), key=self._rank)
        while True:
            nearer = best
            for choices in (self._kinds, self._passes, self._classes, _decided):
                nearer = self._nearer(nearer, choices)
            if nearer is best:
                return best
            best = nearer

    def _rank(self, form: Tried) -> tuple[int, int, int]:
        """Less for the form that is preferred."""
        decisions = form.decisions
        return form.distance(self._given), len(decisions.skipped), len(decisions.changed)

    def _beginnings(self, begin: Decisions) -> Iterator[Tried]:
        """The passes' own form, whatever lowering says to it, then those that are no candidates where it refuses them."""
        self._known[OWN] = own = tried(self._lower(OWN))
        yield own
        without = self._without_newer(own)
        for skipped in (frozenset[str](), begin.skipped, without.decisions.skipped):
            for changed in (frozenset[str](), begin.changed):
                form = self._tried(Decisions(changed, skipped))
                if form is not None:
                    yield form

    def _without_newer(self, form: Tried) -> Tried:
        """Leave out newer passes until none of them rewrites anything, or lowering refuses what is left.

        Whatever rewrites nothing changes nothing: the form is that of all newer passes left out.
        """
        skipped = frozenset[str]()
        while not (more := form.rewriting & self._newer) <= skipped:
            skipped |= more
            without = self._tried(Decisions(skipped=skipped))
            if without is None:
                return form
            form = without
        return form

    def _nearer(self, best: Tried, choices: Choices) -> Tried:
        """Decide one choice after the other otherwise, each that makes the form a preferred one, until none does."""
        while True:
            begun = best
            for decisions in choices(best):
                form = self._tried(best.decisions ^ decisions)
                if form is not None and self._rank(form) < self._rank(best):
                    best = form
            if best is begun:
                return best

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

    def _kinds(self, form: Tried) -> Iterator[Decisions]:
        """Sites of one pass in the same words, all together; then those of two such kinds.

        What is parted may have to be joined otherwise before it is like anything that the other partition has.
        """
        sites: dict[tuple[str, str], set[str]] = {}
        for site in self._concerned(form):
            sites.setdefault((site.pass_name, site.words), set()).add(site.key)
        kinds = [Decisions(frozenset(keys)) for keys in sites.values()]
        yield from kinds
        yield from (one ^ other for one, other in combinations(kinds, 2))

    def _passes(self, form: Tried) -> Iterator[Decisions]:
        """Newer passes that rewrite something: none, where no operator differs."""
        names = self._newer & form.rewriting if form.distance(self._given) else frozenset[str]()
        return _skips(names)

    def _classes(self, form: Tried) -> Iterator[Decisions]:
        """Sites of one key; where operators are others without being nearer, also with what is a choice only then."""
        for decisions in _changes(site.key for site in self._concerned(form)):
            yield decisions
            other = self._tried(form.decisions ^ decisions)
            if other is not None and other.partition != form.partition:
                yield from self._further(form, other, MOST_TOGETHER - 1)

    def _further(self, form: Tried, other: Tried, most: int) -> Iterator[Decisions]:
        """What leads from a form to another one that is as near, with one to ``most`` choices that only the other one has."""
        if not most or other.distance(self._given) != form.distance(self._given):
            return
        until = form.decisions ^ other.decisions
        known = until.changed.union(site.key for site in form.sites)
        for key in dict.fromkeys(site.key for site in other.sites if site.key not in known):
            yield (decisions := until ^ Decisions(frozenset([key])))
            further = self._tried(form.decisions ^ decisions)
            if further is not None:
                yield from self._further(form, further, most - 1)

    def _tried(self, decisions: Decisions) -> Tried | None:
        """The form that is made so; None where there is none, and where no more are looked at."""
        if decisions not in self._known:
            if not self._left:
                return None
            self._left -= 1
            try:
                form = tried(self._lower(decisions))
            except WpkError:
                self._known[decisions] = None
            else:
                self._known[decisions] = self._known[form.decisions] = form
        return self._known[decisions]


def _decided(form: Tried) -> Iterator[Decisions]:
    """What is decided already, one by one: whether it is needed."""
    yield from _skips(form.decisions.skipped)
    yield from _changes(sorted(form.decisions.changed))


def _skips(names: Iterable[str]) -> Iterator[Decisions]:
    return (Decisions(skipped=frozenset([name])) for name in sorted(names))


def _changes(keys: Iterable[str]) -> Iterator[Decisions]:
    return (Decisions(frozenset([key])) for key in keys)


def tried(lowered: LoweredModel) -> Tried:
    """A lowered model as a form that was tried."""
    works = list(works_of(lowered.program))
    placed = lowered.source.changed & {site.key for site in lowered.sites}
    return Tried(
        Decisions(placed, frozenset(lowered.source.skip)),
        lowered.sites,
        frozenset(record.name for record in lowered.passes if record.rewritten),
        Partition(work for work, _ in works),
        {node: work for work, operator in works for node in operator.nodes},
    )


def words(partition: Partition) -> list[str]:
    """A partition's operators as text, ascending."""
    return [f"{count} times {work}" for work, count in sorted(partition.items())]
