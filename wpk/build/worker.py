"""The process that compiles: ``python -m wpk.build.worker``, started by the pool.

A process and not a thread, because a compiler that hangs can only be ended by ending its process.
It imports nothing heavy, so that one starts in a tenth of a second.
"""

from __future__ import annotations

from pathlib import Path

from wpk.build.compiled import CompiledKernel
from wpk.build.nvrtc import load_nvrtc
from wpk.kernel_source import KernelSource
from wpk.process import serve


class _Compiler:
    """NVRTC, asked for one kernel after another."""

    def compile(self, source: KernelSource, arch: str, library: Path) -> CompiledKernel:
        """Compile a kernel with the NVRTC library at a path.

        Raises:
            CompileError: It does not compile.
        """
        return load_nvrtc(library).compile(source, arch)


if __name__ == "__main__":
    serve(_Compiler)
