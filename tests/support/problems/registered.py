"""Problems of every kind that registered templates carry."""

from dataclasses import replace
from typing import Any

from subjects.problems import channels_last, convolution, matmul

from support.problems.feed_forwards import feed_forward
from support.problems.recurrences import recurrence
from support.problems.squeezes import squeeze
from support.problems.thin_products import swin
from support.problems.warpgroup_layers import knowing_moments, with_moments
from wpk.dtypes import ASKED, DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import (
    Advance,
    Attention,
    BoxSelection,
    Convolution,
    Determinant,
    Elementwise,
    Epilogue,
    IndexedRead,
    IndexedWrite,
    Matmul,
    Normalisation,
    NormedMatmul,
    PlacedRows,
    Pooling,
    PrefixScan,
    Problem,
    Reduction,
    RoiAlign,
    RoiMode,
    RowPlacing,
    ScanKind,
    Tensor,
    TopIndices,
    WriteKind,
)
from wpk.problems.normalisation import NormKind
from wpk.problems.pooling import PoolKind
from wpk.problems.reduction import ReduceKind

RELU = apply("Relu", Acc())


def _convolution(
    precision: Precision, n: int, shape: tuple[int, int, int], k: int, size: int, groups: int = 1
) -> Convolution:
    given: dict[str, Any] = {"n": n, "groups": groups, "precision": precision}
    return convolution(shape[0], k, shape[1:], size, relu=True, **given)


def _matmul(precision: Precision, m: int, n: int, k: int) -> Matmul:
    return matmul(m, n, k, precision=precision, relu=True)


