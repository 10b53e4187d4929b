"""Generated kernels and a library side by side, over a whole plan."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ContestFacts:
    """Counts only operators for which the library had a correct candidate.

    Attributes:
        library: Its name.
        operators: How many.
        generated: How many of them a generated kernel computes.
        share_by_number: The same as a part of the operators.
        share_by_time: The part of these operators' time, each alone, in which generated kernels run.
        faster: Operators whose best generated kernel is faster than the library's best, beyond
            noise.
        even: Operators for which both are equally fast within noise.
        slower: Slower, beyond noise, or without a generated kernel that ran.
        speedup: Geometric mean of how much faster the choices are than the library's best.
        generated_speedup: The same of the best generated kernels; None where one is missing.
    """

    library: str
    operators: int
    generated: int
    share_by_number: float
    share_by_time: float
    faster: int
    even: int
    slower: int
    speedup: float
    generated_speedup: float | None
