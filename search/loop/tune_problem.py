"""The tuning of one problem decides what to ask for and to try, when to stop, and what to compare at the end.

Schedules are asked for before the outcomes of those that they follow are known, so that they compile
while others are measured. How many before is fixed: how long a compile takes changes nothing.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf

from wpk.candidate import GENERATED, Candidate, Maker
from wpk.errors import ScheduleError
from wpk.search.loop.budget import Slice
from wpk.search.loop.competition import Competition
from wpk.search.loop.library_turn import LibraryTurn
from wpk.search.loop.problem_trials import ProblemTrials
from wpk.search.loop.result import Stop, TuningResult
from wpk.search.loop.task import Task
from wpk.search.loop.tuning import Session
from wpk.search.store import Stage, problem_digest
from wpk.trial import Status, Trial

NEAR_BOUND = 1.05
"""A best schedule that is so near to the bound and the floor of a launch is not improved further."""

IMPROVEMENT = 0.99
"""What counts as an improvement: beyond the noise that medians of one kernel show."""

WINDOW = 16
"""Schedules asked for whose outcomes are not known: enough to keep a dozen cores compiling, and no more
than searchers can do without (docs/decisions/0024-compiling-ahead.md)."""

LIBRARY_FINALISTS = 2
"""How many of the library's implementations are compared with the best schedules."""

FEWEST = 2
"""Schedules that are tried in a first turn however late it is, and that are compared at the end."""

FEWEST_OF_LIBRARY = 2
"""A library's implementations that are tried however late it is, where the first is not made ready: it has dozens, and may take
half a second to say so of each."""


