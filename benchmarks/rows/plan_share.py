"""A plan's share of generated kernels, and how the record of a row that tuned the plan holds it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rows.result_file import Record
from wpk.plan.plan import Step

_TUNED = "tuned"


@dataclass(frozen=True)
class Share:
    """Operators of which cuDNN had a correct implementation.

    Attributes:
        operators: How many.
        generated: Of these a generated kernel computes so many.
        seconds: Time of all, as chosen, each among its neighbours where that was measured.
        generated_seconds: Of those that a generated kernel computes.
    """

    operators: int = 0
    generated: int = 0
    seconds: float = 0.0
    generated_seconds: float = 0.0

    def __add__(self, other: Share) -> Share:
        """Of both."""
        return Share(
            self.operators + other.operators,
            self.generated + other.generated,
            self.seconds + other.seconds,
            self.generated_seconds + other.generated_seconds,
        )

    @property
    def by_number(self) -> float | None:
        """Generated kernels among the operators; None where there are no operators."""
        return self.generated / self.operators if self.operators else None

    @property
    def by_time(self) -> float | None:
        """Their part of the time; None where there is no time."""
        return self.generated_seconds / self.seconds if self.seconds else None


def share_of(steps: Sequence[Step]) -> Share:
    """Of a plan's steps. What cuDNN could not compute correctly does not count."""
    total = Share()
    for step in steps:
        measured = step.evidence.measurement
        if measured is None or measured.library is None:
            continue
        seconds = step.evidence.in_engine_seconds or measured.median_seconds
        ours = step.image is None
        total += Share(1, int(ours), seconds, seconds * ours)
    return total


def tuned_figures(case: str, share: Share) -> dict[str, Any]:
    """What the figures of a row that tuned a case say of its plan."""
    return {_TUNED: {"case": case, "share": asdict(share)}}


def share_in(record: Record) -> tuple[str, Share] | None:
    """The case that a record's row tuned and the share of its plan; None where it holds none."""
    tuned = record.get("figures", {}).get(_TUNED)
    return None if tuned is None else (tuned["case"], Share(**tuned["share"]))
