"""A small problem and a schedule for each template that launches early, and headers with faults in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from subjects.problems import convolution

from support.problems.feed_forwards import feed_forward
from support.problems.squeezes import squeeze
from support.problems.thin_products import thin
from wpk.dtypes import DType, Precision
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
    FeedForward,
    Gather,
    IndexedRead,
    IndexedWrite,
    Matmul,
    Normalisation,
    Pad,
    PlacedRows,
    Pooling,
    PrefixScan,
    Problem,
    Reduction,
    Resize,
    RoiAlign,
    RoiMode,
    RowPlacing,
    ScanKind,
    Squeeze,
    Tensor,
    TopIndices,
    WriteKind,
)
from wpk.problems.movement import NearestMode, PadMode, ResizeCoordinates, ResizeMode
from wpk.problems.normalisation import NormKind
from wpk.problems.pooling import PoolKind
from wpk.problems.reduction import ReduceKind
from wpk.schedules import packings
from wpk.schedules.registry import TEMPLATE_OF

HALF, SINGLE = DType.FP16, DType.FP32
N = Extent(3)


def _image(dtype: DType, c: int, h: int, w: int) -> Tensor:
    return Tensor(dtype, (h * w * c, 1, w * c, c))


def _rows(dtype: DType, rows: int, columns: int) -> Tensor:
    return Tensor(dtype, (rows * columns, columns, 1))


BIAS = Epilogue(apply("Relu", apply("Add", Acc(), Operand(0))), (Tensor(SINGLE, (0, 1, 0, 0)),))
"""Of which nobody says that it is a constant."""

_BIASED: dict[str, Any] = {"bias": SINGLE, "relu": True}

_COLUMNS = Epilogue(apply("Add", Acc(), Operand(0)), (Tensor(SINGLE, (0, 0, 0, 1)),))

_AFFINE = Epilogue(
    apply("Add", apply("Mul", Acc(), Operand(0)), Operand(1)), (Tensor(SINGLE, (0, 0, 1)),) * 2
)

_SIMT = {
    "block_m": 32,
    "block_n": 32,
    "block_k": 8,
    "thread_m": 4,
    "thread_n": 4,
    "row_major": 0,
    "padding": 4,
    "prefetch": 1,
}


_MMA = {
    "block_m": 32,
    "block_n": 32,
    "block_k": 8,
    "warps_m": 2,
    "warps_n": 1,
    "stages": 3,
}

_SKINNY = {"block_m": 8, "thread_n": 4, "threads_k": 8, "threads_n": 8, "depth": 1, "prefetch": 1}

_STRIP = {"vector": 2, "pixels": 4, "rows": 7, "lanes": 4, "threads": 64}
_PATCH = {
    "tile_p": 2,
    "tile_q": 8,
    "block_n": 16,
    "warps_m": 1,
    "warps_n": 1,
}


@dataclass(frozen=True)
class Case:
    """What is executed.

    Attributes:
        template: Name of the template.
        problem: For it.
        schedule: Its parameters besides ``early``.
        inputs: Shape, over its domain, of each input.
        output: Shape of the output.
    """

    template: str
    problem: Any
    schedule: dict[str, int]
    inputs: tuple[tuple[int, ...], ...]
    output: tuple[int, ...]


def _convolution(groups: int) -> Convolution:
    return convolution(8, size=(7, 9), groups=groups, n=N, precision=Precision.FP32, **_BIASED)


def _first_layer() -> Convolution:
    return convolution(3, 8, (14, 18), stride=2, n=N, precision=Precision.FP32, **_BIASED)


def _groups() -> Convolution:
    return convolution(8, 8, (7, 9), groups=2, n=N, **_BIASED)


def _matmul(constant: bool, m: int = 40) -> Matmul:
    a, b, y = (
        Tensor(SINGLE, (rows * columns, 0, columns, 1))
        for rows, columns in ((m, 48), (48, 24), (m, 24))
    )
    b = replace(b, strides=(0, 0, 24, 1)) if constant else b
    batch = (Extent(2), 1)
    return Matmul(Precision.FP32, batch, Extent(m), 24, 48, a, b, constant, y, _COLUMNS)


def _by_indices() -> list[Case]:
    """The templates that read and write by indices, and those that find them."""
    each = Tensor(SINGLE, (50 * 40, 0, 1, 40))
    index = Tensor(DType.INT64, (21 * 40, 40, 1, 0), alignment=8)
    read = IndexedRead(N, (3, 21, 40), (50,), each, index, Tensor(SINGLE, (21 * 40, 40, 1)))
    whole = Tensor(HALF, (50 * 40, 50 * 40, 40, 1))
    write = IndexedWrite(
        *(WriteKind.ADD, N, (3, 1), (50,), 21, 40, False, Advance.NONE, whole),
        *(Tensor(DType.INT64, (21, 21, 1, 0, 0), alignment=8),),
        *(Tensor(HALF, (21 * 40, 21 * 40, 40, 1)), whole),
    )
    boxes = BoxSelection(
        *(False, 0.1, None, Extent(3), 2, 50, 7, Tensor(SINGLE, (200, 4, 1))),
        *(Tensor(SINGLE, (100, 50, 1)), Tensor(DType.INT64, (42, 21, 3, 1), alignment=8)),
    )
    squares = Tensor(SINGLE, (50 * 25, 25, 5, 1))
    latest = replace(write, kind=WriteKind.NONE)
    rows, few = Tensor(SINGLE, (50 * 40, 40, 1)), Tensor(DType.INT64, (150, 3, 1), alignment=8)
    top = TopIndices(True, False, N, (3, 50), 40, 3, rows, few)
    first = TopIndices(True, False, N, (3, 50), 40, 1, rows, Tensor(DType.INT64, (50, 1, 1)))
    return [
        Case(
            *("indexed_read", read, {"vector": 4, "threads": 64}),
            *(((3, 21, 40, 50), (3, 21, 40, 1)), (3, 21, 40)),
        ),
        Case(
            *("latest_write", latest, {"places": 32, "vector": 4, "threads": 64}),
            *(((3, 1, 50, 40), (3, 1, 21, 40, 1), (3, 1, 21, 40)), (3, 1, 50, 40)),
        ),
        Case(
            *("indexed_write", write, {"vector": 4, "threads": 64}),
            *(((3, 1, 50, 40), (3, 1, 21, 40, 1), (3, 1, 21, 40)), (3, 1, 50, 40)),
        ),
        Case(
            *("box_selection", boxes, {"threads": 64}),
            *(((3, 50, 4), (3, 2, 50)), (3, 2, 7, 3)),
        ),
        Case(
            *("determinant", Determinant(N, (3, 50), 5, squares, Tensor(SINGLE, (50, 1)))),
            *({"matrices": 4, "splits": 8}, ((3, 50, 5, 5),), (3, 50)),
        ),
        Case(
            *("prefix_scan", PrefixScan(ScanKind.SUM, False, False, N, (3, 50), 40, rows, rows)),
            *({"rows": 4, "splits": 16}, ((3, 50, 40),), (3, 50, 40)),
        ),
        Case(
            *("arg_reduction", first, {"outputs": 4, "splits": 16}),
            *(((3, 50, 40),), (3, 50, 1)),
        ),
        Case("top_by_rank", top, {"vector": 1, "threads": 64}, ((3, 50, 40),), (3, 50, 3)),
        Case("top_by_sorting", top, {"kept": 32, "threads": 32}, ((3, 50, 40),), (3, 50, 3)),
    ]


def _streaming() -> list[Case]:
    """The templates that read what they need once and write it."""
    large, small = (3, 24, 12, 10), (3, 24, 6, 5)
    x, y = _image(HALF, 24, 12, 10), _image(HALF, 24, 6, 5)
    vector = {"vector": 4, "threads": 64}
    pooling = Pooling(
        *(PoolKind.AVERAGE, N, 24, 12, 10, 6, 5, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
        *(False, x, y, BIAS),
    )
    regions = RoiAlign(
        *(RoiMode.AVERAGE, True, 2, 4.0, N, 50, 24, 12, 10, 6, 5),
        *(replace(x, strides=(0, *x.strides[1:])), Tensor(SINGLE, (4, 1))),
        *(Tensor(DType.INT64, (1,), alignment=8), y, BIAS),
    )
    scaled = apply("Mul", Operand(0), apply("Sigmoid", Operand(0)))
    first = Tensor(SINGLE, (24 * 120, 120, 10, 1))
    pad = Pad(
        *(N, small, (3, 24, 8, 7), (0, 0, 1, 1), PadMode.CONSTANT, 0.5, y, _image(HALF, 24, 8, 7))
    )
    resize = Resize(
        *(ResizeMode.LINEAR, ResizeCoordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_FLOOR, N),
        *(24, 6, 5, 12, 10, (2.0, 2.0), y, x),
    )
    flat = Tensor(HALF, (40, 1))
    gather = Gather(
        *(Extent(1), 50, Extent(21), 40, Tensor(HALF, (0, 40, 1))),
        *(Tensor(DType.INT64, (0, 1), alignment=8), Tensor(HALF, (0, 40, 1))),
    )
    return [
        Case("pooling", pooling, vector, (large, (1, 24, 1, 1)), small),
        Case("roi_align", regions, vector, ((1, 24, 12, 10), (3, 4), (3,), (1, 24, 1, 1)), small),
        Case("pad", pad, vector, (small,), (3, 24, 8, 7)),
        Case("resize", resize, vector, (small,), large),
        Case(
            *("placed_rows", PlacedRows(RowPlacing.SPREAD, N, Extent(7), 40, flat, flat)),
            *(vector, ((3, 40),), (21, 40)),
        ),
        Case("gather", gather, vector, ((1, 50, 40), (1, 21)), (1, 21, 40)),
        Case(
            *("elementwise", Elementwise(N, large, scaled, (x,), x)),
            *({"vector": 4, "items": 2, "threads": 64}, (large,), large),
        ),
        Case(
            *("elementwise_tiled", Elementwise(N, large, Operand(0), (first,), x)),
            *({"vector": 2, "tile": 32, "threads": 128}, (large,), large),
        ),
    ]


def _meeting() -> list[Case]:
    """Those whose threads meet before they write."""
    rows = _rows(HALF, 8, 160)
    mean = Reduction(
        *(ReduceKind.MEAN, N, (3, 24), (12, 10), Operand(0), (_image(HALF, 24, 12, 10),)),
        *(Tensor(HALF, (24, 1)), Epilogue()),
    )
    layer = Normalisation(
        *(NormKind.LAYER, N, (3, 8), 160, 1e-5, Operand(0), (rows,), rows, _AFFINE)
    )
    shape = (3, 8, 160)
    pixels = Tensor(HALF, (24 * 40, 1, 24))
    across = Normalisation(
        *(NormKind.SOFTMAX, N, (3, 24), 40, 0.0, Operand(0), (pixels,), pixels, Epilogue())
    )
    return [
        Case(
            *("normalisation_across", across, {"rows": 8, "threads": 64, "blocks": 1}),
            *(((3, 24, 40),), (3, 24, 40)),
        ),
        Case(
            *("reduction", mean, {"vector": 4, "outputs": 8, "splits": 8}),
            *(((3, 24, 12, 10),), (3, 24)),
        ),
        Case(
            *("normalisation", layer, {"vector": 4, "threads": 64, "rows": 1, "cached": 1}),
            *((shape, (1, 1, 160), (1, 1, 160)), shape),
        ),
    ]


def _products() -> list[Case]:
    image, bias = (3, 8, 7, 9), (1, 8, 1, 1)
    b = {True: (48, 24), False: (2, 1, 48, 24)}
    return [
        Case(
            *("depthwise", _convolution(8), {"vector": 4, "pixels": 2, "threads": 64}),
            *((image, (8, 1, 3, 3), bias), image),
        ),
        Case(
            *("depthwise_rows", _convolution(8), _STRIP),
            *((image, (8, 1, 3, 3), bias), image),
        ),
        *(
            Case("conv_simt", _convolution(1), _SIMT | more, (image, (8, 8, 3, 3), bias), image)
            for more in ({}, {"prefetch": 0}, {"split": 3})
        ),
        *(
            Case("conv_mma", _convolution(1), _MMA | more, (image, (8, 8, 3, 3), bias), image)
            for more in ({}, {"stages": 2, "split": 3})
        ),
        Case(
            *("conv_grouped", _groups(), _PATCH),
            *((image, (8, 4, 3, 3), bias), image),
        ),
        *(
            Case(
                *("conv_patch", _first_layer(), _PATCH | more),
                *(((*image[:1], 3, 14, 18), (8, 3, 3, 3), bias), image),
            )
            for more in ({}, {"tiles": 3})
        ),
        *(
            Case(
                *(f"gemm_{cores}", _matmul(constant, m), tile | more),
                *(((2, 1, m, 48), b[constant], (1, 1, 1, 24)), (2, 1, m, 24)),
            )
            for cores, m, tile in (("simt", 40, _SIMT), ("mma", 40, _MMA), ("skinny", 5, _SKINNY))
            for constant in (True, False)
            for more in ({}, {"split": 2})
        ),
    ]


def _attention() -> list[Case]:
    rows, mask = Tensor(HALF, (3 * 30 * 32, 32, 96, 1)), Tensor(SINGLE, (0, 0, 30, 1))
    scores = Epilogue(apply("Add", Acc(), Operand(0)), (mask,))
    problem = Attention(
        *(Precision.FP16, (N, 3), 30, 30, 32, 32, rows, rows, rows, scores, False, rows)
    )
    shape, schedule = (3, 3, 30, 32), {"warps_m": 2, "warps_n": 1, "block_n": 16, "stages": 2}
    groups = {"warpgroups": 1, "block_n": 16, "stages": 2}
    inputs = (shape, shape, shape, (1, 1, 30, 30))
    return [
        Case("attention_mma", problem, schedule, inputs, shape),
        Case("attention_simt", problem, {"warps": 4}, inputs, shape),
        Case("attention_wgmma", problem, groups, inputs, shape),
    ]


def _shapes(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Of all that a problem reads, 1 where it is broadcast."""
    return tuple(
        tuple(
            size if stride else 1
            for size, stride in zip(each.sizes, each.tensor.strides, strict=True)
        )
        for each in problem.reads()
        if each is not None
    )


