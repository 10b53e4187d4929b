"""Time one sequence of launches on a GPU, with its operands in L2 (warm) or in global memory (cold)."""

from collections.abc import Mapping, Sequence

from wpk.device.cuda import CudaDevice
from wpk.device.rotation import MemoryRange, moved
from wpk.device.timing import (
    Patience,
    Subject,
    Timing,
    repetitions_for,
    time_side_by_side,
)
from wpk.execution import Work
from wpk.trial import Regime

SAMPLE_SECONDS = 2e-4
"""Of one sample: a hundred times what starting a graph takes."""

LEAST_REPETITIONS, MOST_REPETITIONS = 20, 512
"""Repetitions in a sample: enough to hide its edges, and not more than a graph is made of quickly."""

ENOUGH_SECONDS = 1e-2
"""Of a sample, whose edges are a thousandth of it then: what is slow is repeated less."""

COPIES_BYTES = 8 << 30
"""Memory that copies of operands may take; below `LEAST_REPETITIONS` copies they repeat in turn."""

FLUSH_FACTOR = 2
"""Memory filled to empty L2, as a multiple of it: lines are not evicted strictly in order."""

_ALIGNMENT = 256


def measure(
    device: CudaDevice,
    works: Sequence[Work],
    regions: Sequence[MemoryRange],
    regime: Regime,
    patience: Patience,
) -> Timing:
    """Time work that follows each other.

    Args:
        device: Where; their images are loaded.
        works: One repetition.
        regions: All memory that they touch; cold ones work on copies of it in turn.
        regime: What the caches hold when a repetition begins.
        patience: When to stop.

    Raises:
        LaunchError: A kernel failed.
        EngineError: There is no memory for the copies.
    """
    if regime is Regime.WARM:
        return time_side_by_side(device, [warm(device, works)], patience)[0]
    return _measure_cold(device, works, regions, patience)


def _measure_cold(
    device: CudaDevice, works: Sequence[Work], regions: Sequence[MemoryRange], patience: Patience
) -> Timing:
    """Time repetitions that work on copies of the memory in turn."""
    sizes = {region: -(-region.size // _ALIGNMENT) * _ALIGNMENT for region in regions}
    each = sum(sizes.values())
    copies = max(2, min(_repetitions(device, works), COPIES_BYTES // max(1, each)))
    flush_bytes = FLUSH_FACTOR * device.facts.l2_bytes
    scratch, memory = device.allocate(flush_bytes), device.allocate(copies * each)
    try:
        sets: list[Work] = []
        for copy in range(copies):
            places = _copied(device, sizes, memory + copy * each)
            sets += moved(works, places)
        device.synchronize()
        replay = device.capture(sets)
        subject = Subject(replay, copies, lambda: device.fill(scratch, flush_bytes, 0), Regime.COLD)
        return time_side_by_side(device, [subject], patience)[0]
    finally:
        device.free(scratch)
        device.free(memory)


def _copied(
    device: CudaDevice, sizes: Mapping[MemoryRange, int], place: int
) -> dict[MemoryRange, int]:
    """Copy regions to a place, each taking the size given; tell where each lies now."""
    places: dict[MemoryRange, int] = {}
    for region, size in sizes.items():
        device.copy_on(device.stream, region.address, place, region.size)
        places[region], place = place, place + size
    return places


def warm(device: CudaDevice, works: Sequence[Work]) -> Subject:
    """Repetitions on the same memory, each sample after another replay of them."""
    count = _repetitions(device, works)
    replay = device.capture(list(works) * count)
    return Subject(replay, count, replay.replay, Regime.WARM)


def _repetitions(device: CudaDevice, works: Sequence[Work]) -> int:
    once = device.capture(works)
    once.replay()
    seconds = min(device.seconds(once) for _ in range(3))
    return repetitions_for(
        seconds, SAMPLE_SECONDS, LEAST_REPETITIONS, MOST_REPETITIONS, ENOUGH_SECONDS
    )
