"""Several templates compete for one problem: each has its searcher, and the trials are dealt out among them.

Templates take turns, slower ones less often: a template's turns fall with the square of how much slower its
best schedule is, as measured, or as the models expect before anything was measured. A template that is far
behind the others after its probe of trials is not asked any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from wpk.candidate import Candidate, Maker
from wpk.search.searchers import Searcher
from wpk.trial import Trial

PROBE = 16
"""Trials after which a template is judged: as many as tell a good space from a bad one."""

LAG = 2.0
"""A template is dropped when its best takes this many times as long as the best of all."""


@dataclass
class _Entry:
    searcher: Searcher
    promise: float
    dealt: int = 0  # schedules asked for, and outcomes of others
    told: int = 0
    best: float = inf
    exhausted: bool = False

    @property
    def expected(self) -> float:
        """Seconds of its best schedule."""
        return self.best if self.best < inf else self.promise


class Competition:
    """A competition holds the searchers of a problem's templates."""

    def __init__(
        self, searchers: Mapping[Maker, Searcher], promises: Mapping[Maker, float]
    ) -> None:
        """Begin with what the models think.

        Args:
            searchers: By template; of two with equal claims the first is asked.
            promises: Estimated seconds of each template's best schedule.
        """
        self._entries = {
            template: _Entry(searcher, promises[template])
            for template, searcher in searchers.items()
        }
        self._proposers: dict[Candidate, str] = {}

    def ask(self, count: int) -> list[Candidate]:
        """Return as many candidates as asked for, fewer only where no more are worth trying."""
        asked: list[Candidate] = []
        while len(asked) < count and (template := self._next()) is not None:
            entry = self._entries[template]
            proposed = [Candidate(template, s.parameters()) for s in entry.searcher.ask(1)]
            entry.exhausted = not proposed
            entry.dealt += len(proposed)
            asked += proposed
            self._proposers |= dict.fromkeys(proposed, entry.searcher.proposer)
        return asked

    def proposer(self, candidate: Candidate) -> str:
        """Return who proposed a candidate that was asked for."""
        return self._proposers[candidate]

    def tell(self, template: Maker, trials: Sequence[Trial]) -> None:
        """Enter outcomes of one template's schedules, asked for or not, failures included.

        Raises:
            ScheduleError: A schedule is not in the template's space; nothing is entered then.
        """
        entry = self._entries[template]
        entry.searcher.tell(trials)
        entry.dealt += sum(trial.candidate not in self._proposers for trial in trials)
        entry.told += len(trials)
        entry.best = min([entry.best, *(trial.cost for trial in trials)])

    def _next(self) -> Maker | None:
        best = min(entry.best for entry in self._entries.values())
        left = {
            template: entry
            for template, entry in self._entries.items()
            if not entry.exhausted and not (entry.told >= PROBE and entry.best > LAG * best)
        }
        least = min((entry.expected for entry in left.values()), default=inf)

        def turn(template: Maker) -> float:
            entry = left[template]
            return (entry.dealt + 1) * (entry.expected / least) ** 2

        return min(left, key=turn, default=None)
