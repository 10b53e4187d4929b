"""Tune one problem: what the store knows, then ask, measure, store, tell; then compare the best.

Schedules are asked for before the outcomes of those that they follow are known, so that they compile
while others are measured. How many before is fixed: how long a compile takes changes nothing.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf

from wpk.errors import ScheduleError
from wpk.search.budget import Slice
from wpk.search.competition import Competition
from wpk.search.store_key import StoreKey
from wpk.search.store_lookup import Known, look_up
from wpk.search.store_record import Stage
from wpk.search.tune_record import Request, Rival, Session, Stop, Task, Tried, Tuned
from wpk.trial import Regime, Status, Trial

NEAR_BOUND = 1.05
"""A best so near to the bound and the floor of a launch is not improved further."""

IMPROVEMENT = 0.99
"""What counts as an improvement: beyond the noise that medians of one kernel show."""

WINDOW = 16
"""Schedules asked for whose outcomes are not known: enough to keep a dozen cores compiling, and no more
than searchers can do without (docs/decisions/0024-compiling-ahead.md)."""

LEAST_TRIALS = 8
"""Schedules that each problem tries as long as the run has time, however little is to be won there:
what a searcher begins with, the models' first choices."""

LIBRARY_FINALISTS = 2
"""Of the library's implementations, so many are compared with the best schedules."""

Parameters = tuple[tuple[str, int], ...]
Name = tuple[str, Parameters]
"""A template's name and a schedule of it."""


