"""What a library is: what is known of it everywhere, and what it does on a GPU.

Another library is a file with a `Library`, and a line in `wpk.libraries.registry`.
"""

import abc
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from wpk.candidate import Configuration
from wpk.device import CudaDevice
from wpk.problems import Problem

ALIGNMENT = 16
"""Bytes that every address given to a library is a multiple of."""


class LibraryCandidate(Protocol):
    """One way in which a library computes a problem at the sizes that it was tuned for.

    Attributes:
        name: What the library calls this implementation, its settings included: no other one of the
            same version is called so.
        configuration: The same in numbers: enough to make it again.
    """

    name: str
    configuration: Configuration

    def prepare(self) -> str | None:
        """Make it ready to run; why it cannot be, in words, or None. May take a second."""

    def add_step(self) -> None:
        """Take note, once prepared, of one more step that is computed by it, perhaps at the same time as the others.

        Raises:
            EngineError: It cannot be.
        """

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory that `run` needs, once prepared."""

    def run(self, pointers: Sequence[int], workspace: int, stream: int) -> None:
        """Put it on a stream. Can be captured into a CUDA graph.

        Args:
            pointers: Addresses of the operator's inputs, then of its output; multiples of 16.
            workspace: Address of ``workspace_bytes`` bytes; 0 where that is 0.
            stream: Handle of the stream.

        Raises:
            LaunchError: It cannot be started, or an address is not aligned.
        """


@dataclass(frozen=True)
class Proposals:
    """What a library on a GPU answers to a problem.

    Attributes:
        candidates: Its proposals, best guess first; some may turn out not to prepare.
        refusals: Why there are none, or not of every form, in words.
    """

    candidates: Sequence[LibraryCandidate]
    refusals: tuple[str, ...]


class OpenLibrary(Protocol):
    """A library that is loaded on a GPU.

    Attributes:
        version: Its own, e.g. ``9.28.0``: candidates of another version are other ones.
    """

    version: str

    def offer(self, problem: Problem) -> Proposals:
        """All that it proposes for a problem."""

    def candidate(self, problem: Problem, configuration: Configuration) -> LibraryCandidate:
        """The implementation that a configuration names.

        Raises:
            EngineError: This version has no such implementation.
        """

    def close(self) -> None:
        """Let go of all; before the device is closed. Its candidates cannot run any more."""


class Library(abc.ABC):
    """A library that computes problems, installed or not.

    Attributes:
        name: What plans, stores and reports call it.
    """

    name: ClassVar[str]

    def is_asked(self) -> bool:
        """Whether it takes part here; where it does and is not installed, reports say so."""
        return True

    @abc.abstractmethod
    def why_not(self, problem: Problem) -> str | None:
        """Why it cannot be asked for a problem, in words; None if it can."""

    @abc.abstractmethod
    def constant_layout(self, problem: Problem, configuration: Configuration) -> str | None:
        """How an implementation reads the constant operand; None where there is none.

        Raises:
            ValueError: It does not compute the problem, or not by such an implementation.
        """

    @abc.abstractmethod
    def recipe(self, problem: Problem, configuration: Configuration) -> bytes:
        """What the library makes an implementation of where there is no Python: a spec holds it as it is.

        Raises:
            ValueError: It does not compute the problem, or not by such an implementation.
        """

    @abc.abstractmethod
    def requirement(self, version: str) -> str:
        """What pip installs to have a version."""

    @abc.abstractmethod
    def open(self, device: CudaDevice) -> OpenLibrary:
        """Load it on a GPU.

        Raises:
            EngineError: It is not installed, or does not start.
        """
