"""Problems with defaults, for benchmarks and tests: what is not said is a plain layer of a network.

    convolution(64, 128, 56, stride=2, bias=DType.FP32, relu=True)
    matmul(128, 768, 3072, bias=DType.FP32)
    with_gelu(matmul(128, 3072, 768, bias=DType.FP32))

What these do not say, ``dataclasses.replace`` does.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, Operand, apply
from wpk.extent import Extent
from wpk.operators import express
from wpk.problems import Convolution, Epilogue, Matmul, Tensor

T = TypeVar("T")
Product = TypeVar("Product", bound=Convolution | Matmul)
Pair = int | tuple[int, int]
Layout = Callable[[DType, int, int, int, int], Tensor]


def channels_last(dtype: DType, c: int, h: int, w: int, padding: int = 0) -> Tensor:
    """Images as engines have them, with ``padding`` zeros behind every pixel."""
    pixel = c + padding
    return Tensor(dtype, (h * w * pixel, 1, w * pixel, pixel), padding, _alignment(pixel, dtype))


def channels_first(dtype: DType, c: int, h: int, w: int, padding: int = 0) -> Tensor:
    """Images as models give them, with ``padding`` zeros behind every row."""
    row = w + padding
    return Tensor(dtype, (c * h * row, h * row, row, 1), padding, _alignment(row, dtype))


def rows(dtype: DType, columns: int) -> Tensor:
    """A row-major matrix without a batch."""
    return Tensor(dtype, (0, 0, columns, 1), alignment=_alignment(columns, dtype))


def convolution(
    c: int = 64,
    k: int | None = None,
    size: Pair = 14,
    filter: Pair = 3,
    *,
    stride: Pair = 1,
    dilation: Pair = 1,
    pads: int | tuple[int, int, int, int] | None = None,
    groups: int = 1,
    transposed: bool = False,
    n: int | Extent = 1,
    precision: Precision = Precision.FP16,
    padding: tuple[int, int] = (0, 0),
    layout: Layout = channels_last,
    bias: DType | None = None,
    residual: bool = False,
    relu: bool = False,
) -> Convolution:
    """A convolution whose tensors lie densely.

    Args:
        c: Channels of the input.
        k: Of the output; by default as many.
        size: Height and width of the input.
        filter: Height and width.
        stride: Along each axis.
        dilation: Along each axis.
        pads: (top, left, bottom, right), or the same on all sides; by default what keeps the size of
            an image where the stride is 1.
        groups: As in ONNX.
        transposed: As in ONNX's ConvTranspose.
        n: Images.
        precision: Of the products, and of what lies in memory.
        padding: Of the input and the output.
        layout: Of the input and the output.
        bias: Its type, where there is one.
        residual: Whether an image like the output is added.
        relu: Whether what is negative becomes 0.
    """
    size, filter, stride, dilation = map(_pair, (size, filter, stride, dilation))
    spans = tuple(d * (f - 1) + 1 for d, f in zip(dilation, filter, strict=True))
    if pads is None:
        pads = (spans[0] // 2, spans[1] // 2) * 2
    top, left, bottom, right = (pads,) * 4 if isinstance(pads, int) else pads
    around = (top + bottom, left + right)
    p, q = (
        (size[i] - 1) * stride[i] + spans[i] - around[i]
        if transposed
        else (size[i] + around[i] - spans[i]) // stride[i] + 1
        for i in (0, 1)
    )
    k = c if k is None else k
    x = layout(precision.storage, c, *size, padding[0])
    y = layout(precision.storage, k, p, q, padding[1])
    return Convolution(
        precision=precision,
        n=n if isinstance(n, Extent) else Extent(n),
        c=c,
        h=size[0],
        w=size[1],
        k=k,
        p=p,
        q=q,
        filter=filter,
        stride=stride,
        dilation=dilation,
        pad=(top, left),
        groups=groups,
        transposed=transposed,
        x=x,
        y=y,
        epilogue=_epilogue((0, 1, 0, 0), y, bias=bias, residual=residual, relu=relu),
    )


def matmul(
    m: int | Extent,
    n: int,
    k: int,
    *,
    precision: Precision = Precision.FP16,
    constant: bool = True,
    bias: DType | None = None,
    residual: bool = False,
    relu: bool = False,
) -> Matmul:
    """A product of two row-major matrices without a batch.

    Args:
        m: Rows.
        n: Columns of the result.
        k: Terms of a sum.
        precision: Of the products, and of what lies in memory.
        constant: Whether ``b`` is a weight.
        bias: Its type, where there is one.
        residual: Whether a matrix like the result is added.
        relu: Whether what is negative becomes 0.
    """
    a, b, y = (rows(precision.storage, columns) for columns in (k, n, n))
    return Matmul(
        precision=precision,
        batch=(Extent(1), 1),
        m=m if isinstance(m, Extent) else Extent(m),
        n=n,
        k=k,
        a=a,
        b=b,
        b_constant=constant,
        y=y,
        epilogue=_epilogue((0, 0, 0, 1), y, bias=bias, residual=residual, relu=relu),
    )


def with_gelu(product: Product, approximate: str = "none") -> Product:
    """Return a product whose result goes through ONNX's Gelu before it is stored."""
    gelu = express("Gelu", (product.epilogue.expression,), {"approximate": approximate})
    return replace(product, epilogue=replace(product.epilogue, expression=gelu))


def _epilogue(
    strides: tuple[int, ...], y: Tensor, *, bias: DType | None, residual: bool, relu: bool
) -> Epilogue:
    operands = (Tensor(bias, strides),) if bias is not None else ()
    operands += (y,) if residual else ()
    expression: Expression = Acc()
    for index in range(len(operands)):
        expression = apply("Add", expression, Operand(index))
    return Epilogue(apply("Relu", expression) if relu else expression, operands)


def _pair(value: Pair) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else value


def _alignment(count: int, dtype: DType) -> int:
    """Of rows of so many elements, in bytes."""
    return next(a for a in (16, 8, 4, 2, 1) if count * dtype.bytes % a == 0)
