"""Launches moved to copies of their memory."""

from __future__ import annotations

import pytest

from wpk.device import MemoryRange
from wpk.device.rotation import moved
from wpk.execution import BoundArgument, BoundLaunch, Pointer, TensorMap

INPUT, OUTPUT = MemoryRange(0x1000, 0x100), MemoryRange(0x2000, 0x80)


def launch(*arguments: BoundArgument) -> BoundLaunch:
    return BoundLaunch("d", "k", (1, 1, 1), (32, 1, 1), (1, 1, 1), 0, arguments, ())


def test_pointers_keep_their_offset_and_sizes_stay() -> None:
    tensor_map = TensorMap(0x1020, 4, (8,), (), (8,), 0)
    (after,) = moved(
        [launch(Pointer(0x1010), Pointer(0x2000), tensor_map, 0x1010)],
        {INPUT: 0x9000, OUTPUT: 0xA000},
    )
    assert after.arguments[:2] == (Pointer(0x9010), Pointer(0xA000))
    assert after.arguments[2] == TensorMap(0x9020, 4, (8,), (), (8,), 0)
    assert after.arguments[3] == 0x1010


@pytest.mark.parametrize("address", [0xFFF, 0x1100, 0x2080])
def test_refuses_an_address_outside_of_all_regions(address: int) -> None:
    with pytest.raises(ValueError, match="none of the regions"):
        moved([launch(Pointer(address))], {INPUT: 0x9000, OUTPUT: 0xA000})
