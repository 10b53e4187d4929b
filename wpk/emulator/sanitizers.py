"""Kernels and the runtime library under AddressSanitizer and UndefinedBehaviorSanitizer.

Both must be in a process from its beginning, so only a child process executes such kernels: what it
is started with is here, and what it reported before it ended. Memory of kernels is no heap that
AddressSanitizer knows: the bytes around each buffer are forbidden by hand.
"""

import ctypes
import os
import re
import weakref
from functools import cache

from wpk.emulator.errors import EmulatorError
from wpk.emulator.host_compiler import find_host_compiler
from wpk.errors import CompileError

FLAGS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
"""For the compiler, behind all others."""

_LIBRARY = "libasan.so"
_OPTIONS = (
    "detect_leaks=0",  # an interpreter that is killed frees nothing
    "handle_segv=0:handle_sigbus=0:handle_sigfpe=0",  # the emulator's own reports name block and thread
    "detect_stack_use_after_return=0",  # each thread of a kernel has a stack of the emulator's
    "allocator_may_return_null=1",
)
_MOST_READ = 1 << 20
_FOUND = re.compile(r"ERROR: (AddressSanitizer: .*)|(runtime error: .*)")


def environment() -> dict[str, str]:
    """What a child process is started with.

    Raises:
        CompileError: The compiler has no AddressSanitizer.
    """
    library = find_host_compiler().library(_LIBRARY)
    if library is None:
        raise CompileError(
            f"the C++ compiler has no {_LIBRARY}",
            fix="name a g++ with AddressSanitizer in CXX (Debian, Ubuntu: apt-get install g++)",
        )
    return {**os.environ, "LD_PRELOAD": str(library), "ASAN_OPTIONS": ":".join(_OPTIONS)}


def open_reports(owner: object) -> int:
    """A file in memory for a child process's standard error; it lives as long as ``owner``."""
    descriptor = os.memfd_create("wpk-sanitizers")
    weakref.finalize(owner, os.close, descriptor)
    return descriptor


def reported(reports: int) -> str | None:
    """What was reported first, in a line; None where nothing was."""
    written = os.pread(reports, _MOST_READ, 0).decode(errors="replace")
    found = _FOUND.search(written)
    return None if found is None else (found[1] or found[2]).split(" at pc ")[0]


def require() -> None:
    """Refuse a process that was started without sanitizers: loading what needs them would end it.

    Raises:
        EmulatorError: It was.
    """
    if not _are_here():
        raise EmulatorError(
            "this process was started without sanitizers",
            fix="execute in an EmulatorProcess, which starts its child with them",
        )


def forbid(address: int, size: int) -> None:
    """Let every access of a kernel to these bytes be reported.

    Raises:
        EmulatorError: The sanitizers are not here.
    """
    require()
    _process().__asan_poison_memory_region(ctypes.c_void_p(address), ctypes.c_size_t(size))


def permit(address: int, size: int) -> None:
    """Take back what was forbidden, in a process with sanitizers; elsewhere nothing was."""
    if _are_here():
        _process().__asan_unpoison_memory_region(ctypes.c_void_p(address), ctypes.c_size_t(size))


def _are_here() -> bool:
    return hasattr(_process(), "__asan_init")


@cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)
