"""Layers of every shape that the templates of warpgroups take, dense or padded, with bias, residual and ReLU."""

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from subjects import problems

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import (
    ClampedConvolution,
    Convolution,
    Epilogue,
    Matmul,
    MomentsMatmul,
    NormedMatmul,
    NormKind,
    Tensor,
    moments_group,
    moments_of_row,
)
from wpk.schedules.wgmma.tiles import WgmmaSchedule

Array = NDArray[Any]
Product = TypeVar("Product", bound=Convolution | Matmul)

TAIL = apply("Relu", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)))
BIAS = Tensor(DType.FP32, (0, 1, 0, 0))
_WITH_TAIL: dict[str, Any] = {"bias": DType.FP32, "residual": True, "relu": True}

TAPS: dict[str, dict[str, Any]] = {
    "7x7": {},
    "three of 7x7": {"n": 3},
    "14x14": {"size": (14, 14), "c": 128},
    "three of 5x9": {"size": (5, 9), "n": 3, "k": 72},
    "stride 2": {"size": (11, 8), "stride": (2, 2)},
    "asymmetric": {"size": (6, 9), "filter": (3, 2), "pads": (0, 2, 1, 0)},
    "dilated": {"size": (9, 11), "dilation": (2, 3), "pads": (2, 3, 2, 3)},
    "24 channels": {"c": 24, "k": 40},
    "136 channels": {"c": 136},
    "58 channels, padded": {"c": 58, "padding": 6},
    "one image": {"one_image": True},
    "one-dimensional": {"size": (1, 90), "filter": (1, 5), "pads": (0, 2, 0, 2)},
}
"""Of `convolution`: layers of several taps."""


def at(schedule: WgmmaSchedule, precision: Precision) -> WgmmaSchedule:
    """The same boxes of another precision."""
    return replace(schedule, block_k=schedule.block_k * 2 // precision.storage.bytes)


def convolution(
    c: int = 64,
    k: int = 64,
    size: tuple[int, int] = (7, 7),
    *,
    padding: int = 0,
    one_image: bool = False,
    **given: Any,
) -> Convolution:
    """With bias, residual and ReLU; ``padding`` is that of x. One image needs no stride from image to image."""
    problem = problems.convolution(c, k, size, padding=(padding, 0), **_WITH_TAIL, **given)
    if one_image:
        return replace(problem, x=replace(problem.x, strides=(0, *problem.x.strides[1:])))
    return problem


def matmul(m: int, n: int, k: int, *, constant: bool = True, **given: Any) -> Matmul:
    """With bias, residual and ReLU; a ``b`` that is not constant is transposed in memory."""
    problem = problems.matmul(m, n, k, constant=constant, **_WITH_TAIL, **given)
    return problem if constant else replace(problem, b=Tensor(problem.b.dtype, (0, 0, 1, k)))


def across(m: int, n: int, k: int, batch: tuple[int, int] = (1, 1)) -> Matmul:
    """Matrices whose ``b`` lies across the reduction, without an epilogue."""
    sizes = ((m, k), (k, n), (m, n))
    images, heads = batch
    a, b, y = (
        Tensor(DType.FP16, (heads * r * c, r * c, c, 1) if batch != (1, 1) else (0, 0, c, 1))
        for r, c in sizes
    )
    plain = matmul(m, n, k, constant=False)
    return replace(plain, a=a, b=b, y=y, epilogue=Epilogue(), batch=(Extent(images), heads))


def limited(plain: Convolution, *, upper: bool = True) -> ClampedConvolution:
    """The same of an input that is kept between limits, or above lower ones alone."""
    limit = Tensor(plain.x.dtype, (0, 1, 0, 0))
    return ClampedConvolution(**vars(plain), lower=limit, upper=limit if upper else None)


def by_columns(plain: Product, bias: DType = DType.FP16, approximate: str = "none") -> Product:
    """The same with a bias and a GELU behind it, which are alike in all rows."""
    axis = 1 if isinstance(plain, Convolution) else 3
    strides = tuple(int(i == axis) for i in range(4))
    biased = Epilogue(apply("Add", Acc(), Operand(0)), (Tensor(bias, strides),))
    return problems.with_gelu(replace(plain, epilogue=biased), approximate)


def normed(plain: Matmul, kind: NormKind) -> NormedMatmul:
    """The same of rows that are normalised."""
    sums = Tensor(DType.FP32, (0, 0, 0, 1), constant=True) if kind is NormKind.LAYER else None
    return NormedMatmul(**vars(plain), kind=kind, epsilon=1e-5, sums=sums)


def with_moments(plain: Matmul, kind: NormKind) -> MomentsMatmul:
    """The same whose rows are stored with their moments, one row of them behind the other."""
    return MomentsMatmul(**vars(plain), kind=kind, moments=_moments(plain, plain.n, kind))


def knowing_moments(problem: NormedMatmul) -> NormedMatmul:
    """The same of rows whose moments a kernel in front has stored."""
    return replace(problem, moments=_moments(problem, problem.k, problem.kind))


def _moments(problem: Matmul, columns: int, kind: NormKind) -> Tensor:
    width = moments_of_row(columns, kind)
    matrix = problem.m.value * width
    return Tensor(DType.FP32, (problem.batch[1] * matrix, matrix, width, 1), alignment=4)


def moments_of(rows: Array, kind: NormKind) -> Array:
    """Of each group of columns, in float64, as they lie in memory."""
    groups = rows.reshape(*rows.shape[:-1], -1, moments_group(rows.shape[-1]))
    if kind is NormKind.RMS:
        return np.asarray((groups**2).mean(axis=-1))
    mean = groups.mean(axis=-1)
    squares = ((groups - mean[..., None]) ** 2).mean(axis=-1)
    return np.stack([mean, squares], axis=-1).reshape(*rows.shape[:-1], -1)
