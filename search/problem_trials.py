"""The trials of one problem: those that the store knows, and those measured and stored now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from wpk.search.store_key import StoreKey
from wpk.search.store_lookup import Known, look_up
from wpk.search.store_record import Stage
from wpk.search.tune_record import Request, Session, Task, Tried
from wpk.trial import Regime, Status, Trial

Name = tuple[str, tuple[tuple[str, int], ...]]
"""A template's or a library's name, and a schedule of it."""


class ProblemTrials:
    """What is known of a problem's schedules and of the library's implementations.

    Attributes:
        known: What is known of each, in the order of trying.
        lookups: What the store said at first, one a template or library.
        fresh: How many have been tried since.
    """

    def __init__(self, task: Task, session: Session) -> None:
        """Look up what is known; nothing is measured yet."""
        self._problem, self._session = task.problem, session
        versions = {each.template: each.version for each in task.contenders}
        if task.rival is not None and task.rival.version:
            versions[task.rival.name] = task.rival.version
        self._keys = {
            template: StoreKey(task.problem, template, version, session.setup)
            for template, version in versions.items()
        }
        found = {t: look_up(session.store, key, session.regime) for t, key in self._keys.items()}
        self.lookups = tuple(each.why for each in found.values())
        pairs = [(template, each) for template, hits in found.items() for each in hits.known]
        self.fresh = 0
        pairs.sort(key=lambda pair: pair[1].at)  # as they were tried: patience depends on it
        self.known: dict[Name, Known] = {
            (template, each.trial.schedule): each for template, each in pairs
        }

    def requests(self, names: Iterable[Name], stage: Stage = Stage.SEARCH) -> list[Request]:
        """Return what the bench is asked in order to measure these."""
        return [
            Request(self._problem, template, self._keys[template].version, schedule, stage)
            for template, schedule in names
        ]

    def runs(self, name: Name) -> bool:
        """Tell whether a known schedule or implementation never failed."""
        return self.known[name].trial.status is Status.OK

    def searched(self, name: Name) -> Tried:
        """Return a known schedule or implementation as the search measured it."""
        return self._tried(name, self.known[name].trial)

    def final(self, name: Name) -> Tried:
        """Return a known one as it was compared with others, or else as the search measured it."""
        known = self.known[name]
        return self._tried(name, known.final or known.trial)

    def search(self, name: Name, searcher: str = "") -> Trial:
        """Try a schedule or implementation that is not known yet, proposed by a searcher."""
        (trial,) = self._measured([name], Stage.SEARCH, searcher)
        self.known[name] = Known(trial, searcher=searcher)
        self.fresh += 1
        return trial

    def are_compared(self, finalists: Sequence[Name]) -> bool:
        """Tell whether one run has compared all of them as many times as this effort asks."""
        known = [self.known[name] for name in finalists]
        enough = all(each.final_rounds >= self._session.effort.rounds for each in known)
        return enough and len({each.final_run for each in known}) == 1

    def compare(self, finalists: Sequence[Name]) -> None:
        """Measure the finalists in rounds, each of which begins with another one, so that no place is favoured."""
        rounds = self._session.effort.rounds
        seconds: dict[Name, tuple[float, ...]] = dict.fromkeys(finalists, ())
        for first in range(rounds):
            alive = [name for name in finalists if self.runs(name)]
            start = first % max(1, len(alive))
            turns = alive[start:] + alive[:start]
            for name, trial in zip(turns, self._measured(turns, Stage.FINAL), strict=True):
                if trial.status is not Status.OK:
                    self.known[name] = Known(trial, searcher=self.known[name].searcher)
                seconds[name] += trial.seconds
        for name in finalists:
            if self.runs(name):
                final = Trial(name[1], Status.OK, seconds[name])
                run = self._session.run.id
                self.known[name] = replace(
                    self.known[name], final=final, final_run=run, final_rounds=rounds
                )

    def elsewhere(self, best: Tried) -> Tried:
        """Return the trial of one that ran in the other regime of the caches; measure it unless the store knows."""
        session, key = self._session, self._keys[best.template]
        other = Regime.COLD if session.regime is Regime.WARM else Regime.WARM
        for known in look_up(session.store, key, other).known:
            if known.trial.schedule == best.trial.schedule:
                return replace(best, trial=known.trial)
        schedule = best.trial.schedule
        request = Request(self._problem, best.template, best.version, schedule, Stage.FINAL, other)
        (trial,) = session.bench.measure([request])
        session.store.record(session.run.id, key, trial, other, Stage.FINAL, best.searcher)
        return replace(best, trial=trial)

    def _measured(self, names: Sequence[Name], stage: Stage, searcher: str = "") -> Iterator[Trial]:
        """Measure, and store every trial as it comes, with the name of the searcher that proposed it."""
        session = self._session
        trials = session.bench.measure(self.requests(names, stage))
        for name, trial in zip(names, trials, strict=True):
            template, schedule = name
            if trial.schedule != schedule:
                raise ValueError(f"asked to measure {schedule}, got a trial of {trial.schedule}")
            key = self._keys[template]
            proposer = self.known[name].searcher if name in self.known else searcher
            session.store.record(session.run.id, key, trial, session.regime, stage, proposer)
            yield trial

    def _tried(self, name: Name, trial: Trial) -> Tried:
        template, _ = name
        return Tried(template, self._keys[template].version, trial, self.known[name].searcher)
