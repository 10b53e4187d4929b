"""What candidates are checked and timed on: operands and references, computed while others are measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from wpk.problems import Problem
from wpk.trial_bench import Case
from wpk.trial_bench.odd_case import odd_case

_REFERENCE_THREADS = 3


class Cases(Mapping[Problem, Case]):
    """Cases compute the operands and references of problems in the background, in their order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Begin."""
        self._pool = ThreadPoolExecutor(_REFERENCE_THREADS, "reference")
        self._made: dict[Problem, Future[Case]] = {
            problem: self._pool.submit(_case, problem) for problem in problems
        }

    def __enter__(self) -> Cases:
        """The cases."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Compute no more."""
        self._pool.shutdown(cancel_futures=True)

    def __getitem__(self, problem: Problem) -> Case:
        """Return the case of a problem; wait for it."""
        return self._made[problem].result()

    def __iter__(self) -> Iterator[Problem]:
        """All problems."""
        return iter(self._made)

    def __len__(self) -> int:
        """Number of problems."""
        return len(self._made)


def _case(problem: Problem) -> Case:
    made = odd_case(problem)
    if made is None:
        raise ValueError(f"{problem.words()} is not a number everywhere at random operands")
    return made
