"""The search for the best partition of a model: DeepCuts' algorithm 1, begun from the passes' own partition.

The algorithm merges two consecutive subsets wherever that is faster, remembers the time of each subset, and takes
the best partition in the end. Passes merge by rule all that can be merged, so here it goes the other way: every
merge is a site that can be taken back, alone first. Those that are faster without it are taken back
together, the one that gains most first, each only if the partition that it then makes is faster still. A
new partition has new consecutive subsets (an addition that one product no longer computes may be another's), and
these are tried in the next round. Equal sites are one decision, equal partitions are compared once, and what the
models rule out is not tried (`wpk.search.forms.times`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace

from wpk.errors import ScheduleError
from wpk.graph_passes import every_site, pass_of
from wpk.plan import FormOutcome, TriedForm
from wpk.search.forms.form import Form, Forms, RefusedFormError, difference, otherwise
from wpk.search.forms.judges import ByModels, Judge, Proposal
from wpk.search.forms.pairs import MOST_PAIRS, neighbours
from wpk.search.forms.times import Comparison, Estimate, is_hopeless, predicted, promise

MAX_ROUNDS = 4
"""Partitions that are built upon one after the other; on the networks of the tests two suffice."""


@dataclass(frozen=True)
class Partitioning:
    """The outcome of a search.

    Attributes:
        best: The best partition.
        tried: All that were looked at, in order.
        partitions: How many different ones were compared, the usual one among them.
    """

    best: Form
    tried: tuple[TriedForm, ...]
    partitions: int


def best_partition(
    forms: Forms,
    estimate: Estimate,
    judge: Judge,
    keys: Sequence[str] | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Partitioning:
    """Search for the partition whose operators take the least time together.

    Args:
        forms: Lower the model.
        estimate: Predicted seconds of a problem; raises ScheduleError where no template computes it.
        judge: Decides between forms.
        keys: The sites of the form that it begins with, in the order in which they are looked at; by default in the
            graph's.
        is_over: Whether no further form is to be looked at.
    """
    search = _Search(forms, estimate, judge, is_over)
    best, keys = forms.root, list(forms.root.sites if keys is None else keys)
    for _ in range(MAX_ROUNDS):
        proposals = search.proposals(best, keys)
        judge.learn(proposals)
        better, undecided = search.accumulated(best, proposals)
        keys = [key for key in better.sites if key not in search.looked_at] + undecided
        if better is best or not keys:
            best = better
            break
        best = better
    return Partitioning(best, tuple(search.tried.values()), len(search.compared))


def proposed(
    forms: Forms,
    estimate: Estimate,
    keys: Sequence[str],
    is_over: Callable[[], bool] = lambda: False,
) -> list[Proposal]:
    """Return the forms beside the first that models do not rule out, the most promising first (`promise`)."""
    search = _Search(forms, estimate, ByModels(estimate), is_over)
    return search.proposals(forms.root, keys)


def _singles_first(pair: tuple[float, Proposal]) -> tuple[bool, float]:
    """Classes of sites by falling gain, and then whole passes: what they would undo is decided by then."""
    gain, proposal = pair
    return proposal.keys[0] == every_site(pass_of(proposal.keys[0])), -gain


@dataclass
class _Search:
    """What a search has seen."""

    forms: Forms
    estimate: Estimate
    judge: Judge
    is_over: Callable[[], bool]
    tried: dict[tuple[str | frozenset[str], ...], TriedForm] = field(default_factory=dict)
    looked_at: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.compared = {self.forms.root.identity}
        self.ruled_out = dict[str, FormOutcome]()

    def proposals(self, base: Form, keys: Collection[str]) -> list[Proposal]:
        """Take each class of sites back alone; return what models do not rule out, the most promising first.

        Classes of a pass are not looked at where models rule out the model without the whole pass, or where that is
        the same.
        """
        self.forms.expect(base, [(key,) for key in keys if key != every_site(pass_of(key))])
        found = [self._proposal(base, key) for key in keys]
        proposals = [each for each in found if each is not None]
        proposals += self._pairs(base, keys, proposals)
        return sorted(proposals, key=lambda each: promise(each.by_models), reverse=True)

    def _pairs(
        self, base: Form, keys: Collection[str], proposals: Sequence[Proposal]
    ) -> list[Proposal]:
        """Pairs of neighbours, one of them proposed alone, that gain by the models, and more than each of both."""
        alone = {each.keys[0] for each in proposals}
        gains = {
            key: tried.predicted_usual - tried.predicted
            for key in keys
            if (tried := self.tried.get((key, base.changed))) is not None
            and tried.predicted is not None
            and tried.predicted_usual is not None
        }
        pairs = [pair for pair in neighbours(base, gains) if not alone.isdisjoint(pair)]
        pairs.sort(key=lambda pair: -sum(gains[key] for key in pair))
        found, pairs = [], pairs[:MOST_PAIRS]
        self.forms.expect(base, pairs)
        for pair in pairs:
            if self.is_over() and not self.forms.has(otherwise(base, pair)):
                continue
            proposal = self._pair(base, pair, max(0.0, *(gains[key] for key in pair)))
            if proposal is not None:
                found.append(proposal)
        return found

    def _pair(self, base: Form, pair: tuple[str, str], beyond: float) -> Proposal | None:
        """A pair, if it gains more than so many seconds by the models; no other is noted."""
        try:
            form = self.forms.beside(base, pair)
            between = difference(base, form)
            by_models = predicted(between, self.estimate)
        except (RefusedFormError, ScheduleError):
            return None
        if by_models.gain <= beyond or form.identity in self.compared:
            return None
        self.compared.add(form.identity)
        self._note(base, pair, FormOutcome.NOT_MEASURED, by_models)
        return Proposal(pair, form, between, by_models)

    def _proposal(self, base: Form, key: str) -> Proposal | None:
        self.looked_at.add(key)
        whole = self.ruled_out.get(pass_of(key))
        if whole is not None:
            self._note(base, (key,), whole, reason="so is its whole pass")
            return None
        if self.is_over() and not self.forms.has(otherwise(base, (key,))):
            self._note(base, (key,), FormOutcome.NOT_MEASURED)
            return None
        try:
            form = self.forms.beside(base, (key,))
            between = difference(base, form)
            by_models = predicted(between, self.estimate)
        except (RefusedFormError, ScheduleError) as refused:
            self._note(base, (key,), FormOutcome.REFUSED, reason=refused.what.splitlines()[0])
            return None
        outcome = FormOutcome.NOT_MEASURED
        if form.identity in self.compared:
            outcome = FormOutcome.EQUAL
        elif is_hopeless(by_models):
            outcome = FormOutcome.HOPELESS
        self.compared.add(form.identity)
        self._note(base, (key,), outcome, by_models)
        if outcome is not FormOutcome.NOT_MEASURED and key == every_site(pass_of(key)):
            self.ruled_out[pass_of(key)] = outcome
        if outcome is not FormOutcome.NOT_MEASURED:
            return None
        return Proposal((key,), form, between, by_models)

    def accumulated(self, base: Form, proposals: Sequence[Proposal]) -> tuple[Form, list[str]]:
        """Take back together what is faster without; return also the sites that more must be known of."""
        faster: list[tuple[float, Proposal]] = []
        for each in proposals:
            comparison = self.judge.compare(each.between)
            if comparison is None:
                continue
            wins = self.judge.prefers(comparison)
            outcome = FormOutcome.TAKEN if wins else FormOutcome.SLOWER
            self._measured(base, each.keys, outcome, comparison)
            if wins:
                faster.append((comparison.gain, each))
        best, undecided = base, list[str]()
        for _, each in sorted(faster, key=_singles_first):
            outcome, best = self._joined(best, base, each.keys)
            if outcome is FormOutcome.NOT_MEASURED:
                undecided += each.keys
            entry = self.tried[(*each.keys, base.changed)]
            self.tried[(*each.keys, base.changed)] = replace(entry, outcome=outcome)
        return best, list(dict.fromkeys(undecided))

    def _joined(self, best: Form, base: Form, keys: tuple[str, ...]) -> tuple[FormOutcome, Form]:
        """The best form with more decided otherwise than in the form that it is built upon, if that is faster."""
        try:
            form = self.forms.of(otherwise(best, keys, than=base))
        except RefusedFormError:
            return FormOutcome.REFUSED, best
        if form.identity == best.identity:
            return FormOutcome.EQUAL, best
        comparison = self.judge.compare(difference(best, form))
        if comparison is None:
            return FormOutcome.NOT_MEASURED, best
        self.compared.add(form.identity)
        if not self.judge.prefers(comparison):
            return FormOutcome.SLOWER, best
        return FormOutcome.TAKEN, form

    def _note(
        self,
        base: Form,
        keys: tuple[str, ...],
        outcome: FormOutcome,
        by_models: Comparison | None = None,
        reason: str = "",
    ) -> None:
        sites = [base.sites_of(key) for key in keys]
        self.tried[(*keys, base.changed)] = TriedForm(
            site=keys[0],
            also="".join(keys[1:]),
            usual=" and ".join(each[0].words for each in sites if each),
            places=sum(map(len, sites)),
            outcome=outcome,
            reason=reason,
            predicted_usual=None if by_models is None else by_models.usual,
            predicted=None if by_models is None else by_models.other,
            again=keys[0] in base.changed,
        )

    def _measured(
        self, base: Form, keys: tuple[str, ...], outcome: FormOutcome, comparison: Comparison
    ) -> None:
        entry = self.tried[(*keys, base.changed)]
        self.tried[(*keys, base.changed)] = replace(
            entry,
            outcome=outcome,
            measured_usual=comparison.usual,
            measured=comparison.other,
        )
