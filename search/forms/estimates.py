"""What the models say of problems that no form before had; each is asked once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from wpk.problems import Problem
from wpk.schedules import TEMPLATES
from wpk.search.models import WAVES, Pruning, Shortlists, shortlist_all
from wpk.targets import Target


@dataclass
class Estimates:
    """Estimates remember the shortlists of every problem that they were asked for.

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

    def seconds(self, problem: Problem) -> float:
        """Return the estimate of the best schedule of any template, before it is compiled.

        Raises:
            ScheduleError: No template computes the problem.
        """
        return min(each.ranked[0].estimate for each in self.of([problem])[problem].templates)

    def headroom(self, problem: Problem) -> float:
        """Return the seconds of this estimate that another form could save at most: beyond bound and launch.

        Raises:
            ScheduleError: No template computes the problem.
        """
        floor = self.of([problem])[problem].bound.seconds + self.target.launch_seconds
        return max(0.0, self.seconds(problem) - floor)

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
