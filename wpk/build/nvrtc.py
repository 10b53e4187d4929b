"""Compile kernels to cubins with NVRTC: no GPU, no driver, no CUDA toolkit.

The library comes from the wheel ``nvidia-cuda-nvrtc`` and is called through ctypes: eight functions,
and no choice between several installed libraries that somebody else makes.  Headers are handed over
as text; nothing is read from the disk, so that a digest over source and headers says all.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from wpk.build.arch import check_arch
from wpk.build.compiled import CompiledKernel
from wpk.build.cubin import read_cubin
from wpk.build.resources import KernelResources, parse_ptxas_log
from wpk.errors import CompileError
from wpk.kernel_source import KernelSource

_WHEEL_LIBRARIES = ("cu13/lib/libnvrtc.so.13", "cuda_nvrtc/lib/libnvrtc.so.12")
_SYSTEM_LIBRARIES = ("libnvrtc.so.13", "libnvrtc.so.12")
_BUILTINS = "libnvrtc-builtins.so.*"
_NOT_FOUND_FIX = "install it: python -m pip install nvidia-cuda-nvrtc"
_COMPILATION_FAILED = 6  # NVRTC_ERROR_COMPILATION
_SHOWN_ERRORS = 3


def options(arch: str) -> tuple[str, ...]:
    """Every option a kernel is compiled with; part of the cache's key.

    ptxas's ``-v`` is the only source of spill sizes, and NVRTC's own cache, which some machines
    keep, answers without it: ours is the only cache.
    """
    return (
        f"--gpu-architecture={arch}",
        "--std=c++20",
        "--no-source-include",
        "--no-cache",
        "--ptxas-options=-v",
    )


class Nvrtc:
    """A loaded NVRTC library.

    Attributes:
        path: Where it was loaded from; a bare name means the system's search path.
        version: Major and minor version.
        identity: Version and size of the file, which tells patch releases apart.
    """

    def __init__(self, path: Path) -> None:
        """Load the library.

        Raises:
            CompileError: it cannot be loaded.
        """
        try:
            _load_builtins(path)
            self._library = ctypes.CDLL(str(path))
        except OSError as error:
            raise CompileError(f"NVRTC cannot be loaded: {error}", fix=_NOT_FOUND_FIX) from error
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p
        self.path = path
        self.version = self._read_version()
        size = path.stat().st_size if path.is_file() else 0
        self.identity = f"{self.version[0]}.{self.version[1]}-{size}"

    def supported_archs(self) -> tuple[int, ...]:
        """Numbers of the architectures that it builds for, e.g. ``(75, 80, 90)``."""
        count = ctypes.c_int()
        self._check(self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        archs = (ctypes.c_int * count.value)()
        self._check(self._library.nvrtcGetSupportedArchs(archs))
        return tuple(archs)

    def compile(self, source: KernelSource, arch: str) -> CompiledKernel:
        """Compile one kernel to machine code.

        Raises:
            TargetError: this NVRTC does not build for the architecture.
            CompileError: the unit does not compile or lacks its entry, or reports disagree.
        """
        check_arch(arch, self.supported_archs())
        cubin, log = self._run(source, arch)
        return CompiledKernel(
            digest=source.digest,
            entry=source.entry,
            arch=arch,
            compiler=f"nvrtc {self.version[0]}.{self.version[1]}",
            cubin=cubin,
            resources=_checked_resources(source.entry, cubin, log),
            log=log,
        )

    def ptx(self, source: KernelSource, arch: str) -> bytes:
        """Compile one kernel to PTX, for others to assemble.

        Raises:
            TargetError: this NVRTC does not build for the architecture.
            CompileError: the unit does not compile.
        """
        check_arch(arch, self.supported_archs())
        ptx, _ = self._run(source, arch, "PTX")
        return ptx.rstrip(b"\0")

    def _run(self, source: KernelSource, arch: str, result: str = "CUBIN") -> tuple[bytes, str]:
        headers = source.headers()
        program = ctypes.c_void_p()
        self._check(
            self._library.nvrtcCreateProgram(
                ctypes.byref(program),
                source.text.encode(),
                f"{source.entry}.cu".encode(),
                len(headers),
                _strings(list(headers.values())),
                _strings(list(headers)),
            )
        )
        try:
            flags = options(arch)
            status = self._library.nvrtcCompileProgram(program, len(flags), _strings(flags))
            log = self._read(program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
            if status == _COMPILATION_FAILED:
                raise _compile_error(source.entry, arch, log)
            self._check(status)
            return self._read(program, result), log
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw

    def _read_version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return major.value, minor.value

    def _check(self, status: int) -> None:
        if status != 0:
            text = self._library.nvrtcGetErrorString(status).decode()
            raise CompileError(
                f"NVRTC failed: {text}",
                fix="reinstall nvidia-cuda-nvrtc; libnvrtc-builtins must lie beside libnvrtc",
            )


def find_nvrtc() -> Path:
    """Locate the library: CUDA 13's wheel, else CUDA 12's, else the system's.

    Raises:
        CompileError: there is none.
    """
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    for library in _WHEEL_LIBRARIES:
        for folder in folders:
            if (path := Path(folder, library)).is_file():
                return path
    for name in _SYSTEM_LIBRARIES:
        if _loads(name):
            return Path(name)
    raise CompileError("NVRTC, CUDA's runtime compiler, is not installed", fix=_NOT_FOUND_FIX)


def _load_builtins(path: Path) -> None:
    """Load what NVRTC opens by its bare name when it first compiles, where it lies beside NVRTC.

    Not every build of NVRTC looks there.
    """
    for builtins in sorted(path.parent.glob(_BUILTINS)) if path.is_file() else ():
        ctypes.CDLL(str(builtins))


@cache
def load_nvrtc(path: Path | None = None) -> Nvrtc:
    """The library at ``path``, or the one that `find_nvrtc` finds; loaded once a process.

    Raises:
        CompileError: not found, or not loadable.
    """
    return Nvrtc(find_nvrtc() if path is None else path)


def compiler_here() -> str:
    """The compiler of this installation, patch release included, as plans and locks name it.

    Raises:
        CompileError: there is none.
    """
    return f"nvrtc {load_nvrtc().identity}"


def _loads(name: str) -> bool:
    try:
        ctypes.CDLL(name)
    except OSError:
        return False
    return True


def _strings(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))


def _compile_error(entry: str, arch: str, log: str) -> CompileError:
    errors = [line.strip() for line in log.splitlines() if "error" in line or "fatal" in line]
    shown = "; ".join(errors[:_SHOWN_ERRORS]) or log[:200]
    return CompileError(
        f"{entry} failed to compile for {arch}: {shown}",
        fix="this schedule should have been illegal, or its header is wrong; see its template",
    )


def _checked_resources(entry: str, cubin: bytes, log: str) -> KernelResources:
    """Read ptxas's report and hold it against what the cubin itself states."""
    kernels, reports = read_cubin(cubin), parse_ptxas_log(log)
    if entry not in kernels or entry not in reports:
        raise CompileError(
            f"the unit of {entry} defines {', '.join(kernels) or 'no kernel'}, reported {set(reports)}",
            fix="the entry and the kernel's name in the unit must agree",
        )
    kernel, report = kernels[entry], reports[entry]
    if (kernel.registers, kernel.frame_bytes) != (report.registers, report.stack_bytes):
        raise CompileError(
            f"{entry}: ptxas reports {report.registers} registers and {report.stack_bytes} B of stack,"
            f" its cubin {kernel.registers} and {kernel.frame_bytes} B",
            fix="this is a fault of wpk's readers of cubins and logs; please report it",
        )
    return report
