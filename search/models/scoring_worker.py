"""The process that scores schedules: ``python -m wpk.search.models.scoring_worker``, started by the pool.

A process and not a thread: scoring is some thousand short calls of NumPy, and each of them gives the interpreter away and
waits for it again, up to 5 ms, where another thread computes in Python.
"""

from __future__ import annotations

from wpk.problems import Problem
from wpk.process import serve
from wpk.schedules import TEMPLATES
from wpk.search.models.pruning import find_pruning
from wpk.search.models.scoring_answer import ScoredProblem
from wpk.search.models.static_search import shortlist_all
from wpk.targets import Target


class _Scorer:
    """The models, asked for one problem after another."""

    def score(
        self, problem: Problem, target: Target, skip: tuple[str, ...], pruning: str
    ) -> ScoredProblem:
        """Shortlist every template that can carry the problem, see `shortlist_all`.

        Raises:
            ScheduleError: No template can, or none has a legal schedule; says why of each.
        """
        found = shortlist_all(problem, TEMPLATES, target, skip, find_pruning(pruning))
        return ScoredProblem.of(found)


if __name__ == "__main__":
    serve(_Scorer)
