"""Launches moved to copies of their memory, so that repetitions do not find their operands in L2."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from wpk.execution import BoundArgument, BoundLaunch, Pointer, TensorMap


@dataclass(frozen=True)
class Region:
    """Memory that launches work on: its address and size in bytes."""

    address: int
    size: int


def moved(launches: Sequence[BoundLaunch], places: Mapping[Region, int]) -> tuple[BoundLaunch, ...]:
    """The launches with every address in a region moved to where the region's copy lies.

    Args:
        launches: Whose every address lies in a region.
        places: Address of the copy of each region.

    Raises:
        ValueError: An address lies in none: the copy would still work on shared memory.
    """
    return tuple(
        replace(launch, arguments=tuple(_argument(each, places) for each in launch.arguments))
        for launch in launches
    )


def _argument(argument: BoundArgument, places: Mapping[Region, int]) -> BoundArgument:
    if isinstance(argument, Pointer):
        return Pointer(_address(argument.address, places))
    if isinstance(argument, TensorMap):
        return replace(argument, address=_address(argument.address, places))
    return argument


def _address(address: int, places: Mapping[Region, int]) -> int:
    for region, place in places.items():
        if region.address <= address < region.address + region.size:
            return place + address - region.address
    raise ValueError(f"address {address:#x} lies in none of the regions")
