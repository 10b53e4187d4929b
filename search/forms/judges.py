"""Who decides between two forms: the models alone, or times that were measured."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from wpk.problems import Problem
from wpk.search.forms.form import Difference, Form
from wpk.search.forms.times import (
    Comparison,
    Estimate,
    is_certain,
    is_faster,
    measured,
    predicted,
)


@dataclass(frozen=True)
class Proposal:
    """A form that models do not rule out, beside the one that it is tried on.

    Attributes:
        keys: Of the sites that it takes back: one class, or two that meet.
        form: The form.
        between: The operators in which both differ.
        by_models: What the models say of these.
    """

    keys: tuple[str, ...]
    form: Form
    between: Difference
    by_models: Comparison


class Judge(Protocol):
    """A judge compares forms, and may be given time to learn before."""

    def learn(self, proposals: Sequence[Proposal]) -> None:
        """Find out what can be found out of what is proposed, the most promising first."""

    def compare(self, between: Difference) -> Comparison | None:
        """Compare two forms; None where not enough is known."""

    def prefers(self, comparison: Comparison) -> bool:
        """Whether the second form is to be taken."""


@dataclass(frozen=True)
class ByModels:
    """Where nothing is measured: a form must be faster beyond what the models may err by.

    Attributes:
        estimate: Of a problem.
    """

    estimate: Estimate

    def learn(self, proposals: Sequence[Proposal]) -> None:
        """Do nothing: the models know all that they will know."""
        del proposals

    def compare(self, between: Difference) -> Comparison | None:
        """Compare by estimates."""
        return predicted(between, self.estimate)

    def prefers(self, comparison: Comparison) -> bool:
        """Whether the gain is certain."""
        return is_certain(comparison)


Measure = Callable[[Sequence[Proposal], Collection[Problem]], Mapping[Problem, float]]
"""Measures the problems of some proposals that have no times yet, those first where most is to be won; returns
seconds of those that ran."""


@dataclass
class ByMeasuring:
    """Where the GPU is: a form must be faster beyond the noise.

    Attributes:
        measure: Measures problems.
        seconds: What is known.
    """

    measure: Measure
    seconds: dict[Problem, float] = field(default_factory=dict)

    def learn(self, proposals: Sequence[Proposal]) -> None:
        """Measure every problem that has no time yet, once."""
        unknown = {
            problem: None
            for proposal in proposals
            for problem in (*proposal.between.new, *proposal.between.gone)
            if problem not in self.seconds
        }
        if unknown:
            self.seconds |= self.measure(proposals, unknown)

    def compare(self, between: Difference) -> Comparison | None:
        """Compare by measured times."""
        return measured(between, self.seconds)

    def prefers(self, comparison: Comparison) -> bool:
        """Whether it is faster beyond the noise."""
        return is_faster(comparison)