class ProblemTuning:
    """The tuning of one problem.

    Attributes:
        tried: One a schedule, in the order of trying, known ones first.
        library: One of the library's implementations each, likewise.
        known: How many of the schedules the store knew.
        lookups: What it said, one a template or library.
        best: Seconds of the best so far, infinite before the first that ran.
    """

    def __init__(self, task: Task, session: Session) -> None:
        """Look up what is known; nothing is asked for or measured yet."""
        self._task, self._session, self._limits = task, session, Slice()
        self._keys = {
            each.template: StoreKey(task.problem, each.template, each.version, session.setup)
            for each in task.contenders
        }
        self._rival = task.rival
        if self._rival is not None and self._rival.version:
            name, version = self._rival.name, self._rival.version
            self._keys[name] = StoreKey(task.problem, name, version, session.setup)
        found = {t: look_up(session.store, key, session.regime) for t, key in self._keys.items()}
        self.lookups = tuple(each.why for each in found.values())
        pairs = [(template, each) for template, hits in found.items() for each in hits.known]
        pairs.sort(key=lambda pair: pair[1].at)  # as they were tried: patience depends on it
        self._known: dict[Name, Known] = {}
        self.tried: list[Tried] = []
        self.library: list[Tried] = []
        self.best = inf
        self._generated = self._reference = inf
        self._stale = 0
        for template, each in pairs:
            self._note(template, each)
        self.known = len(self.tried)
        self._asked: deque[Name] = deque()  # to be measured, in this order
        self._exhausted = False

    @property
    def measured(self) -> int:
        """Schedules measured afresh."""
        return len(self.tried) - self.known

    def expect(self, limits: Slice) -> None:
        """Have the first schedules compiled, if any will be tried within what may now be spent."""
        self._limits = limits
        if self._why_stop() is None:
            self._ask()

    def search(self, limits: Slice, after_trial: Callable[[], None]) -> Stop:
        """Try the library, then schedules until there is a reason to stop."""
        self.expect(limits)
        if self._rival is not None and self._session.clock() < limits.end:
            self._try_library(self._rival)
            after_trial()
        while (stop := self._why_stop()) is None:
            self._ask()
            if self._asked:
                self._try_next()
                after_trial()
        self._session.bench.drop(self._requests(self._asked))
        self._asked.clear()
        return stop

    def finish(self, stop: Stop) -> Tuned:
        """Compare the best side by side, unless the store knows how that ends, and choose.

        When the run's time is over, what the problem has not measured itself is not compared.
        """
        in_time = self.measured > 0 or self._session.clock() < self._limits.end
        finalists = self._finalists()
        while in_time and finalists and not self._are_compared(finalists):
            self._compare(finalists)
            finalists = self._finalists()  # without those that failed now
        chosen = tuple(self._final(name) for name in finalists)
        found = self._tuned(stop, finalists, chosen)
        bests = [found.best_of(library=library) for library in (False, True)] if in_time else []
        return replace(found, elsewhere=tuple(self._elsewhere(each) for each in bests if each))

    def _tuned(self, stop: Stop, finalists: Sequence[Name], chosen: tuple[Tried, ...]) -> Tuned:
        return Tuned(
            problem=self._task.problem,
            best=min(chosen, key=lambda each: each.trial.cost, default=None),
            compared=bool(finalists) and self._are_compared(finalists),
            finalists=chosen,
            tried=tuple(self.tried),
            known=self.known,
            stop=stop,
            lookups=self.lookups,
            library=tuple(self.library),
            refusals=() if self._rival is None else self._rival.refusals,
        )

    def _elsewhere(self, best: Tried) -> Tried:
        """What the other regime makes of one that ran."""
        session, key = self._session, self._keys[best.template]
        other = Regime.COLD if session.regime is Regime.WARM else Regime.WARM
        for known in look_up(session.store, key, other).known:
            if known.trial.schedule == best.trial.schedule:
                return replace(best, trial=known.trial)
        schedule = best.trial.schedule
        request = Request(
            self._task.problem, best.template, best.version, schedule, Stage.FINAL, other
        )
        (trial,) = session.bench.measure([request])
        session.store.record(session.run.id, key, trial, other, Stage.FINAL, best.searcher)
        return replace(best, trial=trial)

    @cached_property
    def _competition(self) -> Competition:
        """The searchers, begun when they are first asked, and told what is known."""
        competition = Competition(
            {
                each.template: each.searcher(self._seed(each.template))
                for each in self._task.contenders
            },
            {each.template: each.promise for each in self._task.contenders},
        )
        for (template, _), known in self._known.items():
            if self._is_rival(template):
                continue
            try:
                competition.tell(template, [known.trial])
            except ScheduleError:
                continue  # found in a larger space: it counts, but teaches nothing here
        return competition

    def _seed(self, template: str) -> int:
        """A seed of 32 bits for each problem and template, whatever the order of tuning."""
        text = f"{self._session.run.seed}/{self._keys[template].digest}/{template}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])

    def _why_stop(self) -> Stop | None:
        effort, limits, now = self._session.effort, self._limits, self._session.clock()
        if self.best <= NEAR_BOUND * (self._task.bound + self._task.floor):
            return Stop.AT_BOUND
        if len(self.tried) >= effort.trials:
            return Stop.TRIALS_SPENT
        if self._stale >= effort.patience:
            return Stop.NO_IMPROVEMENT
        if self._exhausted:
            return Stop.EXHAUSTED
        late = now >= limits.end or (now >= limits.until and len(self.tried) >= LEAST_TRIALS)
        return Stop.OUT_OF_BUDGET if late or self.measured >= limits.trials else None

    def _try_library(self, rival: Rival) -> None:
        """Try the implementations that the library thinks best, but those that it never makes ready."""
        tried = 0
        for configuration in rival.configurations:
            name = rival.name, configuration
            if tried == self._session.effort.library or self._session.clock() >= self._limits.end:
                return
            if name not in self._known:
                for template, trial in self._measured([name], Stage.SEARCH):
                    self._note(template, Known(trial))
            tried += self._known[name].trial.status is not Status.REJECTED

    def _is_rival(self, template: str) -> bool:
        return self._rival is not None and template == self._rival.name

    def _ask(self) -> None:
        """Ask for as many as may be on their way, and have them compiled."""
        left = min(self._session.effort.trials - len(self.tried), WINDOW)
        most = int(min(left, self._limits.trials - self.measured))
        asked = self._competition.ask(most - len(self._asked))
        fresh = [(template, schedule.parameters()) for template, schedule in asked]
        self._asked += fresh
        self._session.bench.expect(self._requests(fresh))
        self._exhausted = not self._asked

    def _try_next(self) -> None:
        """Measure what was asked for first, and tell who asked."""
        for template, trial in self._measured([self._asked.popleft()], Stage.SEARCH):
            self._note(template, Known(trial, searcher=self._proposer(template, trial.schedule)))
            self._competition.tell(template, [trial])

    def _note(self, template: str, known: Known) -> None:
        """Count a trial. Before the first that runs there is nothing to be patient about."""
        self._known[template, known.trial.schedule] = known
        tried = self._tried(template, known.trial, known.searcher)
        self.best = min(self.best, known.trial.cost)
        if self._is_rival(template):
            self.library.append(tried)
            return
        self.tried.append(tried)
        self._generated = min(self._generated, known.trial.cost)
        if self._generated < IMPROVEMENT * self._reference:
            self._reference, self._stale = self._generated, 0
        elif self._generated < inf:
            self._stale += 1

    def _tried(self, template: str, trial: Trial, searcher: str) -> Tried:
        return Tried(template, self._keys[template].version, trial, searcher)

    def _proposer(self, template: str, schedule: Parameters) -> str:
        if self._is_rival(template):
            return ""
        known = self._known.get((template, schedule))
        return self._competition.proposer(template, schedule) if known is None else known.searcher

    def _measured(self, names: Sequence[Name], stage: Stage) -> Iterator[tuple[str, Trial]]:
        """Measure, and store every trial as it comes."""
        session = self._session
        trials = session.bench.measure(self._requests(names, stage))
        for (template, schedule), trial in zip(names, trials, strict=True):
            if trial.schedule != schedule:
                raise ValueError(f"asked to measure {schedule}, got a trial of {trial.schedule}")
            key = self._keys[template]
            proposer = self._proposer(template, schedule)
            session.store.record(session.run.id, key, trial, session.regime, stage, proposer)
            yield template, trial

    def _requests(self, names: Iterable[Name], stage: Stage = Stage.SEARCH) -> list[Request]:
        return [
            Request(self._task.problem, template, self._keys[template].version, schedule, stage)
            for template, schedule in names
        ]

    def _finalists(self) -> list[Name]:
        """The best of all that ran, as the search measured them; of the library the best few."""
        ran = [name for name in self._known if self._runs(name)]
        ran.sort(key=lambda name: self._known[name].trial.cost)
        generated = [name for name in ran if not self._is_rival(name[0])]
        library = [name for name in ran if self._is_rival(name[0])]
        return generated[: self._session.effort.finalists] + library[:LIBRARY_FINALISTS]

    def _runs(self, name: Name) -> bool:
        return self._known[name].trial.status is Status.OK

    def _final(self, name: Name) -> Tried:
        known = self._known[name]
        return self._tried(name[0], known.final or known.trial, known.searcher)

    def _are_compared(self, finalists: Sequence[Name]) -> bool:
        """Whether one run has compared all of them, as many times as this effort asks."""
        known = [self._known[name] for name in finalists]
        enough = all(each.final_rounds >= self._session.effort.rounds for each in known)
        return enough and len({each.final_run for each in known}) == 1

    def _compare(self, finalists: Sequence[Name]) -> None:
        """Measure the finalists in rounds, each beginning with another one: no place is favoured."""
        rounds = self._session.effort.rounds
        seconds: dict[Name, tuple[float, ...]] = dict.fromkeys(finalists, ())
        for first in range(rounds):
            alive = [name for name in finalists if self._runs(name)]
            start = first % max(1, len(alive))
            for template, trial in self._measured(alive[start:] + alive[:start], Stage.FINAL):
                name = template, trial.schedule
                if trial.status is not Status.OK:
                    self._known[name] = Known(trial, searcher=self._known[name].searcher)
                seconds[name] += trial.seconds
        for name in finalists:
            if self._runs(name):
                final = Trial(name[1], Status.OK, seconds[name])
                run = self._session.run.id
                self._known[name] = replace(
                    self._known[name], final=final, final_run=run, final_rounds=rounds
                )
