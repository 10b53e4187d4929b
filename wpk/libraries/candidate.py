"""What a library offers for a problem: an implementation that can be executed, checked and timed."""

from collections.abc import Sequence
from typing import Protocol

from wpk.candidate import Configuration


class LibraryCandidate(Protocol):
    """One way in which a library computes a problem at the sizes that it was tuned for.

    Attributes:
        library: Name and version, e.g. ``cuDNN 9.28.0``.
        name: What the library calls this implementation, its settings included: no other one of the
            same version is called so.
        configuration: The same in numbers: enough to make it again.
        layout: How the constant operand lies in memory (`wpk.libraries.constant_layouts`); None
            where the problem has none.
    """

    library: str
    name: str
    configuration: Configuration
    layout: str | None

    def prepare(self) -> str | None:
        """Make it ready to run; why it cannot be, in words, or None. May take a second."""

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
