"""Units that tests compile for the emulator: headers are read once for all of them, and little is optimized or linked.

Of what the host compiler takes for a unit, a quarter is reading headers, a quarter is optimizing and a tenth is looking
through the C++ library, of which a unit has nothing; the problems of tests are executed in less. `as_users_compile` is for
tests that hold what users run to account, and for networks that take longer to execute.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pytest

from wpk.emulator import build
from wpk.emulator.host_compiler import HostCompiler

_INCLUDES = "#include <wpk/"
_INPUT = ["-x", "c++", "-"]
"""Behind the flags of a unit."""

_FLAGS = build._KERNEL_FLAGS
_QUICK_FLAGS = (*("-Og" if flag == "-O2" else flag for flag in _FLAGS), "-nostdlib")
_LIBRARIES = ("-lm", "-lgcc")
"""Those of which units have functions, behind their text."""

_compile = HostCompiler.run


@dataclass
class KernelHeaders:
    """Precompiled headers, made when the first unit with their flags is compiled.

    Attributes:
        folder: Of them, for all processes of a run of the tests.
        used: What units were compiled with.
    """

    folder: Path
    used: set[Path] = field(default_factory=set)

    def arguments(self, compiler: HostCompiler, given: list[str], text: str) -> list[str]:
        """Those that compile a unit with its headers read already; what is no unit keeps its own.

        A text that has its headers in it, as one with a planted fault does, is none: it would be told everything twice.
        """
        end = given.index(_INPUT[0]) if _INPUT[0] in given else 0
        if not text.startswith(_INCLUDES) or given[end : end + len(_INPUT)] != _INPUT:
            return given
        flags = given[:end]
        return [*flags, "-include", str(self._header(compiler, flags)), *given[end:]]

    def _header(self, compiler: HostCompiler, flags: list[str]) -> Path:
        """What includes all headers; the compiler takes the precompiled file beside it instead."""
        key = sha256("\0".join([compiler.identity, *flags]).encode()).hexdigest()[:16]
        header = self.folder / key / "headers.cuh"
        if header not in self.used:
            header.parent.mkdir(parents=True, exist_ok=True)
            with (header.parent / "lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not precompiled(header).exists():
                    _precompile(compiler, flags, header)
            self.used.add(header)
        return header


def precompiled(header: Path) -> Path:
    """Where the compiler looks for it."""
    return header.with_name(f"{header.name}.gch")


def _precompile(compiler: HostCompiler, flags: list[str], header: Path) -> None:
    kernels = sorted((build.PACKAGE_INCLUDE / "wpk" / "kernels").rglob("*.cuh"))
    names = [path.relative_to(build.PACKAGE_INCLUDE) for path in kernels]
    header.write_text("".join(f"#include <{name}>\n" for name in names), encoding="utf-8")
    part = header.with_name("part")
    of_headers = [flag for flag in flags if flag != "-shared"]
    output = ["-x", "c++-header", str(header), "-o", str(part)]
    _compile(compiler, [*of_headers, *output], what="the kernels' headers")
    os.replace(part, precompiled(header))


@contextmanager
def quick_units(folder: Path) -> Iterator[KernelHeaders]:
    """Let this process compile so, with precompiled headers in a folder."""
    headers = KernelHeaders(folder)

    def run(compiler: HostCompiler, arguments: list[str], *, text: str = "", what: str) -> None:
        libraries = _LIBRARIES if "-nostdlib" in arguments else ()
        given = [*headers.arguments(compiler, arguments, text), *libraries]
        _compile(compiler, given, text=text, what=what)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostCompiler, "run", run)
        patch.setattr(build, "_KERNEL_FLAGS", _QUICK_FLAGS)
        yield headers


@pytest.fixture
def as_users_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Units are compiled with the flags that users have."""
    monkeypatch.setattr(build, "_KERNEL_FLAGS", _FLAGS)
