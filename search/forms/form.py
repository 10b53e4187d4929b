"""A form is a model lowered with some choices of the passes taken back; forms of equal operators are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from wpk.errors import GraphError, UnsupportedError, WpkError
from wpk.graph_passes import Site, every_site, pass_of
from wpk.lowering.lowered_model import LoweredModel
from wpk.problems import Fallback, Problem

Lower = Callable[[frozenset[str]], LoweredModel]
"""Lowers the model with the sites of these keys taken back (`wpk.lowering.model.ModelForms.lowered`)."""


@dataclass(frozen=True)
class Form:
    """One partition of a model into operators.

    Attributes:
        changed: Keys of the sites that are taken back.
        problems: What kernels are to compute, each as often as operators have it.
        handed: Operators that ONNX Runtime executes.
        sites: Where passes had a choice, by key; one or more places each.
    """

    changed: frozenset[str]
    problems: Counter[Problem]
    handed: int
    sites: Mapping[str, tuple[Site, ...]]

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


def form_of(lowered: LoweredModel) -> Form:
    """Return the form of a lowered model."""
    sites: dict[str, tuple[Site, ...]] = {}
    for site in lowered.sites:
        sites[site.key] = (*sites.get(site.key, ()), site)
    problems = Counter(lowered.program.problems)
    return Form(lowered.source.changed, problems, len(_handed(lowered)), sites)


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
        fixed: The form in which nothing is taken back.
    """

    lower: Lower
    fixed: Form
    _known: dict[frozenset[str], Form | RefusedFormError] = field(default_factory=dict)

    def of(self, changed: frozenset[str]) -> Form:
        """Return the form in which these sites are taken back.

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
        if form.handed > self.fixed.handed:
            more = form.handed - self.fixed.handed
            return RefusedFormError(f"ONNX Runtime would execute {more} more operators", fix="")
        return form
