"""Find and describe the C++ compiler of this machine."""

import errno
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wpk.errors import CompileError

_NO_SPACE = re.compile("No space left on device|Disk quota exceeded|File (too large|size limit)")
"""What compiler, assembler and linker say of a full disk (ENOSPC, EDQUOT, EFBIG, SIGXFSZ)."""

_CANDIDATES = ("c++", "g++", "clang++")
_TIME_LIMIT_SECONDS = 300.0
_FIX = "install one (Debian, Ubuntu: apt-get install g++), or name it in CXX; g++ 12 or newer"


@dataclass(frozen=True)
class HostCompiler:
    """A C++ compiler.

    Attributes:
        command: How it is called, e.g. ``("g++",)`` or ``("ccache", "g++")``.
        identity: Command, version, and the CPU that ``-march=native`` means, hashed.
    """

    command: tuple[str, ...]
    identity: str

    def library(self, name: str) -> Path | None:
        """Where a library of the compiler's own lies; None where it has none."""
        asked = [*self.command, f"-print-file-name={name}"]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)
        path = Path(done.stdout.strip())
        return path if path.is_absolute() and path.exists() else None

    def run(self, arguments: list[str], *, text: str = "", what: str) -> None:
        """Compile.

        Args:
            arguments: Behind the command.
            text: Standard input.
            what: What is compiled, for the error.

        Raises:
            CompileError: The compiler failed; the message holds its first errors.
            OSError: A disk that it writes to is full.
        """
        try:
            done = subprocess.run(
                [*self.command, *arguments],
                input=text,
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIME_LIMIT_SECONDS,
                env={**os.environ, "LC_ALL": "C"},  # its words are read
            )
        except subprocess.TimeoutExpired as error:
            raise CompileError(
                f"{self.command[0]} did not compile {what} within {_TIME_LIMIT_SECONDS:.0f} s",
                fix="try again on a machine with less load",
            ) from error
        except OSError as error:
            raise CompileError(f"{self.command[0]} cannot run: {error}", fix=_FIX) from error
        if done.returncode != 0 and _NO_SPACE.search(done.stderr):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if done.returncode != 0:
            raise CompileError(
                f"{shlex.join(self.command)} failed to compile {what}: {_first_errors(done.stderr)}",
                fix="g++ 12 or newer is needed; with one, this is a bug in the kernel's header",
            )


def find_host_compiler() -> HostCompiler:
    """The compiler that ``CXX`` names, or the first of c++, g++, clang++.

    Raises:
        CompileError: There is none, or this CPU is not one that the emulator runs on.
    """
    return _find(os.environ.get("CXX", ""))


@cache
def _find(named: str) -> HostCompiler:
    if platform.machine() not in ("x86_64", "AMD64"):
        raise CompileError(
            f"the emulator switches threads on x86-64 only, this machine is {platform.machine()}",
            fix="execute kernels on an x86-64 machine or on the GPU; compiling for it works here",
        )
    commands = [tuple(shlex.split(named))] if named else [(name,) for name in _CANDIDATES]
    for command in commands:
        if shutil.which(command[0]) is not None:
            return HostCompiler(command, _identity(command))
    tried = ", ".join(shlex.join(command) for command in commands)
    raise CompileError(f"no C++ compiler found (tried {tried})", fix=_FIX)


def _identity(command: tuple[str, ...]) -> str:
    try:
        version = subprocess.run(
            [*command, "-v"], capture_output=True, text=True, check=True, timeout=30
        ).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise CompileError(f"{shlex.join(command)} does not work: {error}", fix=_FIX) from error
    return hashlib.sha256("\0".join([*command, version, _cpu()]).encode()).hexdigest()


def _cpu() -> str:
    """The features that ``-march=native`` reads, as the kernel lists them."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    wanted = ("vendor_id", "cpu family", "model", "flags")
    first = lines[: lines.index("")] if "" in lines else lines
    return "\n".join(line for line in first if line.split("\t")[0].split(":")[0] in wanted)


def _first_errors(output: str) -> str:
    errors = [line.strip() for line in output.splitlines() if "error:" in line]
    return "; ".join(errors[:3]) or output.strip()[-500:] or "no message"
