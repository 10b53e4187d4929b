"""DeepCuts tables 6 to 8, by hand-computed values and by counting."""

import numpy as np
import pytest
from papers import deepcuts_tables as tables


def test_table_6() -> None:
    assert tables.convolution_flops(1, 64, 32, 8, 8, (3, 3)) == 2 * 64 * 32 * 64 * 9
    assert tables.batch_norm_flops(2, 3, 4, 5) == 360
    assert tables.elementwise_flops(1, 2, 3, 4, flops=2) == 48


def test_table_7() -> None:
    # A thread of 4x2 outputs, 3x3, stride 1: input 6x4; 2 filters of 16 channels.
    assert tables.convolution_loads(1, 16, 2, 4, 2, (3, 3), (1, 1)) == 16 * 24 + 2 * 16 * 9
    assert tables.matmul_loads(4, 32, 8) == 4 * 32 + 32 * 8
    assert tables.pooling_loads(1, 1, 2, 2, (3, 3)) == 36
    assert tables.elementwise_loads(1, 2, 3, 4, operands=2) == 48


def test_table_8_rounds_every_row_up() -> None:
    block = tuple(np.asarray([v]) for v in (1.0, 32.0, 8.0, 8.0))
    # 16 channels of 10 rows of 10 elements, 8 a transaction: 2 each; filters 32*16*9 / 8 = 576.
    found = tables.convolution_transactions(block, 16, (3, 3), (1, 1), 8)
    assert found == pytest.approx([16 * 10 * 2 + 576])
    assert tables.pooling_transactions(block, (3, 3), (2, 2), 8) == 32 * 17 * 3
    assert tables.elementwise_transactions(block, 32, operands=2) == 2 * 32 * 8
    n, c, k = (np.asarray([v]) for v in (64.0, 20.0, 48.0))
    assert tables.matmul_transactions(n, c, k, 8) == 64 * 3 + 20 * 6


def test_more_elements_a_transaction_never_need_more_transactions() -> None:
    block = tuple(np.asarray([v]) for v in (1.0, 4.0, 7.0, 7.0))
    counts = [tables.elementwise_transactions(block, t)[0] for t in (1, 2, 4, 8, 16, 32)]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[-1]