def _feed_forwards() -> list[Case]:
    problem = feed_forward(150, 48, 96, norm=NormKind.LAYER)
    schedule, output = {"warpgroups": 1, "block_n": 32}, problem.accesses()[1].sizes
    return [
        Case("feed_forward_wgmma", problem, schedule | more, _shapes(problem), output)
        for more in (
            {"stages": 2},
            {"stages": 3, "persistent": 2, "row_stages": 2},
        )
    ]


def _thin() -> list[Case]:
    problem = thin(150, 40, 48, residual=True)
    schedule, output = {"warpgroups": 1, "block_n": 32}, problem.accesses()[1].sizes
    a, *operands = _shapes(problem)  # b is packed
    return [
        Case("thin_wgmma", problem, schedule | more, (a, (48, 40), *operands), output)
        for more in ({}, {"persistent": 2, "row_stages": 2, "ahead": 1})
    ]


def _squeezes() -> list[Case]:
    problem, schedule = squeeze(40, 30, 10, n=3), {"threads": 64, "staged": 1}
    shapes, output = _shapes(problem), problem.accesses()[1]
    return [
        Case("squeeze", problem, schedule | more, shapes, output.sizes)
        for more in (
            {"blocks": 2, "by_pixels": 0},
            {"blocks": 4, "by_pixels": 1, "kept": 1},
            {"blocks": 1, "by_pixels": 0},
        )
    ]


