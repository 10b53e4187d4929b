"""Problems of networks at batch 32, written down: what of them takes longest, in fp16.

Products of thousands of rows, attention of hundreds of heads, and grouped convolutions. They are named as those of
`spaces.problems` are.
"""

from __future__ import annotations

from dataclasses import fields

from subjects.problems import convolution, matmul, with_gelu

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Scalar, apply
from wpk.extent import Extent
from wpk.problems import (
    Attention,
    Epilogue,
    Matmul,
    NormedMatmul,
    NormKind,
    Problem,
    Tensor,
    moments_of_row,
)

_HALF, _BATCH = DType.FP16, 32


def _product(m: int, n: int, k: int, *, residual: bool = False) -> Matmul:
    return matmul(m, n, k, precision=Precision.FP16, bias=_HALF, residual=residual)


def _activated(m: int, n: int, k: int) -> Matmul:
    return with_gelu(_product(m, n, k))


def _normed(product: Matmul) -> NormedMatmul:
    """The product of layer-normed rows whose moments the product in front has stored."""
    given = {field.name: getattr(product, field.name) for field in fields(product)}
    numbers = moments_of_row(product.k, NormKind.LAYER)
    return NormedMatmul(
        **given,
        kind=NormKind.LAYER,
        epsilon=1e-6,
        sums=Tensor(DType.FP32, (0, 0, 0, 1), constant=True),
        moments=Tensor(DType.FP32, (0, 0, numbers, 1), alignment=8),
    )


def _attention(tokens: int, heads: int = 12, size: int = 64) -> Attention:
    """Heads of one product that makes queries, keys and values side by side."""
    width = heads * size
    joined = Tensor(_HALF, (tokens * 3 * width, size, 3 * width, 1))
    return Attention(
        precision=Precision.FP16,
        batch=(Extent(_BATCH), heads),
        queries=tokens,
        keys=tokens,
        depth=size,
        width=size,
        q=joined,
        k=joined,
        v=joined,
        scores=Epilogue(apply("Mul", Acc(), Scalar(size**-0.5))),
        empty_rows_are_zero=False,
        y=Tensor(_HALF, (tokens * width, size, width, 1)),
    )


def _grouped(channels: int, size: int, groups: int = 32) -> Problem:
    return convolution(
        *(channels, channels, size, 3),
        groups=groups,
        n=_BATCH,
        precision=Precision.FP16,
        bias=_HALF,
        relu=True,
    )


LARGE_BATCH: dict[str, Problem] = {
    f"{name}.{Precision.FP16}": problem
    for name, problem in {
        "vit.qkv_b32": _normed(_product(6304, 2304, 768)),
        "vit.up_b32": _normed(_activated(6304, 3072, 768)),
        "vit.plain_up_b32": _activated(6304, 3072, 768),
        "vit.projection_b32": _product(6304, 768, 768, residual=True),
        "vit.down_b32": _product(6304, 768, 3072, residual=True),
        "bert.up_b32": _activated(4096, 3072, 768),
        "bert.down_b32": _product(4096, 768, 3072, residual=True),
        "swin.up_56_b32": _activated(100352, 384, 96),
        "swin.up_28_b32": _activated(25088, 768, 192),
        "swin.up_14_b32": _activated(6272, 1536, 384),
        "swin.down_14_b32": _product(6272, 384, 1536, residual=True),
        "vit.attention_b32": _attention(197),
        "bert.attention_b32": _attention(128),
        "resnext.grouped_56_b32": _grouped(128, 56),
        "resnext.grouped_28_b32": _grouped(256, 28),
        "resnext.grouped_14_b32": _grouped(512, 14),
    }.items()
}
"""By name."""
