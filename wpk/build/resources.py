"""What a kernel costs on the chip, as ptxas reports it."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"Compiling entry function '(?P<entry>[^']+)' for '[^']+'")
_REGISTERS = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class KernelResources:
    """One kernel's resource report.

    Attributes:
        registers: Registers a thread uses.
        static_shared_bytes: Shared memory declared in the kernel; what a launch adds is not in it.
        stack_bytes: Local memory of a thread's stack frame.
        spill_store_bytes: Bytes a thread spills to local memory.
        spill_load_bytes: Bytes a thread reads back.
    """

    registers: int
    static_shared_bytes: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int

    @property
    def spills(self) -> bool:
        """Whether registers overflowed into local memory."""
        return self.spill_store_bytes > 0 or self.spill_load_bytes > 0


def parse_ptxas_log(log: str) -> dict[str, KernelResources]:
    """Return every kernel's resources from the log of a compile with ``--ptxas-options=-v``.

    The log also holds warnings and compile times, and its lines moved between versions: everything
    is found by pattern within the block of its kernel, never by position.  It is the only source of
    spill sizes; a cubin does not state them.  Kernels whose block lacks a number are left out.
    """
    starts = list(_BLOCK.finditer(log))
    ends = [*(start.start() for start in starts), len(log)][1:]
    found = {}
    for start, end in zip(starts, ends, strict=True):
        resources = _parse_block(log[start.end() : end])
        if resources is not None:
            found[start["entry"]] = resources
    return found


def _parse_block(block: str) -> KernelResources | None:
    registers, frame = _REGISTERS.search(block), _FRAME.search(block)
    if registers is None or frame is None:
        return None
    shared = _SHARED.search(block)  # absent where the kernel declares none
    return KernelResources(
        registers=int(registers[1]),
        static_shared_bytes=0 if shared is None else int(shared[1]),
        stack_bytes=int(frame[1]),
        spill_store_bytes=int(frame[2]),
        spill_load_bytes=int(frame[3]),
    )