CASES = (
    *_streaming(),
    *_by_indices(),
    *_meeting(),
    *_products(),
    *_attention(),
    *_squeezes(),
    *_feed_forwards(),
    *_thin(),
)


def _larger() -> list[Case]:
    """Layers of networks at batch 1, as they would be launched there."""
    one = Extent(1)
    pixels = (1, 384, 14, 14)
    depthwise = convolution(384, groups=384, **_BIASED)
    pooled = Pooling(
        *(PoolKind.MAX, one, 64, 112, 112, 56, 56, (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)),
        *(False, _image(HALF, 64, 112, 112), _image(HALF, 64, 56, 56), Epilogue()),
    )
    rows = _rows(HALF, 128, 768)
    layer = Normalisation(
        *(NormKind.LAYER, one, (1, 128), 768, 1e-5, Operand(0), (rows,), rows, _AFFINE)
    )
    mean = Reduction(
        *(ReduceKind.MEAN, one, (1, 2048), (7, 7), Operand(0), (_image(HALF, 2048, 7, 7),)),
        *(Tensor(HALF, (2048, 1)), Epilogue()),
    )
    conv = convolution(256, precision=Precision.FP32, **_BIASED)
    text = (1, 128, 768)
    return [
        Case(
            *("depthwise", depthwise, {"vector": 4, "pixels": 2, "threads": 128}),
            *((pixels, (384, 1, 3, 3), (1, 384, 1, 1)), pixels),
        ),
        Case(
            *("pooling", pooled, {"vector": 8, "threads": 128}),
            *(((1, 64, 112, 112),), (1, 64, 56, 56)),
        ),
        Case(
            *("normalisation", layer, {"vector": 8, "threads": 32, "rows": 4, "cached": 1}),
            *((text, (1, 1, 768), (1, 1, 768)), text),
        ),
        Case(
            *("reduction", mean, {"vector": 4, "outputs": 16, "splits": 8}),
            *(((1, 2048, 7, 7),), (1, 2048)),
        ),
        Case(
            *("conv_simt", conv, _SIMT | {"block_k": 16, "split": 8}),
            *(((1, 256, 14, 14), (256, 256, 3, 3), (1, 256, 1, 1)), (1, 256, 14, 14)),
        ),
        Case(
            *("conv_mma", conv, _MMA | {"block_k": 32, "stages": 5, "split": 9}),
            *(((1, 256, 14, 14), (256, 256, 3, 3), (1, 256, 1, 1)), (1, 256, 14, 14)),
        ),
    ]


