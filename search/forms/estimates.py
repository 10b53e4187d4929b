"""What the models say of problems that no form before had; each is asked once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from wpk.errors import ScheduleError
from wpk.performance import bound
from wpk.problems import Problem, lifted
from wpk.schedules import TEMPLATES
from wpk.search.models import WAVES, Pruning, Shortlists, least_seconds, shortlist_all
from wpk.targets import Target


@dataclass
class Estimates:
    """Estimates remember what they were asked for: seconds of problems that differ in more than numbers, and shortlists.

    Attributes:
        target: The GPU.
        skip: Names of templates not to use.
        pruning: What keeps schedules.
        shortlists: What is known.
    """

    target: Target
    skip: Collection[str] = ()
    pruning: Pruning = WAVES
    shortlists: dict[Problem, Shortlists] = field(default_factory=dict)
    _seconds: dict[Problem, float] = field(default_factory=dict)

    def seconds(self, problem: Problem) -> float:
        """Return the estimate of the best schedule of any template, before it is compiled.

        Raises:
            ScheduleError: No template computes the problem.
        """
        if problem not in self._seconds:
            self._seconds[problem] = self._least(problem)
        return self._seconds[problem]

    def _least(self, problem: Problem) -> float:
        if problem in self.shortlists:
            return min(each.least for each in self.shortlists[problem].templates)
        alike = lifted(problem).problem  # by numbers that change no estimate
        if alike not in self._seconds:
            asked = TEMPLATES, self.target, self.skip, self.pruning
            self._seconds[alike] = least_seconds(problem, *asked)
        return self._seconds[alike]

    def headroom(self, problem: Problem) -> float:
        """Return the seconds of this estimate that another form could save at most: beyond bound and launch.

        Raises:
            ScheduleError: No template computes the problem.
        """
        floor = bound(problem, self.target).seconds + self.target.launch_seconds
        return max(0.0, self.seconds(problem) - floor)

    def prepare(self, problems: Iterable[Problem], goes_on: Callable[[], bool]) -> None:
        """Shortlist problems, as long as that goes on, so that `of` has them at once."""
        for problem in problems:
            if not goes_on():
                return
            with suppress(ScheduleError):  # `of` says it to whoever asks
                self.of([problem])

    def of(self, problems: Collection[Problem]) -> Mapping[Problem, Shortlists]:
        """Return the shortlists of some problems.

        Raises:
            ScheduleError: No template computes one of them.
        """
        for problem in problems:
            if problem not in self.shortlists:
                asked = problem, TEMPLATES, self.target, self.skip, self.pruning
                found = shortlist_all(*asked)
                self.shortlists[problem] = found
        return {problem: self.shortlists[problem] for problem in problems}
