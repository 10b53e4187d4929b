"""Build kernels and the runtime library for the CPU, each once.

A library lies in the cache under the hash of everything that decides its bytes: source and headers,
compiler, flags and CPU. It is written to a temporary folder, sealed and renamed, so a build that is
interrupted leaves nothing that looks finished (`wpk.emulator.library_cache`).
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from wpk.build import default_cache_folder
from wpk.emulator import sanitizers
from wpk.emulator.host_compiler import find_host_compiler
from wpk.emulator.library_cache import kept
from wpk.kernel_source import KernelSource

_HERE = Path(__file__).parent
PACKAGE_INCLUDE = _HERE.parent.parent
"""The folder that ``#include <wpk/...>`` is relative to."""

# Contraction is what NVRTC does by default (--fmad=true); no other flag changes results. Bytes of
# shared memory are read as one type after another, as kernels do on the GPU.
_COMMON_FLAGS = (
    *("-std=c++20", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"),
    "-fno-strict-aliasing",
    *("-fPIC", "-shared", "-fvisibility=hidden", "-w"),
)
# Unique symbols would merge the static shared memory of kernels from different libraries; probes let a
# large frame hit the guard page below its stack instead of jumping over it.
_KERNEL_FLAGS = (*_COMMON_FLAGS, "-O2", "-fno-gnu-unique", "-fstack-clash-protection")
_RUNTIME_FLAGS = (*_COMMON_FLAGS, "-O3", "-pthread")


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/wpk/emulator``, or ``~/.cache/wpk/emulator``."""
    return default_cache_folder() / "emulator"


def compile_unit(
    source: KernelSource,
    *,
    checking: bool = False,
    sanitized: bool = False,
    cache: Path | None = None,
) -> Path:
    """Compile a kernel for the emulator.

    Args:
        source: The unit that NVRTC compiles for the GPU, unchanged.
        checking: Build with the hooks that checking modes need; slower.
        sanitized: Build under sanitizers, for the runtime library of the same kind.
        cache: Folder of built libraries; `default_cache` when not given.

    Returns:
        A shared library with the function ``<entry>_emulated``.

    Raises:
        CompileError: No compiler, or it failed.
    """
    flags = [*_KERNEL_FLAGS, *_sanitizers(sanitized), f"-DWPK_EMULATOR_CHECKS={int(checking)}"]
    interface = (_HERE / "interface.cuh").read_text(encoding="utf-8")
    what = f"kernel {source.entry}"
    return _library(source.entry, flags, source.text, (interface, source.digest), what, cache)


def runtime_library(*, sanitized: bool = False) -> Path:
    """The library that schedules threads and executes warp operations, built when needed.

    Args:
        sanitized: Build under sanitizers, for kernels of the same kind.

    Raises:
        CompileError: No compiler, or it failed.
    """
    folder = _HERE / "runtime"
    sources = sorted(folder.glob("*.cpp"))
    headers = [
        *folder.glob("*.h"),
        _HERE / "interface.cuh",
        *(_HERE.parent / "kernels").rglob("*.cuh"),
    ]
    texts = [path.read_text(encoding="utf-8") for path in (*sources, *sorted(headers))]
    flags = [*_RUNTIME_FLAGS, *_sanitizers(sanitized)]
    together = "".join(f'#include "{path}"\n' for path in sources)  # a third of the time
    what = "the emulator's runtime library"
    return _library("libwpk_emulator", flags, together, texts, what)


def _library(
    name: str,
    flags: list[str],
    text: str,
    parts: Sequence[str],
    what: str,
    cache: Path | None = None,
) -> Path:
    """A library, built from a text; its flags and ``parts`` decide its bytes."""
    compiler = find_host_compiler()
    key = _key(compiler.identity, *flags, *parts)

    def build(target: Path) -> None:
        arguments = [*flags, f"-I{PACKAGE_INCLUDE}", "-x", "c++", "-", "-o", str(target)]
        compiler.run(arguments, text=text, what=what)

    return kept(cache or default_cache(), f"{name}-{key}.so", build)


def _sanitizers(wanted: bool) -> tuple[str, ...]:
    return sanitizers.FLAGS if wanted else ()


def _key(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)}:".encode())
        digest.update(part.encode())
    return digest.hexdigest()[:32]
