"""What a compile yields."""

from __future__ import annotations

from dataclasses import dataclass

from wpk.build.resources import KernelResources


@dataclass(frozen=True)
class CompiledKernel:
    """One kernel as machine code.

    Attributes:
        digest: Digest of its source (`wpk.kernel_source.KernelSource.digest`).
        entry: Name of the kernel in the cubin.
        arch: What it was built for, e.g. ``sm_90a``.
        compiler: What built it, e.g. ``nvrtc 13.5``.
        cubin: The machine code, an ELF file.
        resources: Registers, static shared memory, stack, spills.
        log: The compiler's messages: warnings and ptxas's report.
    """

    digest: str
    entry: str
    arch: str
    compiler: str
    cubin: bytes
    resources: KernelResources
    log: str
