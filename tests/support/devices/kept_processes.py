"""Child processes kept from test to test: an interpreter and its imports take longer than most tests ask of a child.

Compilers, emulators and ONNX Runtimes are lent: whoever closes one, or forgets it, gives it back, and the next who starts one
has it. One that hangs, has died or is at work when it is given back is ended, as it is outside of tests.
"""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

import wpk.build.pool
import wpk.emulator.child
import wpk.runtime.process
from wpk.process import ChildLostError, ChildProcess, SharedMemory

_USERS = (wpk.build.pool, wpk.emulator.child, wpk.runtime.process)
_MOST_LOANS = 100
"""A child keeps what it loaded: it is made new now and then."""

_Key = tuple[object, ...]
"""What is executed, and the descriptors that it has."""


class _Kept:
    """A child, and how it is used."""

    def __init__(self, key: _Key, process: ChildProcess) -> None:
        self.key, self.process = key, process
        self.loans = 0
        self.is_at_work = False
        self.was_killed = False

    @property
    def is_free(self) -> bool:
        """Whether others may have it."""
        busy = self.is_at_work or self.was_killed or self.loans >= _MOST_LOANS
        return self.process.is_alive and not busy


class KeptProcesses:
    """Starts children, and takes back those that are ended while they wait to be asked."""

    def __init__(self) -> None:
        self.spare: defaultdict[_Key, list[_Kept]] = defaultdict(list)
        self.started = 0
        self.memories: list[SharedMemory] = []

    def start(
        self, module: str, *arguments: object, descriptors: Sequence[int] = (), **options: Any
    ) -> Any:
        """A child that nobody uses: one that was given back, else a new one. See `ChildProcess`."""
        start = partial(ChildProcess, module, *arguments, descriptors=descriptors, **options)
        if options.get("environment") is not None:  # under sanitizers
            return start()
        key = (module, *descriptors)
        while self.spare[key]:
            kept = self.spare[key].pop()
            if kept.process.is_alive:
                return _LentProcess(self, kept)
            kept.process.end()
        self.started += 1
        return _LentProcess(self, _Kept(key, start()))

    def memory(self) -> SharedMemory:
        """Memory whose child nobody uses, else new memory."""
        for memory in self.memories:
            if self.has_spare_child(memory):
                return memory
        self.memories.append(_KeptMemory(self))
        return self.memories[-1]

    def has_spare_child(self, memory: SharedMemory) -> bool:
        """Whether the child that has this memory waits for the next who starts one."""
        return any(kept and key[1:] == (memory.descriptor,) for key, kept in self.spare.items())

    def take_back(self, kept: _Kept) -> None:
        """Keep a child for others, or end it."""
        kept.loans += 1
        if kept.is_free:
            self.spare[kept.key].append(kept)
        else:
            kept.process.end()

    def end(self) -> None:
        """End those that were given back."""
        for each in self.spare.values():
            while each:
                each.pop().process.end()
        for memory in list(self.memories):
            memory.close()


class _LentProcess:
    """A `ChildProcess` that outlives its end."""

    def __init__(self, keeper: KeptProcesses, kept: _Kept) -> None:
        self._kept, self._has_ended = kept, False
        self._give_back = weakref.finalize(self, keeper.take_back, kept)

    @property
    def pid(self) -> int:
        return self._kept.process.pid

    @property
    def is_alive(self) -> bool:
        return not self._has_ended and self._kept.process.is_alive

    def kill(self) -> None:
        if not self._has_ended:
            self._kept.was_killed = True
            self._kept.process.kill()

    def end(self) -> None:
        self._has_ended = True
        self._give_back()

    def ask(self, *arguments: Any, **options: Any) -> Any:
        if self._has_ended:
            raise ChildLostError(None)
        self._kept.is_at_work = True
        try:
            return self._kept.process.ask(*arguments, **options)
        finally:
            self._kept.is_at_work = False


class _KeptMemory(SharedMemory):
    """Memory that stays with its child."""

    def __init__(self, keeper: KeptProcesses) -> None:
        super().__init__()
        self._keeper = keeper

    def close(self) -> None:
        if not self._keeper.has_spare_child(self):
            self._keeper.memories.remove(self)
            super().close()


_OWN = [(user, "ChildProcess", user.ChildProcess) for user in _USERS]
_OWN.append((wpk.runtime.process, "SharedMemory", SharedMemory))


def own_processes(patch: pytest.MonkeyPatch) -> None:
    """Let everybody start children of their own, as outside of tests."""
    for user, name, own in _OWN:
        patch.setattr(user, name, own)


@contextmanager
def kept_processes() -> Iterator[KeptProcesses]:
    """Let compilers, emulators and ONNX Runtimes of this process be lent."""
    kept = KeptProcesses()
    with pytest.MonkeyPatch.context() as patch:
        for user in _USERS:
            patch.setattr(user, "ChildProcess", kept.start)
        patch.setattr(wpk.runtime.process, "SharedMemory", kept.memory)
        yield kept
    kept.end()
