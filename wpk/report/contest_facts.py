"""Generated kernels and a library side by side, over a whole plan."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ContestFacts:
    """Counts only operators for which the library had a correct candidate.

    Attributes:
        library: Its name.
        operators: How many.
        generated: How many of them a generated kernel computes.
        seconds: Time of these operators, each alone.
        generated_seconds: The part of it in which generated kernels run.
        faster: Operators whose best generated kernel is faster than the library's best, beyond
            noise.
        even: As fast, within noise.
        slower: Slower, beyond noise, or without a generated kernel that ran.
        speedup: Geometric mean of how much faster the choices are than the library's best.
        generated_speedup: The same of the best generated kernels; None where one is missing.
    """

    library: str
    operators: int
    generated: int
    seconds: float
    generated_seconds: float
    faster: int
    even: int
    slower: int
    speedup: float
    generated_speedup: float | None

    @property
    def share_by_number(self) -> float:
        """Part of the operators that generated kernels compute."""
        return self.generated / self.operators

    @property
    def share_by_time(self) -> float:
        """Part of the operators' time in which generated kernels run."""
        return self.generated_seconds / self.seconds