def _pooling(n: int, c: int, size: int) -> Pooling:
    return Pooling(
        kind=PoolKind.MAX,
        n=Extent(n),
        c=c,
        h=size,
        w=size,
        p=size // 2,
        q=size // 2,
        window=(3, 3),
        stride=(2, 2),
        dilation=(1, 1),
        pad=(1, 1),
        pad_end=(1, 1),
        count_include_pad=False,
        x=channels_last(DType.FP16, c, size, size),
        y=channels_last(DType.FP16, c, size // 2, size // 2),
        epilogue=Epilogue(),
    )


_ROWS = Tensor(DType.FP16, (768, 1))


def _normed(kind: NormKind) -> NormedMatmul:
    """A product of normalised rows."""
    sums = Tensor(DType.FP32, (0, 0, 0, 1), constant=True) if kind is NormKind.LAYER else None
    plain = _matmul(Precision.FP16, 197, 2304, 768)
    return NormedMatmul(**vars(plain), kind=kind, epsilon=1e-5, sums=sums)


_LAYER_NORM = Normalisation(
    kind=NormKind.LAYER,
    leading=Extent(128),
    outer=(128,),
    cols=768,
    epsilon=1e-5,
    prologue=Operand(0),
    inputs=(_ROWS,),
    y=_ROWS,
    epilogue=Epilogue(),
)
_GROUPS = Tensor(DType.FP16, (784 * 256, 8, 256, 1))
_GROUP_NORM = replace(
    _LAYER_NORM,
    leading=Extent(1),
    outer=(1, 32),
    cols=8,
    lines=784,
    inputs=(_GROUPS,),
    y=_GROUPS,
)
_MEAN = Reduction(
    kind=ReduceKind.MEAN,
    leading=Extent(1),
    outer=(1, 512),
    inner=(49,),
    prologue=Operand(0),
    inputs=(Tensor(DType.FP16, (49 * 512, 1, 512)),),
    y=Tensor(DType.FP16, (512, 1)),
    epilogue=Epilogue(),
)
_ADD = Elementwise(
    leading=Extent(128),
    shape=(128, 768),
    expression=apply("Add", Operand(0), Operand(1)),
    inputs=(_ROWS, _ROWS),
    y=_ROWS,
)
_TRANSPOSE = Elementwise(
    leading=Extent(8),
    shape=(8, 128, 64),
    expression=Operand(0),
    inputs=(Tensor(DType.FP16, (64, 512, 1)),),
    y=Tensor(DType.FP16, (8192, 1, 128)),
)


_ELEMENTS = IndexedRead(
    leading=Extent(8),
    shape=(8, 128, 768),
    sizes=(512,),
    data=Tensor(DType.FP16, (512 * 768, 0, 1, 768)),
    index=Tensor(DType.INT64, (128 * 768, 768, 1, 0), alignment=8),
    y=Tensor(DType.FP16, (128 * 768, 768, 1)),
)
_SCATTER = IndexedWrite(
    kind=WriteKind.NONE,
    leading=Extent(8),
    outer=(8, 12),
    sizes=(512,),
    count=1,
    inner=64,
    skips=False,
    advance=Advance.NONE,
    data=Tensor(DType.FP16, (12 * 512 * 64, 512 * 64, 64, 1)),
    index=Tensor(DType.INT64, (1, 0, 0, 0, 0), alignment=8),
    updates=Tensor(DType.FP16, (12 * 64, 64, 64, 1)),
    y=Tensor(DType.FP16, (12 * 512 * 64, 512 * 64, 64, 1)),
)
_TOP = TopIndices(
    largest=True,
    last=False,
    leading=Extent(4),
    outer=(4,),
    size=8400,
    count=100,
    x=Tensor(DType.FP32, (8400, 1)),
    y=Tensor(DType.INT64, (100, 1), alignment=8),
)


def _attention(precision: Precision) -> Attention:
    rows = Tensor(precision.storage, (128 * 768, 64, 768, 1))
    return Attention(
        precision=precision,
        batch=(Extent(8), 12),
        queries=128,
        keys=128,
        depth=64,
        width=64,
        q=rows,
        k=rows,
        v=rows,
        scores=Epilogue(),
        empty_rows_are_zero=False,
        y=rows,
    )


PROBLEMS: dict[str, Problem] = {
    f"{name}_{precision}": problem
    for precision in ASKED
    for name, problem in {
        "conv3x3_56": _convolution(precision, 1, (64, 56, 56), 64, 3),
        "conv3x3_7": _convolution(precision, 1, (512, 7, 7), 512, 3),
        "conv1x1_batch": _convolution(precision, 32, (256, 14, 14), 1024, 1),
        "depthwise": _convolution(precision, 1, (96, 56, 56), 96, 3, groups=96),
        "grouped": _convolution(precision, 1, (64, 28, 28), 64, 3, groups=8),
        "gemm": _matmul(precision, 128, 768, 3072),
        "gemv": _matmul(precision, 1, 1000, 512),
        "attention": _attention(precision),
        "squeeze": squeeze(480, 196, 120, precision=precision),
        "recurrence": recurrence(batch=32, hidden=256, steps=50, precision=precision),
    }.items()
} | {
    "pooling": _pooling(1, 64, 112),
    "pooling_batch": _pooling(32, 64, 112),
    "regions": RoiAlign(
        *(RoiMode.AVERAGE, True, None, 0.25, Extent(100), 1, 64, 50, 68, 7, 7),
        *(Tensor(DType.FP16, (64 * 3400, 1, 68 * 64, 64)), Tensor(DType.FP32, (4, 1))),
        *(Tensor(DType.INT64, (1,), alignment=8), Tensor(DType.FP16, (64 * 49, 1, 7 * 64, 64))),
        Epilogue(),
    ),
    "feed_forward": feed_forward(100352, 96, 384, norm=NormKind.LAYER),
    "feed_forward_few": feed_forward(784, 192, 768, scaled=True),
    "thin_gemm_known": swin(100352)[0],
    "thin_gemm": swin(3136)[1],
    "normed_gemm": _normed(NormKind.LAYER),
    "normed_gemm_rms": _normed(NormKind.RMS),
    "gemm_with_moments": with_moments(_matmul(Precision.FP16, 197, 768, 768), NormKind.LAYER),
    "normed_gemm_known": knowing_moments(_normed(NormKind.LAYER)),
    "layer_norm": _LAYER_NORM,
    "softmax": replace(_LAYER_NORM, kind=NormKind.SOFTMAX),
    "group_norm": _GROUP_NORM,
    "mean": _MEAN,
    "add": _ADD,
    "transpose": _TRANSPOSE,
    "elements": _ELEMENTS,
    "scatter": _SCATTER,
    "top": _TOP,
    "placed": PlacedRows(RowPlacing.REPEATED, Extent(8), Extent(128, "s"), 768, *(_ROWS,) * 2),
    "cumsum": PrefixScan(ScanKind.SUM, False, False, Extent(128), (128,), 768, _ROWS, _ROWS),
    "determinants": Determinant(
        *(Extent(512), (512,), 16, Tensor(DType.FP32, (256, 16, 1)), Tensor(DType.FP32, (1,))),
    ),
    "boxes": BoxSelection(
        *(False, 0.5, 0.1, Extent(8), 80, 8400, 100, Tensor(DType.FP32, (33600, 4, 1))),
        *(Tensor(DType.FP32, (80 * 8400, 8400, 1)),),
        *(Tensor(DType.INT64, (24000, 300, 3, 1), alignment=8),),
    ),
    "argmax": replace(_TOP, count=1),
}
