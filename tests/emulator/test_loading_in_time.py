"""Kernels are compiled in the background, and may be waited for."""

import time
from pathlib import Path

import pytest

from wpk.emulator import emulator as module
from wpk.emulator.emulator import Emulator
from wpk.errors import CompileError
from wpk.execution import KernelImage
from wpk.kernel_source import KernelSource

Told = list[tuple[str, int, int]]


def _load(emulator: Emulator, count: int) -> None:
    for number in range(count):
        source = KernelSource(f"kernel_{number}", "")
        emulator.load(KernelImage(f"{number:064x}", source, b""))


def test_waiting_tells_of_every_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def compile_slowly(source: KernelSource, **options: object) -> Path:
        time.sleep(0.1)
        done.append(source.entry)
        return Path(source.entry)

    monkeypatch.setattr(module, "compile_unit", compile_slowly)
    told: Told = []
    emulator = Emulator()
    _load(emulator, 3)
    emulator.finish_loading(lambda stage, part, total, left=None: told.append((stage, part, total)))
    assert len(done) == 3
    assert told == [("compiling kernels for the CPU", part, 3) for part in range(4)]
    emulator.finish_loading(lambda *said, left=None: told.append(said))  # type: ignore[arg-type]
    assert len(told) == 4


def test_what_does_not_compile_is_told_while_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(source: KernelSource, **options: object) -> Path:
        time.sleep(0.1)
        raise CompileError(f"{source.entry} does not compile", fix="mend it")

    monkeypatch.setattr(module, "compile_unit", fail)
    emulator = Emulator()
    _load(emulator, 1)
    with pytest.raises(CompileError, match="kernel_0 does not compile"):
        emulator.finish_loading(lambda stage, part, total, left=None: None)
