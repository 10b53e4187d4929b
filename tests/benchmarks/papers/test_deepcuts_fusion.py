"""The fusion rules of DeepCuts section 4.4."""

import numpy as np
import pytest
from papers.deepcuts_fusion import (
    FusionLevel,
    OperationClass,
    fuse_through_registers,
    fuse_through_shared,
    fused_class,
    fusion_level,
    why_not_through_shared,
)

from wpk.performance.pul import gm_ratio
from wpk.performance.work import Work
from wpk.targets.registry import find_target

SIMPLE, COMPLEX = OperationClass.SIMPLE, OperationClass.COMPLEX


def _work(**given: float) -> Work:
    names = (
        *("blocks", "threads", "shared_bytes", "registers", "block_flops", "thread_flops"),
        *("block_transactions", "thread_loads", "store_bytes", "steps", "stages"),
    )
    columns = {name: np.asarray([float(given.get(name, 1))]) for name in names}
    return Work(unit=None, element_bytes=4, **columns)


@pytest.mark.parametrize(
    ("first", "second", "shared", "level", "result"),
    [
        (SIMPLE, SIMPLE, False, FusionLevel.REGISTERS, SIMPLE),
        (COMPLEX, SIMPLE, False, FusionLevel.REGISTERS, COMPLEX),
        (SIMPLE, COMPLEX, False, FusionLevel.REGISTERS, COMPLEX),
        (SIMPLE, COMPLEX, True, FusionLevel.SHARED_MEMORY, COMPLEX),
        (COMPLEX, COMPLEX, False, FusionLevel.SHARED_MEMORY, COMPLEX),
    ],
)
def test_levels_and_classes(
    first: OperationClass,
    second: OperationClass,
    shared: bool,
    level: FusionLevel,
    result: OperationClass,
) -> None:
    assert fusion_level(first, second, shared_by_threads=shared) is level
    assert fused_class(first, second) is result


def test_registers_add_computation_and_keep_the_predecessors_loads() -> None:
    first = _work(block_flops=100, thread_flops=10, block_transactions=7, thread_loads=3)
    second = _work(
        block_flops=20,
        thread_flops=2,
        block_transactions=50,
        thread_loads=50,
        store_bytes=64,
        registers=48,
    )
    fused = fuse_through_registers(first, second)
    assert (fused.block_flops[0], fused.thread_flops[0]) == (120, 12)
    assert (fused.block_transactions[0], fused.thread_loads[0]) == (7, 3)
    assert (fused.store_bytes[0], fused.registers[0]) == (64, 48)


def test_through_shared_memory_global_bandwidth_does_not_limit() -> None:
    successor = _work(block_flops=1, block_transactions=1000)
    target = find_target("h200")
    assert gm_ratio(successor, target) < 1
    assert gm_ratio(fuse_through_shared(successor), target) == 1


@pytest.mark.parametrize(
    ("output", "successor", "c_input", "words"),
    [
        ((1, 64, 8, 8), COMPLEX, 64, None),
        ((1, 64, 8, 8), SIMPLE, 16, None),
        ((1, 64, 8, 4), SIMPLE, 64, "leaves a tile of (1, 64, 8, 4)"),
        ((1, 64, 8, 8), COMPLEX, 16, "all 64 input channels a step, not 16"),
    ],
)
def test_refuses_unmatched_tiles(
    output: tuple[int, ...], successor: OperationClass, c_input: int, words: str | None
) -> None:
    reason = why_not_through_shared(output, (1, 64, 8, 8), successor, c_input=c_input, c=64)
    assert reason is None if words is None else (reason is not None and words in reason)
