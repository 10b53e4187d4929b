"""A candidate with its outcome."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from wpk.candidate import Candidate


class Status(StrEnum):
    """How a trial ended."""

    OK = "ok"
    REJECTED = "rejected"
    COMPILE_FAILED = "compile_failed"
    LAUNCH_FAILED = "launch_failed"
    WRONG_RESULT = "wrong_result"
    TIMED_OUT = "timed_out"


class Regime(StrEnum):
    """What the caches hold when a measurement starts."""

    COLD = "cold"  # weights and activations lie in global memory
    WARM = "warm"  # they are in L2, as far as they fit


@dataclass(frozen=True)
class Trial:
    """One candidate that was tried.

    Attributes:
        candidate: What was tried.
        status: Outcome.
        seconds: Every measured repetition; empty where nothing was measured.
        detail: Why it was rejected or failed, in words; when ok, what it was not checked on.
        proposer: Who proposed the candidate; empty where that is not known.
    """

    candidate: Candidate
    status: Status
    seconds: tuple[float, ...] = ()
    detail: str = ""
    proposer: str = ""

    @property
    def ran(self) -> bool:
        """Whether it was right."""
        return self.status is Status.OK

    @property
    def cost(self) -> float:
        """Median seconds, or infinity for anything that did not run correctly."""
        return median(self.seconds) if self.ran and self.seconds else float("inf")


def fastest(trials: Iterable[Trial]) -> Trial | None:
    """The trial with the least median; None where there is none."""
    return min(trials, key=lambda trial: trial.cost, default=None)
