"""What a report says about a distinct problem: all operators that are it share one search."""

from dataclasses import dataclass

from wpk.plan import Measurement


@dataclass(frozen=True)
class FunnelFacts:
    """How a template's space was narrowed; `refusal` says why it was not asked, if it was not."""

    template: str
    refusal: str
    space: int
    legal: int
    kept: int
    compiled: int


@dataclass(frozen=True)
class ProblemFacts:
    """A distinct problem.

    Attributes:
        work: In words.
        kind: Its family.
        operators: Names of its operators.
        chosen: The templates and libraries that compute them.
        bound_us: What nothing can beat.
        funnels: One for each template that was asked or refused.
        measurement: How its search went; None where nothing was measured.
    """

    work: str
    kind: str
    operators: tuple[str, ...]
    chosen: tuple[str, ...]
    bound_us: float
    funnels: tuple[FunnelFacts, ...]
    measurement: Measurement | None
