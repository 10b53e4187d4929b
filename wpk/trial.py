"""A candidate with its outcome."""

from dataclasses import dataclass
from enum import StrEnum
from statistics import median


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
    """One schedule that was tried.

    Attributes:
        schedule: Parameter names and values.
        status: Outcome.
        seconds: Every measured repetition; empty where nothing was measured.
        detail: Why it was rejected or failed, in words; when ok, what it was not checked on.
    """

    schedule: tuple[tuple[str, int], ...]
    status: Status
    seconds: tuple[float, ...] = ()
    detail: str = ""

    @property
    def cost(self) -> float:
        """Median seconds, or infinity for anything that did not run correctly."""
        return median(self.seconds) if self.status is Status.OK and self.seconds else float("inf")
