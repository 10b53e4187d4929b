"""Launches moved to copies of their memory, so that repetitions do not find their operands in L2."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wpk.execution import BoundArgument, BoundCall, Pointer, TensorMap, Work


@dataclass(frozen=True)
class MemoryRange:
    """Memory that launches work on: its address and size in bytes."""

    address: int
    size: int


def moved(works: Sequence[Work], places: Mapping[MemoryRange, int]) -> tuple[Work, ...]:
    """The work with every address in a region moved to where the region's copy lies.

    Args:
        works: Whose every address lies in a region.
        places: Address of the copy of each region.

    Raises:
        ValueError: An address lies in none: the copy would still work on shared memory.
    """
    return tuple(_moved(work, places) for work in works)


def _moved(work: Work, places: Mapping[MemoryRange, int]) -> Work:
    if isinstance(work, BoundCall):
        pointers = tuple(_address(each, places) for each in work.pointers)
        return replace(work, pointers=pointers, workspace=_address(work.workspace, places))
    return replace(work, arguments=tuple(_argument(each, places) for each in work.arguments))


def _argument(argument: BoundArgument, places: Mapping[MemoryRange, int]) -> BoundArgument:
    if isinstance(argument, Pointer):
        return Pointer(_address(argument.address, places))
    if isinstance(argument, TensorMap):
        return replace(argument, address=_address(argument.address, places))
    return argument


def _address(address: int, places: Mapping[MemoryRange, int]) -> int:
    for region, place in places.items():
        if region.address <= address < region.address + region.size:
            return place + address - region.address
    raise ValueError(f"address {address:#x} lies in none of the regions")
