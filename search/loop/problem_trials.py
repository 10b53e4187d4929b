"""The trials of one problem are those that the store knows, and those measured and stored now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from wpk.candidate import Candidate
from wpk.search.loop.task import Task
from wpk.search.loop.tuning import Session
from wpk.search.store import History, Stage, StoreKey, look_up
from wpk.trial import Regime, Status, Trial
from wpk.trial_bench import Request


class ProblemTrials:
    """These trials are all that is known of a problem's candidates.

    Attributes:
        known: What is known of each, in the order of trying.
        lookups: What the store said at first, one a template or library.
        fresh: How many have been tried since.
        spent: Seconds that measurements took since, and their number.
    """

    def __init__(self, task: Task, session: Session) -> None:
        """Look up what is known; nothing is measured yet."""
        self._problem, self._session = task.problem, session
        makers = [
            *(each.template for each in task.contenders),
            *(each.library for each in task.rivals if each.library.version),
        ]
        self._keys = {maker: StoreKey(task.problem, maker, session.setup) for maker in makers}
        answers = [look_up(session.store, key, session.regime) for key in self._keys.values()]
        self.lookups = tuple(each.why for each in answers)
        self.fresh = 0
        self.spent = 0.0, 0
        histories = [history for answer in answers for history in answer.histories]
        histories.sort(key=lambda each: each.at)  # as they were tried: patience depends on it
        self.known: dict[Candidate, History] = {each.trial.candidate: each for each in histories}

    def requests(
        self, candidates: Iterable[Candidate], stage: Stage = Stage.SEARCH
    ) -> list[Request]:
        """Return what the bench is asked in order to measure these."""
        return [Request(self._problem, candidate, stage) for candidate in candidates]

    def runs(self, candidate: Candidate) -> bool:
        """Tell whether a known schedule or implementation never failed."""
        return self.known[candidate].trial.ran

    def final(self, candidate: Candidate) -> Trial:
        """Return a known one as it was compared with others, or else as the search measured it."""
        known = self.known[candidate]
        return known.final or known.trial

    def search(self, candidate: Candidate, proposer: str = "") -> Trial:
        """Try a schedule or implementation that is not known yet, proposed by a searcher."""
        (trial,) = self._measured([candidate], Stage.SEARCH, proposer)
        self.known[candidate] = History(trial)
        self.fresh += 1
        return trial

    @property
    def pace(self) -> float:
        """Seconds that a measurement of this problem took, in the mean; 0 before the first."""
        return self.spent[0] / max(1, self.spent[1])

    def are_compared(self, finalists: Sequence[Candidate], rounds: int) -> bool:
        """Tell whether one run has compared all of them in so many rounds at least."""
        known = [self.known[candidate] for candidate in finalists]
        enough = all(each.final_rounds >= rounds for each in known)
        return enough and len({each.final_run for each in known}) == 1

    def compare(self, finalists: Sequence[Candidate], rounds: int) -> None:
        """Measure the finalists in rounds, each of which begins with another one, so that no place is favoured."""
        seconds: dict[Candidate, tuple[float, ...]] = dict.fromkeys(finalists, ())
        for first in range(rounds):
            alive = [candidate for candidate in finalists if self.runs(candidate)]
            start = first % max(1, len(alive))
            turns = alive[start:] + alive[:start]
            for candidate, trial in zip(turns, self._measured(turns, Stage.FINAL), strict=True):
                if not trial.ran:
                    self.known[candidate] = History(trial)
                seconds[candidate] += trial.seconds
        for candidate in finalists:
            if self.runs(candidate):
                known = self.known[candidate]
                final = replace(
                    known.trial, status=Status.OK, seconds=seconds[candidate], detail=""
                )
                run = self._session.run.id
                self.known[candidate] = replace(
                    known, final=final, final_run=run, final_rounds=rounds
                )

    def elsewhere(self, best: Trial) -> Trial:
        """Return the trial of one that ran in the other regime of the caches; measure it unless the store knows."""
        session, key = self._session, self._keys[best.candidate.maker]
        other = Regime.COLD if session.regime is Regime.WARM else Regime.WARM
        for history in look_up(session.store, key, other).histories:
            if history.trial.candidate == best.candidate:
                return history.trial
        request = Request(self._problem, best.candidate, Stage.FINAL, other)
        (trial,) = session.bench.measure([request])
        trial = replace(trial, proposer=best.proposer)
        session.store.record(session.run.id, key, trial, other, Stage.FINAL)
        return trial

    def _measured(
        self, candidates: Sequence[Candidate], stage: Stage, proposer: str = ""
    ) -> Iterator[Trial]:
        """Measure, and store every trial as it comes; the proposer is of what is not known."""
        session = self._session
        begun = session.clock()
        trials = session.bench.measure(self.requests(candidates, stage))
        for candidate, trial in zip(candidates, trials, strict=True):
            seconds, count = self.spent
            self.spent = seconds + session.clock() - begun, count + 1
            if trial.candidate != candidate:
                raise ValueError(f"asked to measure {candidate}, got a trial of {trial.candidate}")
            known = self.known.get(candidate)
            trial = replace(trial, proposer=known.trial.proposer if known else proposer)
            key = self._keys[candidate.maker]
            session.store.record(session.run.id, key, trial, session.regime, stage)
            yield trial
            begun = session.clock()
