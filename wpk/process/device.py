"""What devices have in common whose kernels and memory are a child process's."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Self, TypeVar

from wpk.process.child import ChildProcess

T = TypeVar("T")


class ChildDevice(ABC):
    """A device in a child process. Use it as a context manager, or call `close`."""

    def __init__(self, child: ChildProcess) -> None:
        """Talk to a child that was started."""
        self._child = child

    def __enter__(self) -> Self:
        """Nothing more to do: the child runs."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Close."""
        self.close()

    @property
    def is_alive(self) -> bool:
        """Whether it can be called."""
        return self._child.is_alive

    def close(self) -> None:
        """End the child."""
        self._child.end()

    def allocate(self, size: int) -> int:
        """See `wpk.execution.Device.allocate`; the address is one of the child's."""
        return self._ask("allocate", size, answer=int)

    def free(self, address: int) -> None:
        """Give memory back. That of a child that has ended is free already.

        Raises:
            LaunchError: The device found that something was written next to it.
        """
        if self.is_alive:
            self._tell("free", address)

    def fill(self, address: int, size: int, byte: int) -> None:
        """See `wpk.execution.Device.fill`."""
        self._tell("fill", address, size, byte)

    def _tell(self, method: str, *arguments: object, data: memoryview | None = None) -> None:
        with self._supervised(method) as seconds:
            self._child.ask(method, *arguments, data=data, limit_seconds=seconds)

    def _ask(
        self,
        method: str,
        *arguments: object,
        answer: type[T],
        size: int = 0,
        limit: float | None = None,
    ) -> T:
        with self._supervised(method, limit) as seconds:
            found: T = self._child.ask(
                method, *arguments, answer=answer, size=size, limit_seconds=seconds
            )
        return found

    @abstractmethod
    def _supervised(self, method: str, limit: float | None = None) -> AbstractContextManager[float]:
        """Gives the time limit of a call, ``limit`` or the device's own, and says in words how the child ended in it."""
