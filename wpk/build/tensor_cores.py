"""Count the tensor-core instructions of a kernel from its machine code, without a disassembler.

Since sm_70 every instruction is 128 bits.  Bits 0 to 8 name the operation, bits 9 to 11 the form of
its operands, bits 12 to 15 its predicate.  The numbers below were read from nvdisasm 13.2's listing
(``nvdisasm -hex``) of kernels compiled for sm_80, sm_89, sm_90a and sm_100a; a test repeats that
comparison where nvdisasm is installed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from wpk.build.cubin import read_cubin

_INSTRUCTION_BYTES = 16
_OPERATION_MASK = 0x1FF
_FLOAT_TYPES = {0: "f16", 1: "bf16", 2: "tf32"}


def _hmma(high: int) -> str:
    return f"hmma.{_FLOAT_TYPES.get(high >> 18 & 3, 'unknown')}"


def _hgmma(high: int) -> str:
    return f"hgmma.{_FLOAT_TYPES.get(high >> 12 & 3, 'unknown')}"


def _utcmma(high: int) -> str:
    # The element type of tcgen05.mma is data (an instruction descriptor), so code cannot tell
    # fp16 from bf16 or tf32.
    return {0: "utchmma", 1: "utcimma", 3: "utcqmma"}.get(high >> 8 & 3, "utcmma.unknown")


# Operation -> the name counted, given the upper 64 bits, where element types lie.
_OPERATIONS: dict[int, Callable[[int], str]] = {
    0x03C: _hmma,
    0x037: lambda _: "imma",
    0x03F: lambda _: "dmma",
    0x1F0: _hgmma,
    0x1F1: lambda _: "igmma",
    0x1F3: lambda _: "qgmma",
    0x1EA: _utcmma,
}


def count_tensor_core_instructions(cubin: bytes) -> dict[str, Counter[str]]:
    """Count, per kernel of a cubin, the tensor-core instructions by operation and element type.

    The names are ``hmma.f16``, ``hmma.bf16``, ``hmma.tf32`` (mma.sync), ``hgmma.f16``,
    ``hgmma.bf16``, ``hgmma.tf32`` (wgmma), ``igmma``, ``imma``, ``dmma``, ``qgmma``, and for tcgen05 the
    names ``utchmma``, ``utcimma``, ``utcqmma``, which do not tell the element type.  They count
    instructions in the code, not how often a loop runs them.

    Raises:
        CompileError: the bytes are no cubin.
    """
    return {name: _count(kernel.code) for name, kernel in read_cubin(cubin).items()}


def _count(code: bytes) -> Counter[str]:
    counts: Counter[str] = Counter()
    for at in range(0, len(code) - _INSTRUCTION_BYTES + 1, _INSTRUCTION_BYTES):
        low = int.from_bytes(code[at : at + 8], "little")
        name_of = _OPERATIONS.get(low & _OPERATION_MASK)
        if name_of is not None:
            counts[name_of(int.from_bytes(code[at + 8 : at + 16], "little"))] += 1
    return counts
