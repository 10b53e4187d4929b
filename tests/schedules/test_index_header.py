"""Places in a domain whose items are too many for 32 bits."""

import numpy as np
import pytest
from support.launches.on_arrays import launch_on_arrays

from wpk.emulator import FAST
from wpk.emulator.build import compile_unit
from wpk.kernel_source import KernelSource

UNIT = """#include <wpk/kernels/places/index.cuh>
WPK_KERNEL(64) wpk_places(const wpk::int64* first, int* places)
{
    const wpk::Domain<@WIDE, 3, 1, 7, 11> place(*first + threadIdx.x);
    int* const mine = places + threadIdx.x * 5;
    mine[0] = place.leading;
    for (int axis = 0; axis < 4; ++axis) mine[axis + 1] = place.at[axis];
}
WPK_EXPORT(wpk_places)
"""


@pytest.mark.parametrize("first", [0, 200, 2**31 - 20, 3 * 2**32 + 5])
def test_places_are_numpys(first: int) -> None:
    wide = first + 64 > 2**31
    source = KernelSource("wpk_places", UNIT.replace("@WIDE", str(wide).lower()))
    places = np.zeros((64, 5), np.int32)
    start = np.array([first], np.int64)
    launch_on_arrays(
        compile_unit(source), "wpk_places", (1, 1, 1), (64, 1, 1), 0, [start, places], FAST
    )
    shape = (2**31 - 1, 3, 1, 7, 11)
    expected = np.stack(np.unravel_index(first + np.arange(64), shape), axis=1)
    np.testing.assert_array_equal(places, expected)
