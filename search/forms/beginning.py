"""The form that tuning begins with: what the models can say without measuring is said before.

Passes join by rule. A choice that comes up again and again in a network, at one size or at several (a normalisation
in front of every product), is one kind: all of its classes are decided otherwise in one lowering, in which each class is
told from the others where they lie apart. What is faster so by estimates is taken back in the form that tuning begins with:
a class by what it gains itself, those that cannot be told apart by what they gain together. What is only joined otherwise where
it is taken back (a normalisation in a product that reads moments, else in one that takes them itself) is taken back
further, as long as there is such a choice: only behind all of them may it be faster. Whatever was decided so is
tried the other way round by the search that follows (`wpk.search.forms.partition`), and the passes' own form is among the
whole engines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from wpk.errors import ScheduleError
from wpk.graph_passes import Site
from wpk.plan import FormOutcome, TriedForm
from wpk.search.forms.form import Form, Forms, RefusedFormError, difference, otherwise
from wpk.search.forms.times import Comparison, Estimate, is_better, predicted

Keys = tuple[str, ...]

AS_FORETOLD = 0.9
"""The part of what its choices gain alone that a form must gain, or else it is put together step by step."""


@dataclass(frozen=True)
class Beginning:
    """The form that tuning begins with.

    Attributes:
        form: The form, lowered as it is.
        tried: The choices that are decided otherwise in it than passes do, with what they gain alone.
        looked_at: Forms that were looked at.
    """

    form: Form
    tried: tuple[TriedForm, ...] = ()
    looked_at: int = 0


def beginning(
    forms: Forms,
    estimate: Estimate,
    kinds: Iterable[Keys],
    is_over: Callable[[], bool] = lambda: False,
) -> Beginning:
    """Return the form with the least estimates of those that kinds of choices make, alone and together.

    Args:
        forms: Lower the model; their root is the passes' own form.
        estimate: Predicted seconds of a problem; raises ScheduleError where no template computes it.
        kinds: Keys of the choices of each kind, in the order in which they are looked at.
        is_over: Whether no further form is to be looked at.
    """
    return _Beginning(forms, estimate, is_over).of(kinds)


@dataclass(frozen=True)
class _Gain:
    """Choices that are faster decided otherwise.

    Attributes:
        keys: Of the choices.
        by_models: What the models say of the operators that differ, of all of the choices together.
    """

    keys: Keys
    by_models: Comparison


@dataclass
class _Beginning:
    """What was looked at."""

    forms: Forms
    estimate: Estimate
    is_over: Callable[[], bool]
    looked_at: set[frozenset[str]] = field(default_factory=set)

    def of(self, kinds: Iterable[Keys]) -> Beginning:
        gains = list[_Gain]()
        for keys in kinds:
            if self.is_over():
                break
            gains += self._gains(keys)
        gains = list(_apart(sorted(gains, key=lambda each: -each.by_models.gain)))
        form, taken = self._together(gains) if gains else (self.forms.root, [])
        tried = tuple(self._tried(form, key, each) for each in taken for key in each.keys)
        return Beginning(form, tried, len(self.looked_at))

    def _gains(self, keys: Keys) -> list[_Gain]:
        """What of a kind is faster decided otherwise: classes, and together those that are not told apart."""
        root = self.forms.root
        form = self._form(root, keys)
        whole = self._compared(root, form)
        if form is None or whole is None:
            return []
        gains = self._told(keys, whole)
        further = self._further(keys, form)
        told = sum(each.by_models.gain for each in gains)
        return gains if further is None or further.by_models.gain <= told else [further]

    def _further(self, keys: Keys, form: Form) -> _Gain | None:
        """What a kind gains with choices that only show behind it, over the same nodes; None where nothing does."""
        root, best = self.forms.root, None
        while not self.is_over():
            behind = _behind(root, keys, form)
            at = self._form(root, (*keys, *behind)) if behind else None
            found = self._compared(root, at)
            if at is None or found is None:
                break
            keys, form = (*keys, *behind), at
            if is_better(found) and (best is None or found.gain > best.by_models.gain):
                best = _Gain(keys, found)
        return best

    def _told(self, keys: Keys, whole: Comparison) -> list[_Gain]:
        """The classes of a kind that gain, and together those that are not told apart."""
        root = self.forms.root
        alone = self._alone(keys) if len(keys) > 1 else {}
        rest = [key for key in keys if key not in alone]
        if len(keys) > 1 and rest and is_better(_less(whole, alone.values())):
            self.forms.expect(root, [(key,) for key in rest])
            for key in rest:
                if not self.is_over():
                    self._beside(key)
            alone = self._alone(keys)
            rest = [key for key in keys if key not in alone]
        gains = [_Gain((key,), each) for key, each in alone.items() if is_better(each)]
        together = _less(whole, alone.values())
        return [*gains, _Gain(tuple(rest), together)] if rest and is_better(together) else gains

    def _alone(self, keys: Keys) -> dict[str, Comparison]:
        """What single classes gain, where that is known."""
        known = [key for key in keys if self.forms.has(otherwise(self.forms.root, (key,)))]
        found = {key: self._compared(self.forms.root, self._beside(key)) for key in known}
        return {key: each for key, each in found.items() if each is not None}

    def _beside(self, key: str) -> Form | None:
        """The form in which one class is decided otherwise; None where there is none."""
        self.looked_at.add(otherwise(self.forms.root, (key,)))
        try:
            return self.forms.beside(self.forms.root, (key,))
        except RefusedFormError:
            return None

    def _together(self, gains: Sequence[_Gain]) -> tuple[Form, list[_Gain]]:
        """The form with all that gains, if it gains as much together; else with one after the other."""
        root = self.forms.root
        every = self._form(root, tuple(key for each in gains for key in each.keys))
        found = self._compared(root, every)
        foretold = sum(each.by_models.gain for each in gains)
        if every is not None and found is not None and found.gain >= AS_FORETOLD * foretold:
            return every, [*gains]
        best, taken = root, list[_Gain]()
        for each in gains:
            if self.is_over():
                break
            form = self._form(best, each.keys)
            step = self._compared(best, form)
            if form is not None and step is not None and is_better(step):
                best, taken = form, [*taken, each]
        return best, taken

    def _form(self, base: Form, keys: Keys) -> Form | None:
        """The form in which choices are decided otherwise than in another; None where there is none."""
        self.looked_at.add(otherwise(base, keys))
        try:
            return self.forms.all_of(base, keys)
        except RefusedFormError:
            return None

    def _compared(self, base: Form, form: Form | None) -> Comparison | None:
        """What the models say of the operators in which two forms differ; None where they cannot say."""
        if form is None:
            return None
        try:
            return predicted(difference(base, form), self.estimate)
        except ScheduleError:
            return None

    def _tried(self, form: Form, key: str, gain: _Gain) -> TriedForm:
        """What a plan says of a class that is decided otherwise; times are those of all that was told with it."""
        sites = self.forms.root.sites_of(key) or form.sites_of(key)
        others = len(gain.keys) - 1
        return TriedForm(
            site=key,
            usual=sites[0].words if sites else "",
            places=len(sites),
            outcome=FormOutcome.BEGUN,
            reason=f"with {others} other{'s' * (others > 1)}" if others else "",
            predicted_usual=gain.by_models.usual,
            predicted=gain.by_models.other,
        )


def _apart(gains: Iterable[_Gain]) -> Iterator[_Gain]:
    """The gains without choices that one before them decides otherwise, too: behind two kinds the same may show."""
    decided = set[str]()
    for each in gains:
        keys = tuple(key for key in each.keys if key not in decided)
        decided.update(keys)
        if keys:
            yield replace(each, keys=keys)


def _behind(root: Form, keys: Keys, form: Form) -> Keys:
    """Choices of a form over the nodes of those that are decided otherwise in it, of kinds that decide over none of these before.

    Args:
        root: The form in which they are decided as usual.
        keys: Of the choices that are decided otherwise.
        form: The form in which they are.
    """
    decided = [site for key in keys for site in root.sites_of(key) or form.sites_of(key)]
    nodes = {node for site in decided for node in site.nodes}
    before = {_kind(site) for site in decided}
    before |= {_kind(s) for sites in root.sites.values() for s in sites if nodes & {*s.nodes}}
    return tuple(
        key
        for key, sites in form.sites.items()
        if _kind(sites[0]) not in before and any(nodes & {*site.nodes} for site in sites)
    )


def _kind(site: Site) -> tuple[str, str]:
    """The pass of a site, and what it does there."""
    return site.pass_name, site.words


def _less(whole: Comparison, parts: Iterable[Comparison]) -> Comparison:
    """What is left of a comparison without those of some of its parts."""
    usual, other = whole.usual, whole.other
    for each in parts:
        usual, other = usual - each.usual, other - each.other
    return Comparison(usual, other)
