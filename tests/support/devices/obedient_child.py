"""The child of a `ChildProcess` that does what tests ask of it: ``python -m support.devices.obedient_child``."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from wpk.errors import EngineError, PlanError
from wpk.process import ChildProcess, serve


@dataclass(frozen=True)
class Facts:
    """An answer with fields."""

    name: str
    sizes: tuple[int, ...]
    code: bytes


def start() -> ChildProcess:
    """One; the folder of the tests has to be in ``PYTHONPATH``."""
    return ChildProcess("support.devices.obedient_child", "made of words", errors=(EngineError,))


class Service:
    """What it can do."""

    def __init__(self, words: str) -> None:
        self._words = words

    def facts(self, *sizes: int) -> Facts:
        return Facts(self._words, sizes, b"\0\xff")

    def swap(self, data: bytearray) -> None:
        self._data = data[::-1]

    def swapped(self) -> bytes:
        return bytes(self._data)

    def fail(self, kind: str) -> None:
        raise {"engine": EngineError, "plan": PlanError}[kind]("it fails", fix="do not ask")

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def touch_late(self, path: Path, seconds: float) -> None:
        time.sleep(seconds)
        path.touch()

    def say(self, words: bytes) -> None:
        """Write what no child does to where answers go: the socket is the only one that is open."""
        for descriptor in range(3, 64):
            try:
                if os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:"):
                    os.write(descriptor, words)
            except OSError:
                continue

    def leave(self, status: int) -> None:
        os._exit(status)


if __name__ == "__main__":
    from support.devices.obedient_child import (
        Service as Named,  # its types have the names that the parent knows
    )

    serve(Named)
