"""DeepCuts' tables 6, 7 and 8 as functions, but for the rows that `wpk.performance.tables` has.

All take and give numbers or arrays. The names are the paper's: N images, C input channels, K output
channels, H x W output pixels, F the filter's extent, S stride; a block's or a thread's share of them
is what is passed. T is TRANS_global, the input elements of one memory transaction.

The paper and the thesis print tables 7 and 8 differently, and share one slip:

- Both give a tile's input extent as ``floor((H + F - 2P) / S) + 1``: the formula that takes an
  input's extent to the output's, with the padding's sign turned. H outputs at stride S read
  ``(H - 1) * S + F`` inputs (`input_extent`), whatever the padding.
- Table 7, convolution: the paper divides the filter's loads by T, the thesis does not. A thread
  loads from shared memory, where T means nothing; the thesis is right. Loads of several elements at
  once are a schedule's choice: divide by its vector width.
- Table 8: the paper divides N*K*H*W by ``W / T``, which gives transactions that *grow* with T and
  do not depend on W; and it divides whole tiles by T though rows are not contiguous. The thesis
  rounds each row up, ``N*K*H * ceil(W / T)``, which is what is here.
- Table 6 has no such slip. Table 8's matrix product reads rows of C and rows of K, as printed.
"""

from __future__ import annotations

import numpy as np

from wpk.performance.tables import N, input_extent, row_transactions
from wpk.performance.work import Floats


def convolution_flops(n: N, c: N, k: N, h: N, w: N, filter_size: tuple[int, int]) -> N:
    """Table 6: ``2 * N * C * K * H * W * F_H * F_W``."""
    return 2 * n * c * k * h * w * (filter_size[0] * filter_size[1])


def batch_norm_flops(n: N, k: N, h: N, w: N) -> N:
    """Table 6: ``3 * N * K * H * W``."""
    return 3 * n * k * h * w


def elementwise_flops(n: N, k: N, h: N, w: N, flops: int = 1) -> N:
    """Table 6: ``N * K * H * W``, times the operations of the expression."""
    return n * k * h * w * flops


def convolution_loads(
    n: N, c: N, k: N, h: N, w: N, filter_size: tuple[int, int], stride: tuple[int, int]
) -> N:
    """Table 7 (thesis): a thread's shared memory loads of its input tile and its filters."""
    rows = input_extent(h, filter_size[0], stride[0])
    cols = input_extent(w, filter_size[1], stride[1])
    return n * c * rows * cols + k * c * (filter_size[0] * filter_size[1])


def matmul_loads(n: N, c: N, k: N) -> N:
    """Table 7: ``N * C + C * K``."""
    return n * c + c * k


def pooling_loads(n: N, k: N, h: N, w: N, window: tuple[int, int]) -> N:
    """Table 7: ``N * K * H * W * F_H * F_W``."""
    return n * k * h * w * (window[0] * window[1])


def elementwise_loads(n: N, k: N, h: N, w: N, operands: int = 1) -> N:
    """Table 7: ``N * K * H * W`` for each operand."""
    return n * k * h * w * operands


def convolution_transactions(
    block: tuple[Floats, Floats, Floats, Floats],
    c: int,
    filter_size: tuple[int, int],
    stride: tuple[int, int],
    transaction_elements: float,
) -> Floats:
    """Table 8 (thesis): a block's input rows, and its filters as one contiguous run.

    Args:
        block: N_block, K_block, H_block, W_block.
        c: Input channels.
        filter_size: F_H, F_W.
        stride: S_H, S_W.
        transaction_elements: TRANS_global.
    """
    n, k, h, w = block
    rows = n * c * input_extent(h, filter_size[0], stride[0])
    cols = input_extent(w, filter_size[1], stride[1])
    filters = k * (c * filter_size[0] * filter_size[1])
    one = np.ones_like(filters)
    return row_transactions(rows, cols, transaction_elements) + row_transactions(
        one, filters, transaction_elements
    )


def matmul_transactions(n: Floats, c: Floats, k: Floats, transaction_elements: float) -> Floats:
    """Table 8: ``N * ceil(C / T) + C * ceil(K / T)``."""
    a = row_transactions(n, c, transaction_elements)
    return a + row_transactions(c, k, transaction_elements)


def pooling_transactions(
    block: tuple[Floats, Floats, Floats, Floats],
    window: tuple[int, int],
    stride: tuple[int, int],
    transaction_elements: float,
) -> Floats:
    """Table 8 (thesis): the input rows under a block's windows. ``block`` as for convolutions."""
    n, k, h, w = block
    rows = n * k * input_extent(h, window[0], stride[0])
    return row_transactions(rows, input_extent(w, window[1], stride[1]), transaction_elements)


def elementwise_transactions(
    block: tuple[Floats, Floats, Floats, Floats], transaction_elements: float, operands: int = 1
) -> Floats:
    """Table 8 (thesis): ``N * K * H * ceil(W / T)`` for each operand."""
    n, k, h, w = block
    return operands * row_transactions(n * k * h, w, transaction_elements)
