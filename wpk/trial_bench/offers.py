"""Libraries are asked in the background what they offer for a model's problems, while schedules are scored."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from wpk.backends import GpuProcess
from wpk.errors import LaunchError
from wpk.libraries import LibraryOffer, asked_libraries
from wpk.problems import Problem
from wpk.trial_bench.gpu_lease import GpuLease


class Offers:
    """Offers are the libraries' answers for distinct problems.

    Until the first `of` returns, the lease is not to be used. Use it as a context manager: on leaving, nothing more is asked.
    """

    def __init__(self, lease: GpuLease, problems: Iterable[Problem]) -> None:
        """Begin to ask."""
        self._lease, self._problems = lease, tuple(dict.fromkeys(problems))
        self._is_over = False
        self._thread = ThreadPoolExecutor(1)
        self._answers = self._thread.submit(self._ask)

    def __enter__(self) -> Self:
        """The answers themselves."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Wait for the answer that is under way, if any."""
        self._is_over = True
        self._thread.shutdown()

    def of(self, problem: Problem) -> tuple[LibraryOffer, ...]:
        """Return the answers for one of the problems, a library each; wait until all are there.

        Raises:
            EngineError: The GPU cannot be used.
            LaunchError: No process for it starts.
        """
        return self._answers.result()[problem]

    def _ask(self) -> dict[Problem, tuple[LibraryOffer, ...]]:
        answers = {}
        for problem in self._problems:
            if self._is_over:
                break
            answers[problem] = tuple(
                _offer(self._lease.process(), each, problem) for each in asked_libraries()
            )
        return answers


def _offer(gpu: GpuProcess, library: str, problem: Problem) -> LibraryOffer:
    """The answer; nothing, and why, where it takes the process with it or never answers."""
    try:
        return gpu.offer(library, problem)
    except LaunchError as error:
        return LibraryOffer(library, "", (), (f"asked what it offers, {error.what}",))
