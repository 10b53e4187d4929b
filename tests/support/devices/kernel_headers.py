"""The kernels' headers, read by the host compiler once for all units: reading them takes a quarter of compiling one."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from wpk.emulator.build import PACKAGE_INCLUDE
from wpk.emulator.host_compiler import HostCompiler

_INCLUDES = "#include <wpk/"
_INPUT = ["-x", "c++", "-"]
"""Behind the flags of a unit."""


@dataclass
class KernelHeaders:
    """Precompiled headers, made when the first unit with their flags is compiled.

    Attributes:
        folder: Of them, for all processes of a run of the tests.
        used: What units were compiled with.
    """

    folder: Path
    used: set[Path] = field(default_factory=set)

    def for_unit(self, compiler: HostCompiler, arguments: list[str], text: str) -> list[str]:
        """The arguments that compile a unit with its headers read already; others are as they were.

        A text that holds its headers, as one with a planted fault does, would be told of each thing twice.
        """
        if not text.startswith(_INCLUDES) or _INPUT[0] not in arguments:
            return arguments
        end = arguments.index(_INPUT[0])
        if arguments[end : end + len(_INPUT)] != _INPUT:
            return arguments
        return [
            *arguments[:end],
            "-include",
            str(self._header(compiler, arguments[:end])),
            *arguments[end:],
        ]

    def _header(self, compiler: HostCompiler, flags: list[str]) -> Path:
        key = sha256("\0".join([compiler.identity, *flags]).encode()).hexdigest()[:16]
        header = self.folder / key / "headers.cuh"
        if header not in self.used:
            header.parent.mkdir(parents=True, exist_ok=True)
            with (header.parent / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                precompiled = Path(f"{header}.gch")
                if not precompiled.exists():
                    self._precompile(compiler, flags, header, precompiled)
            self.used.add(header)
        return header

    def _precompile(
        self, compiler: HostCompiler, flags: list[str], header: Path, precompiled: Path
    ) -> None:
        paths = sorted((PACKAGE_INCLUDE / "wpk" / "kernels").rglob("*.cuh"))
        names = [path.relative_to(PACKAGE_INCLUDE) for path in paths]
        header.write_text("".join(f"#include <{name}>\n" for name in names), encoding="utf-8")
        part = precompiled.with_suffix(".part")
        of_headers = [flag for flag in flags if flag != "-shared"]
        output = ["-x", "c++-header", str(header), "-o", str(part)]
        _run(compiler, [*of_headers, *output], what="the kernels' headers")
        os.replace(part, precompiled)


_run = HostCompiler.run


@contextmanager
def headers_read_once(folder: Path) -> Iterator[KernelHeaders]:
    """Let this process compile all units with what is precompiled in a folder."""
    headers = KernelHeaders(folder)

    def run(compiler: HostCompiler, arguments: list[str], *, text: str = "", what: str) -> None:
        _run(compiler, headers.for_unit(compiler, arguments, text), text=text, what=what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostCompiler, "run", run)
        yield headers
