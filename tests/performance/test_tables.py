"""The rows of DeepCuts' tables that templates use, by hand-computed values and by counting."""

import numpy as np
import pytest

from wpk.performance import tables


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_the_input_extent_spans_what_the_windows_reach(
    stride: int, dilation: int, size: int
) -> None:
    for outputs in (1, 2, 5, 16):
        reached = [o * stride + r * dilation for o in range(outputs) for r in range(size)]
        extent = tables.input_extent(outputs, size, stride, dilation)
        assert extent == max(reached) - min(reached) + 1


def test_the_printed_input_extent_is_another_number() -> None:
    # 8 outputs, 3 wide, pad 1, stride 2: the paper gives floor((8 + 3 - 2) / 2) + 1 = 5.
    assert tables.input_extent(8, 3, 2) == 17


def test_operations_and_rows() -> None:
    assert tables.matmul_flops(16, 128, 32) == 2 * 16 * 128 * 32
    assert tables.pooling_flops(1, 4, 2, 2, (3, 3)) == 144
    rows = tables.row_transactions(np.asarray([6.0]), np.asarray([9.0]), 8)
    assert rows == [12]  # each row of 9 takes two
