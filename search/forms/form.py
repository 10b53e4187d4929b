"""A form is a model lowered with some choices of the passes taken back; forms of equal operators are equal.

Choices that lie apart are looked at in one lowering (`wpk.search.forms.together`): what is known of such a form are its
problems.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from wpk.errors import GraphError, UnsupportedError, WpkError
from wpk.graph_passes import Site, every_site, pass_of
from wpk.lowering.lowered_model import LoweredModel
from wpk.problems import Fallback, Problem
from wpk.search.forms.together import Keys, Neighbours, Part, lying_apart, parts_of, told_apart

Lower = Callable[[frozenset[str]], LoweredModel]
"""Lowers the model with the sites of these keys taken back (`wpk.lowering.model.ModelForms.lowered`)."""


@dataclass(frozen=True)
class Form:
    """One partition of a model into operators.

    Attributes:
        changed: Keys of the sites that are taken back.
        problems: What kernels are to compute, each as often as operators have it.
        handed: Operators that ONNX Runtime executes.
        sites: Where passes had a choice, by key, one or more places each; none where the form was looked at among others.
        parts: Its operators, likewise.
    """

    changed: frozenset[str]
    problems: Counter[Problem]
    handed: int
    sites: Mapping[str, tuple[Site, ...]]
    parts: tuple[Part, ...] = ()

    def sites_of(self, key: str) -> tuple[Site, ...]:
        """The sites that a key names: equal ones, or all of a pass."""
        if key != every_site(pass_of(key)):
            return self.sites.get(key, ())
        own = (sites for name, sites in self.sites.items() if pass_of(name) == pass_of(key))
        return tuple(chain.from_iterable(own))

    @property
    def identity(self) -> frozenset[tuple[Problem, int]]:
        """Equal for forms whose operators are the same."""
        return frozenset(self.problems.items())


@dataclass(frozen=True)
class Difference:
    """The operators in which two forms differ.

    Attributes:
        gone: Problems that only the first has, each as often as it has more of them.
        new: Problems that only the second has, likewise.
    """

    gone: Counter[Problem]
    new: Counter[Problem]

    @property
    def problems(self) -> set[Problem]:
        """All of them."""
        return {*self.gone, *self.new}


def difference(first: Form, second: Form) -> Difference:
    """Compare the operators of two forms."""
    return Difference(first.problems - second.problems, second.problems - first.problems)


def otherwise(form: Form, keys: Iterable[str], than: Form | None = None) -> frozenset[str]:
    """Return what is changed of a form in which some choices are decided otherwise.

    Args:
        form: The form.
        keys: Of the choices.
        than: The form in which they are decided as they no longer are; by default the same.
    """
    decided = form.changed if than is None else than.changed
    back = {key for key in keys if key in decided}
    return (form.changed - back) | ({*keys} - back)


def form_of(lowered: LoweredModel) -> Form:
    """Return the form of a lowered model."""
    sites: dict[str, tuple[Site, ...]] = {}
    for site in lowered.sites:
        sites[site.key] = (*sites.get(site.key, ()), site)
    problems, parts = Counter(lowered.program.problems), parts_of(lowered.program)
    return Form(lowered.source.changed, problems, len(_handed(lowered)), sites, parts)


def _handed(lowered: LoweredModel) -> list[Fallback]:
    problems = (operator.problem for operator in lowered.program.operators)
    return [problem for problem in problems if isinstance(problem, Fallback)]


class RefusedFormError(WpkError):
    """A form that lowering refuses, or of which ONNX Runtime would execute more."""


@dataclass
class Forms:
    """Forms lower a model in one form after another, each once, and remember what it consists of.

    Attributes:
        lower: Lowers the model.
        root: The form that others are looked at beside first: the passes' own, or the one that tuning begins with.
    """

    lower: Lower
    root: Form
    _known: dict[frozenset[str], Form | RefusedFormError] = field(default_factory=dict)
    _told: dict[frozenset[str], Form] = field(default_factory=dict)
    _expected: dict[Keys, set[str]] = field(default_factory=dict)
    _around: Neighbours = field(default_factory=lambda: Neighbours(()))

    def expect(self, base: Form, choices: Sequence[Keys]) -> None:
        """Note which choices will be looked at beside a form, in which order (`beside`)."""
        self._around = Neighbours(base.parts)
        self._expected = {
            keys: {node for key in keys for site in base.sites_of(key) for node in site.nodes}
            for keys in choices
            if not self.has(otherwise(base, keys))
        }

    def beside(self, base: Form, keys: Keys) -> Form:
        """Return the form in which a choice is decided otherwise, too; others that were expected are looked at with it.

        Args:
            base: The form that it is tried on, lowered as it is.
            keys: Of the choice.

        Raises:
            RefusedFormError: There is none.
        """
        changed = otherwise(base, keys)
        if keys in self._expected and not self.has(changed):
            self._look(base, keys)
        return self._told.get(changed) or self.of(changed)

    def _look(self, base: Form, first: Keys) -> None:
        """Look at an expected choice and at others of the same passes that lie apart from it, if there are any."""
        passes = {pass_of(key) for key in first}
        alike = {first: self._expected[first]}
        alike |= {k: own for k, own in self._expected.items() if {*map(pass_of, k)} == passes}
        together = {keys: self._expected.pop(keys) for keys in lying_apart(self._around, alike)}
        if len(together) == 1:
            return
        found = self._lowered(otherwise(base, [key for keys in together for key in keys]))
        if not isinstance(found, RefusedFormError):
            self._tell(base, found, together)

    def all_of(self, base: Form, keys: Keys) -> Form:
        """Return the form in which several choices are decided otherwise, and tell those apart that can be told.

        Args:
            base: The form that they are tried on, lowered as it is.
            keys: Of the choices.

        Raises:
            RefusedFormError: There is none.
        """
        form = self.of(otherwise(base, keys))
        self._tell(base, form, {(k,): {n for s in base.sites_of(k) for n in s.nodes} for k in keys})
        return form

    def _tell(self, base: Form, found: Form, together: Mapping[Keys, Collection[str]]) -> None:
        """Note what each of some choices changes that were decided otherwise in one form."""
        if found.handed != base.handed:
            return
        for keys, change in told_apart(base.parts, found.parts, together).items():
            changed = otherwise(base, keys)
            problems = base.problems - change.gone + change.new
            if not self.has(changed):
                self._told[changed] = Form(changed, problems, base.handed, {})

    def begin_with(self, root: Form) -> None:
        """Look at others beside this form from now on; what is known of choices that lie apart from it stays known."""
        before, self.root = self.root, root
        seen = {**self._told, **{k: f for k, f in self._known.items() if isinstance(f, Form)}}
        for changed, form in seen.items():
            (*keys,) = changed ^ before.changed
            here = otherwise(root, keys)
            if len(keys) != 1 or self.has(here):
                continue
            change = difference(before, form)
            gone, new = change.gone, change.new
            if keys[0] in root.changed:
                gone, new = new, gone
            if gone <= root.problems:
                problems = root.problems - gone + new
                self._told[here] = Form(here, problems, root.handed, {})

    def has(self, changed: frozenset[str]) -> bool:
        """Whether the form was looked at before, alone or among others."""
        return changed in self._known or changed in self._told

    def of(self, changed: frozenset[str]) -> Form:
        """Return the form in which these sites are taken back, lowered as it is.

        Raises:
            RefusedFormError: There is none.
        """
        if changed not in self._known:
            self._known[changed] = self._lowered(changed)
        found = self._known[changed]
        if isinstance(found, RefusedFormError):
            raise found
        return found

    def _lowered(self, changed: frozenset[str]) -> Form | RefusedFormError:
        try:
            form = form_of(self.lower(changed))
        except (UnsupportedError, GraphError) as error:
            return RefusedFormError(error.what.splitlines()[-1].strip(), fix=error.fix)
        if form.handed > self.root.handed:
            more = form.handed - self.root.handed
            return RefusedFormError(f"ONNX Runtime would execute {more} more operators", fix="")
        return form
