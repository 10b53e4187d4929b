"""A device with streams and marks that executes on the CPU at once.

Its memory is the process's, so that arrays of NumPy stand for those of other libraries.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from wpk.emulator import Emulator
from wpk.execution import OneByOne, Predecessors, Work


class Started(OneByOne):
    """Work of a device, started at once on whatever stream."""

    def __init__(self, device: Streams, works: Sequence[Work]) -> None:
        super().__init__(device.launch, works)
        self._log = device.log

    def replay_on(self, stream: int) -> None:
        self._log.append(("replay", stream))
        self.replay()


class Logged:
    """A mark that notes in a log what it was asked, and of which stream."""

    def __init__(self, log: list[tuple[str, int]]) -> None:
        self._log = log

    def record(self, stream: int) -> None:
        self._log.append(("record", stream))

    def hold(self, stream: int) -> None:
        self._log.append(("hold", stream))

    def wait(self) -> None:
        self._log.append(("wait", 0))


class Accountant(Emulator):
    """Counts captures, and knows what is allocated.

    Attributes:
        captured: How often work was captured.
        held: Addresses of allocations not given back.
    """

    def __init__(self) -> None:
        super().__init__()
        self.captured = 0
        self.held: set[int] = set()

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> OneByOne:
        self.captured += 1
        return super().capture(works)

    def allocate(self, size: int) -> int:
        address = super().allocate(size)
        self.held.add(address)
        return address

    def free(self, address: int) -> None:
        self.held.remove(address)
        super().free(address)


class Streams(Accountant):
    """Executes at once, and notes what was asked for.

    Attributes:
        log: What was asked of marks, replays and copies, each with its stream.
        elsewhere: The GPU of an address that does not lie on this one; None for no GPU's memory.
        inside: How often it is active just now.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ordinal, self.stream = 0, 77
        self.log: list[tuple[str, int]] = []
        self.elsewhere: dict[int, int | None] = {}
        self.inside = 0

    def __enter__(self) -> None:
        self.inside += 1

    def __exit__(self, *error: object) -> None:
        self.inside -= 1

    def active(self) -> Streams:
        return self

    @property
    def current(self) -> Streams:
        return self

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> Started:
        assert self.inside
        self.captured += 1
        return Started(self, works)

    def make_mark(self) -> Logged:
        return Logged(self.log)

    def located(self, address: int) -> int | None:
        return self.elsewhere.get(address, 0)

    def copy_on(self, stream: int, source: int, target: int, size: int) -> None:
        self.log.append(("copy", stream))
        ctypes.memmove(target, source, size)

    def settle(self) -> None:
        pass
