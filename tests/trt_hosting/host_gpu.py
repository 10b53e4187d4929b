"""A double of a GPU, written by us: its memory is the host's, and work is executed when it is given."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from wpk.execution import Bytes, OneByOne, Replay, Work


class HostGpu:
    """What `wpk.nvinfer.PlacedEngine` asks of a `CudaDevice`."""

    work_stream = 7
    ordinal = 0

    def __init__(self, *, libraries: Any) -> None:
        self._libraries = libraries
        self._memory: dict[int, Bytes] = {}
        self.seconds_taken = 0.0

    def __enter__(self) -> "HostGpu":
        return self

    def __exit__(self, *error: object) -> None:
        assert not self._memory, "all memory is given back"
        self._libraries.close()

    @contextmanager
    def active(self) -> Iterator[None]:
        yield

    def allocate(self, size: int) -> int:
        memory = np.empty(size, np.uint8)
        address = int(memory.ctypes.data)
        self._memory[address] = memory
        return address

    def free(self, address: int) -> None:
        del self._memory[address]

    def write(self, address: int, data: Bytes) -> None:
        self._memory[address][: data.size] = data

    def read(self, address: int, size: int) -> Bytes:
        return self._memory[address][:size].copy()

    def fill(self, address: int, size: int, byte: int) -> None:
        self._memory[address][:size] = byte

    def launch(self, work: Work) -> None:
        self._libraries.call(work, self)

    def capture(self, works: Sequence[Work]) -> Replay:
        return OneByOne(self.launch, works)

    def synchronize(self) -> None:
        pass

    def seconds(self, replay: Replay) -> float:
        """What the executed engine says that it takes, which is noted by whoever executes."""
        before = self._libraries.seconds
        replay.replay()
        return float(self._libraries.seconds - before)