class ProblemTuning:
    """This object tunes one problem.

    Attributes:
        task: The problem, and who competes for it.
        tried: One a schedule, in the order of trying, known ones first.
        library: One a library's implementation, likewise.
        known: How many of the schedules the store knew.
    """

    def __init__(self, task: Task, session: Session) -> None:
        """Look up what is known; nothing is asked for or measured yet."""
        self.task, self._session, self._limits = task, session, Slice()
        self._trials = ProblemTrials(task, session)
        self.tried: list[Trial] = []
        self.library: list[Trial] = []
        self._best = self._generated = self._reference = inf  # seconds, before the first that ran
        self._stale = 0
        for history in self._trials.known.values():
            self._count(history.trial)
        self.known = len(self.tried)
        self._asked: deque[Candidate] = deque()  # to be measured, in this order
        self._hopeful: set[Candidate] = set()  # that were finalists when they had been tried
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
        if not limits.is_first:
            self.expect_finalists()

    def search(self, limits: Slice, after_trial: Callable[[], None]) -> Stop:
        """Try schedules, and libraries in between, until there is a reason to stop; may be called again, with more to spend."""
        self.expect(limits)
        turn = LibraryTurn(self._session.clock(), limits)
        untried = self._of_libraries()
        following = None if limits.is_first else next(untried, None)
        while True:
            stop = self._why_stop()
            if following is not None and self._is_due(turn, stop):
                self._count(self._trials.search(following))
                turn.passed(self._session.clock())
                following = next(untried, None)
                after_trial()
                continue
            if stop is not None:
                return stop
            self._ask()
            if self._asked:
                self._try_next()
                if not limits.is_first:
                    self.expect_finalists()
                after_trial()
            turn.now = self._session.clock()

    def finish(self, stop: Stop) -> TuningResult:
        """Compare the best side by side, unless the store knows how that ends, and choose.

        When the run's time is over, a problem of which nothing was measured now is not compared. The less is left of
        the problem's own time, the fewer are compared, in fewer rounds, and at least the best few once.
        """
        self._session.bench.drop(self._trials.requests(self._asked))
        self._asked.clear()
        in_time = self._trials.fresh > 0 or self._session.clock() < self._limits.end
        is_short = self._rounds(self._finalists()) < 1
        finalists = self._finalists(is_short=is_short)
        rounds = max(1, self._rounds(finalists))
        while in_time and finalists and not self._trials.are_compared(finalists, rounds):
            self._trials.compare(finalists, rounds)
            finalists = self._finalists(is_short=is_short)  # without those that failed now
        self._session.bench.drop(self._trials.requests(self._hopeful, Stage.FINAL))
        result = self._result(stop, finalists, rounds)
        bests = list(result.best_of_each.values())
        if not in_time or self._left() < self._trials.pace * len(bests):
            bests = []  # no choice depends on them
        return replace(result, elsewhere=tuple(map(self._trials.elsewhere, bests)))

    def _rounds(self, finalists: Sequence[Candidate]) -> int:
        """Return how many times some finalists can be compared in what is left of the problem's time.

        Not once where that is over, also where nothing has been measured that would say what a round takes.
        """
        most, left = self._session.effort.rounds, self._left()
        a_round = self._trials.pace * len(finalists)
        if left >= most * a_round:
            return most
        return int(max(0.0, left) / a_round) if a_round > 0 else 0

    def _left(self) -> float:
        """Seconds of the problem's time."""
        return self._limits.over - self._session.clock()

    @property
    def spent(self) -> tuple[float, int]:
        """Seconds that measuring took, and the number of measurements."""
        return self._trials.spent

    @property
    def informed(self) -> Task:
        """The task, with the best time that this run has found where it has tried a little of each problem."""
        if not self._limits.is_first or self._best == inf:
            return self.task
        return replace(self.task, measured=self._best)

    def _result(self, stop: Stop, finalists: Sequence[Candidate], rounds: int) -> TuningResult:
        return TuningResult(
            problem=self.task.problem,
            compared=bool(finalists) and self._trials.are_compared(finalists, rounds),
            finalists=tuple(map(self._trials.final, finalists)),
            tried=tuple(self.tried),
            known=self.known,
            stop=stop,
            lookups=self._trials.lookups,
            library=tuple(self.library),
            refusals=tuple(reason for rival in self.task.rivals for reason in rival.refusals),
        )

    @cached_property
    def _competition(self) -> Competition:
        """The searchers, begun when they are first asked, and told what is known."""
        contenders = self.task.contenders
        competition = Competition(
            {each.template: each.searcher(self._seed(each.template)) for each in contenders},
            {each.template: each.promise for each in contenders},
        )
        templates = {each.template for each in contenders}
        for candidate, history in self._trials.known.items():
            if candidate.maker not in templates:
                continue
            try:
                competition.tell(candidate.maker, [history.trial])
            except ScheduleError:
                continue  # found in a larger space: it counts, but teaches nothing here
        return competition

    def _seed(self, template: Maker) -> int:
        """A seed of 32 bits for each problem and template, whatever the order of tuning."""
        text = f"{self._session.run.seed}/{problem_digest(self.task.problem)}/{template.name}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])

    def _why_stop(self) -> Stop | None:
        effort, limits, now = self._session.effort, self._limits, self._session.clock()
        if self._best <= NEAR_BOUND * (self.task.bound + self.task.floor):
            return Stop.AT_BOUND
        if len(self.tried) >= effort.trials:
            return Stop.TRIALS_SPENT
        if self._stale >= effort.patience:
            return Stop.NO_IMPROVEMENT
        if self._exhausted:
            return Stop.EXHAUSTED
        tried_few = limits.is_first and len(self.tried) < FEWEST
        late = now >= limits.end or (now >= limits.until and not tried_few)
        spent = late or self.measured >= limits.trials
        return Stop.OUT_OF_BUDGET if spent and not self._has_only_failed else None

    @property
    def _has_only_failed(self) -> bool:
        """Whether nothing ran correctly yet; the budget does not end the search then."""
        return bool(self.tried) and self._best == inf

    def _of_libraries(self) -> Iterator[Candidate]:
        """The implementations to try that libraries think best, beside those that they never make ready."""
        for rival in self.task.rivals:
            ready = 0
            for candidate in rival.candidates:
                if ready >= self._session.effort.library:
                    break
                if candidate not in self._trials.known:
                    yield candidate
                ready += self._trials.known[candidate].trial.status is not Status.REJECTED

    def _is_due(self, turn: LibraryTurn, stop: Stop | None) -> bool:
        """Whether a library's next implementation is tried now, and not a schedule.

        One is tried whatever the time, so that no problem is decided without the library, or two where it does not make the
        first ready; others within their share of the problem's time, or where schedules leave some.
        """
        is_ready = any(trial.status is not Status.REJECTED for trial in self.library)
        if not is_ready and len(self.library) < FEWEST_OF_LIBRARY:
            return True
        return turn.has_time_left if stop is not None else turn.is_within_share

    def _ask(self) -> None:
        """Ask for as many schedules as may be outstanding, and have them compiled."""
        left = min(self._session.effort.trials - len(self.tried), WINDOW)
        allowed = inf if self._has_only_failed else self._limits.trials - self.measured
        most = int(min(left, allowed))
        asked = self._competition.ask(most - len(self._asked))
        self._asked += asked
        self._session.bench.expect(self._trials.requests(asked))
        self._exhausted = not self._asked

    def expect_finalists(self) -> None:
        """Have the schedules made ready that would be compared if nothing better came."""
        finalists = self._finalists()
        fresh = [candidate for candidate in finalists if candidate not in self._hopeful]
        if fresh and not self._trials.are_compared(finalists, self._session.effort.rounds):
            self._session.bench.expect(self._trials.requests(fresh, Stage.FINAL))
            self._hopeful.update(fresh)

    def _try_next(self) -> None:
        """Measure what was asked for first, and tell the searcher that asked for it."""
        candidate = self._asked.popleft()
        trial = self._trials.search(candidate, self._competition.proposer(candidate))
        self._count(trial)
        self._competition.tell(candidate.maker, [trial])

    def _count(self, trial: Trial) -> None:
        """Count a trial towards patience, which begins with the first trial that runs."""
        self._best = min(self._best, trial.cost)
        if trial.candidate.family != GENERATED:
            self.library.append(trial)
            return
        self.tried.append(trial)
        self._generated = min(self._generated, trial.cost)
        if self._generated < IMPROVEMENT * self._reference:
            self._reference, self._stale = self._generated, 0
        elif self._generated < inf:
            self._stale += 1

    def _finalists(self, *, is_short: bool = False) -> list[Candidate]:
        """The best of all that ran, as the search measured them; of each library the best few; fewer if time is short."""
        families: dict[str, list[Trial]] = {GENERATED: []}
        for history in self._trials.known.values():
            if history.trial.ran:
                families.setdefault(history.trial.candidate.family, []).append(history.trial)
        finalists: list[Candidate] = []
        for family, ran in families.items():
            count = self._session.effort.finalists if family == GENERATED else LIBRARY_FINALISTS
            if is_short:
                count = min(count, FEWEST if family == GENERATED else 1)
            best = sorted(ran, key=lambda trial: trial.cost)[:count]
            finalists += [trial.candidate for trial in best]
        return finalists
