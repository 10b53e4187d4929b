"""Entries of DeepCuts' tables 6 and 8 that templates state their work with.

All take and give numbers or arrays. The names are the paper's: N images, C input channels, K output
channels, H x W output pixels, F the filter's extent, S stride; a block's share of them is what is passed.
Paper and thesis give a tile's input extent as ``floor((H + F - 2P) / S) + 1``, the formula that takes an
input's extent to the output's, with the padding's sign turned; here it is what windows reach.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from wpk.performance.work import Floats

N = TypeVar("N", int, float, Floats)


def input_extent(outputs: N, filter_size: int, stride: int, dilation: int = 1) -> N:
    """Count the input elements along one axis that ``outputs`` neighbouring windows read, holes included."""
    return (outputs - 1) * stride + (filter_size - 1) * dilation + 1


def matmul_flops(n: N, c: N, k: N) -> N:
    """Return the operations of a product by table 6: ``2 * N * C * K``."""
    return 2 * n * c * k


def pooling_flops(n: N, k: N, h: N, w: N, window: tuple[int, int]) -> N:
    """Return the operations of pooling by table 6: ``N * K * H * W * F_H * F_W``."""
    return n * k * h * w * (window[0] * window[1])


def row_transactions(rows: Floats, row_elements: Floats, transaction_elements: float) -> Floats:
    """Count the transactions of ``rows`` separate rows: each is rounded up on its own."""
    return rows * np.ceil(row_elements / transaction_elements)