LARGER = tuple(_larger())


def schedule(case: Case, early: int) -> Any:
    """The case's schedule, launched early or not."""
    return TEMPLATE_OF[case.template].schedule_type(**case.schedule, early=early)


def operands(case: Case, seed: int) -> list[NDArray[Any]]:
    """Random inputs as they lie in memory; the constant one packed."""
    rng, problem = np.random.default_rng(seed), case.problem
    packing = TEMPLATE_OF[case.template].packing(problem, schedule(case, 0))
    memory = []
    for index, (shape, tensor) in enumerate(zip(case.inputs, _tensors(case), strict=True)):
        if index == 1 and packing is not None:
            weight = rng.standard_normal(shape).astype(problem.precision.storage.numpy)
            memory.append(packings.pack(packing, weight, problem))
            continue
        values = rng.standard_normal(shape) if tensor.dtype.is_float else rng.integers(0, 50, shape)
        memory.append(_laid_out(tensor, values.astype(tensor.dtype.numpy)))
    return memory


def _tensors(case: Case) -> list[Any]:
    """The problem's inputs; anything stands for a packed one."""
    problem = case.problem
    epilogue = getattr(problem, "epilogue", None)
    tail = epilogue.operands if epilogue is not None else ()
    match problem:
        case Gather() | IndexedRead():
            return [problem.data, problem.index]
        case IndexedWrite():
            return [problem.data, problem.index, problem.updates]
        case RoiAlign():
            return [problem.x, problem.rois, problem.image, *tail]
        case BoxSelection():
            return [problem.boxes, problem.scores]
        case Matmul():
            return [problem.a, problem.b, *tail]
        case Convolution():
            return [problem.x, problem.x, *tail]
        case Attention():
            return [problem.q, problem.k, problem.v, *problem.scores.operands, *tail]
        case Squeeze() | FeedForward():
            return [each.tensor for each in problem.accesses()[0] if each is not None]
        case (
            Pooling()
            | Pad()
            | Resize()
            | TopIndices()
            | PrefixScan()
            | PlacedRows()
            | Determinant()
        ):
            return [problem.x, *tail]
        case _:
            return [*problem.inputs, *tail]


def _laid_out(tensor: Tensor, values: NDArray[Any]) -> NDArray[Any]:
    last = sum((n - 1) * s for n, s in zip(values.shape, tensor.strides, strict=True))
    memory = np.zeros(last + 1 + tensor.padding, values.dtype)
    strides = tuple(s * memory.itemsize for s in tensor.strides)
    np.lib.stride_tricks.as_strided(memory, values.shape, strides)[...] = values
    return memory
