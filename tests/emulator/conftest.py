"""Compile a fixture kernel for the CPU and execute it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import pytest

from wpk.emulator.build import compile_unit
from wpk.emulator.mode import FAST, Mode
from wpk.emulator.native import Statistics, Value, launch_kernel
from wpk.kernel_source import KernelSource

KERNELS = Path(__file__).parent / "kernels"

Edits = Sequence[tuple[str, str]]


class Emulate(Protocol):
    """Execute ``entry`` of kernels/``file``.cu, with pieces of its text replaced."""

    def __call__(
        self,
        file: str,
        entry: str,
        arguments: Sequence[Value],
        *,
        grid: tuple[int, int, int] = (1, 1, 1),
        threads: int = 32,
        block: tuple[int, int, int] | None = None,
        shared_bytes: int = 0,
        mode: Mode = FAST,
        edits: Edits = (),
        seed: int = 0,
    ) -> Statistics: ...


def edited(file: str, edits: Edits) -> str:
    """The text of a fixture; every edit must match exactly once."""
    text = (KERNELS / f"{file}.cu").read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def _emulate(
    file: str,
    entry: str,
    arguments: Sequence[Value],
    *,
    grid: tuple[int, int, int] = (1, 1, 1),
    threads: int = 32,
    block: tuple[int, int, int] | None = None,
    shared_bytes: int = 0,
    mode: Mode = FAST,
    edits: Edits = (),
    seed: int = 0,
) -> Statistics:
    library = compile_unit(KernelSource(file, edited(file, edits)), checking=mode.checking)
    shape = block or (threads, 1, 1)
    return launch_kernel(library, entry, grid, shape, shared_bytes, arguments, mode, seed=seed)


@pytest.fixture(name="emulate", scope="session")
def _emulate_fixture() -> Emulate:
    return _emulate
