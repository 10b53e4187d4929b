"""What a process that scores schedules answers: shortlists as plain numbers, which its parent makes shortlists of again."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from wpk.performance import bound
from wpk.plan import Funnel
from wpk.problems import Problem
from wpk.schedules import TEMPLATE_OF
from wpk.search.models.scored_space import Predictions
from wpk.search.models.shortlist import Shortlist
from wpk.search.models.static_search import Shortlists
from wpk.targets import Target


@dataclass(frozen=True)
class ScoredTemplate:
    """A template's shortlist.

    Attributes:
        funnel: See `Shortlist`; it names the template.
        parameters: Of the kept schedules, 8 bytes each: a row a parameter, in the order of the schedule's fields.
        predicted: Of the same, in fp64: rows of score, COEF_bc, passes and estimate.
    """

    funnel: Funnel
    parameters: bytes
    predicted: bytes


@dataclass(frozen=True)
class ScoredProblem:
    """A problem's shortlists.

    Attributes:
        templates: Those that carry it.
        refusals: See `Shortlists`.
    """

    templates: tuple[ScoredTemplate, ...]
    refusals: tuple[Funnel, ...]

    @classmethod
    def of(cls, found: Shortlists) -> ScoredProblem:
        """Return what is to be said of shortlists."""
        return cls(tuple(map(_packed, found.templates)), found.refusals)

    def shortlists(self, problem: Problem, target: Target) -> Shortlists:
        """Return the shortlists that this was said of.

        Args:
            problem: What was asked for.
            target: The GPU that it was asked for.
        """
        templates = tuple(map(_unpacked, self.templates))
        return Shortlists(problem, target, bound(problem, target), templates, self.refusals)


def _packed(shortlist: Shortlist) -> ScoredTemplate:
    kept = shortlist.kept
    parameters = np.stack(list(kept.columns.values())).astype(np.int64)
    return ScoredTemplate(
        shortlist.funnel, parameters.tobytes(), np.stack(kept.numbers()).tobytes()
    )


def _unpacked(scored: ScoredTemplate) -> Shortlist:
    template = TEMPLATE_OF[scored.funnel.template]
    names = [field.name for field in fields(template.schedule_type)]
    parameters = _rows(scored.parameters, np.int64, len(names))
    numbers = _rows(scored.predicted, np.float64, 4)
    columns = dict(zip(names, parameters, strict=True))
    return Shortlist(template, scored.funnel, Predictions(columns, *numbers))


def _rows(data: bytes, kind: type[np.generic], count: int) -> NDArray[np.generic]:
    return np.frombuffer(data, kind).reshape(count, -1)
