"""How long libraries may take of a problem's time: they share it with schedules, whose trials cost a tenth."""

from __future__ import annotations

from dataclasses import dataclass

from wpk.search.loop.budget import Slice

LIBRARY_SHARE = 0.25
"""The part of a problem's time that libraries may take, beyond a first try: cuDNN compiles what it fuses when it is
asked to, 0.4 s a try where a schedule takes 0.03 (docs/decisions/0062-time-of-libraries.md)."""


@dataclass
class LibraryTurn:
    """What libraries took of one turn of a problem's search.

    Attributes:
        now: The session's clock.
        limits: Of the turn.
    """

    now: float
    limits: Slice

    def __post_init__(self) -> None:
        self._begun, self._taken, self._tries = self.now, 0.0, 0

    def passed(self, now: float) -> None:
        """A try took until now."""
        self._taken, self._tries, self.now = self._taken + now - self.now, self._tries + 1, now

    @property
    def has_time_left(self) -> bool:
        """Whether the turn goes on."""
        return self.now < self.limits.until

    @property
    def is_within_share(self) -> bool:
        """Whether another try will not take more than the libraries' share."""
        another = self._taken / max(1, self._tries)
        return self._taken + another <= LIBRARY_SHARE * (self.limits.until - self._begun)
