"""A request is what the bench is asked to measure."""

from dataclasses import dataclass

from wpk.candidate import Candidate
from wpk.problems import Problem
from wpk.search.store import Stage
from wpk.trial import Regime


@dataclass(frozen=True)
class Request:
    """A request names a candidate to measure.

    Attributes:
        problem: What it computes.
        candidate: What computes it.
        stage: What for: what may be chosen is checked more thoroughly than what guides a search.
        regime: What the caches should hold; None for the regime that decides.
    """

    problem: Problem
    candidate: Candidate
    stage: Stage = Stage.SEARCH
    regime: Regime | None = None
