"""What the elements of a result may differ by: a part of it at once, and the whole where that part does not do."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from wpk.checks.bounded import Floats


class Allowance:
    """What each element of a result may differ by.

    Attributes:
        floor: What is allowed at least: an element that differs by no more is right. None where nothing less than
            the whole is known.
    """

    def __init__(self, floor: Floats | None, compute: Callable[[], Floats]) -> None:
        """Describe it.

        Args:
            floor: Nowhere larger than the whole.
            compute: Gives the whole; called once, where it is asked for.
        """
        self.floor, self._compute = floor, compute

    @classmethod
    def known(cls, whole: Floats) -> Allowance:
        """What has been computed."""
        return cls(None, lambda: whole)

    @cached_property
    def whole(self) -> Floats:
        """All that is allowed."""
        return self._compute()
