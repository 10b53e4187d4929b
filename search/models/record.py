"""What the models did with a problem's schedules, in numbers and reasons."""

from __future__ import annotations

from dataclasses import dataclass

from wpk.performance import SharedCost
from wpk.schedules import Schedule


@dataclass(frozen=True)
class Prediction:
    """What the models say of a schedule.

    Attributes:
        schedule: The schedule.
        score: Extended PUL with its bank conflicts counted, between 0 and 1.
        shared: What its shared memory loads cost: COEF_bc and passes a load.
        estimate: Predicted seconds.
    """

    schedule: Schedule
    score: float
    shared: SharedCost
    estimate: float


@dataclass(frozen=True)
class SpaceCounts:
    """How many schedules of one template were left after each step.

    Attributes:
        template: Name of the template.
        space: All combinations of its parameters' values.
        legal: Those that meet its limits.
        scored: Those that were scored; fewer than legal only where there were too many.
        counted: Those whose bank conflicts were counted.
        kept: Those that the score left, which the estimate then ranks.
    """

    template: str
    space: int
    legal: int
    scored: int
    counted: int
    kept: int


@dataclass(frozen=True)
class TemplateRefusal:
    """Why a template or one of its schedules is no candidate.

    Attributes:
        template: Name of the template.
        schedule: The schedule's text; empty where the whole template is refused.
        reason: In words.
    """

    template: str
    schedule: str
    reason: str


@dataclass(frozen=True)
class SearchRecord:
    """A static search of one problem.

    Attributes:
        spaces: One a template that can carry the problem.
        finalists: Template of each finalist handed to the compiler.
        refusals: Templates and compiled finalists that were refused.
        warning: What is wrong with the choice though nothing better was there; empty if nothing is.
    """

    spaces: tuple[SpaceCounts, ...]
    finalists: tuple[str, ...]
    refusals: tuple[TemplateRefusal, ...]
    warning: str = ""
