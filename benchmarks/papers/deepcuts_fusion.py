"""What fusing two operations does to their work: DeepCuts section 4.4."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

import numpy as np

from wpk.performance.work import Work


class OperationClass(StrEnum):
    """DeepCuts table 2: whether work grows with the input's size or faster."""

    SIMPLE = "simple"
    COMPLEX = "complex"


class FusionLevel(StrEnum):
    """Where the intermediate result stays."""

    REGISTERS = "registers"
    SHARED_MEMORY = "shared memory"


def fusion_level(
    predecessor: OperationClass, successor: OperationClass, *, shared_by_threads: bool
) -> FusionLevel:
    """How two consecutive operations are fused.

    Through registers when one of them is simple and each result is used by the thread that computed
    it; else through shared memory. Two complex operations only ever fuse through shared memory.
    """
    both_complex = predecessor is successor is OperationClass.COMPLEX
    if both_complex or shared_by_threads:
        return FusionLevel.SHARED_MEMORY
    return FusionLevel.REGISTERS


def fused_class(predecessor: OperationClass, successor: OperationClass) -> OperationClass:
    """A fusion is complex if one of its parts is."""
    parts = (predecessor, successor)
    return OperationClass.COMPLEX if OperationClass.COMPLEX in parts else OperationClass.SIMPLE


def fuse_through_registers(predecessor: Work, successor: Work) -> Work:
    """Work of one kernel that computes both.

    NUM_trans and N_load are the predecessor's; COMP_block and COMP_thread are the sums. It writes
    what the successor writes, and needs the registers of the hungrier one.
    """
    return replace(
        predecessor,
        block_flops=predecessor.block_flops + successor.block_flops,
        thread_flops=predecessor.thread_flops + successor.thread_flops,
        store_bytes=successor.store_bytes,
        registers=np.maximum(predecessor.registers, successor.registers),
    )


def fuse_through_shared(successor: Work) -> Work:
    """Work of the successor when the predecessor leaves its input in shared memory: NUM_trans is 0."""
    return replace(successor, block_transactions=np.zeros_like(successor.block_transactions))


def why_not_through_shared(
    output_of_block: tuple[int, ...],
    input_of_block: tuple[int, ...],
    successor: OperationClass,
    *,
    c_input: int,
    c: int,
) -> str | None:
    """Why two operations' tiles do not fuse through shared memory, in words; None if they do.

    The predecessor's output tile must be the successor's input tile, and a complex successor must
    take all its input channels at once (C_input = C).
    """
    if output_of_block != input_of_block:
        return f"a block leaves a tile of {output_of_block}, the successor's reads {input_of_block}"
    if successor is OperationClass.COMPLEX and c_input != c:
        return f"a complex successor must take all {c} input channels a step, not {c_input}"
    return None
