"""Products whose rows cannot be joined, as convolutions of one pixel.

    y[b0, b1, m, n] = epilogue(a[b0, b1, m, :] * b[:, n])  =  y[n = b0, h = b1, w = m, k = n] of a filter of 1 x 1

A product of rows with one matrix is a single matrix of rows where everything steps through them as one. Where an
operand repeats (positions that are added to each sample), or the output lies in a larger tensor (behind a class
token), it is a batch of matrices, each of which begins tiles of its own: of 196 rows 60 of 256 are empty, and no
block goes on from one matrix to the next. Convolutions take their rows from all images alike, and find each row's
place by its pixel.
"""

from dataclasses import replace

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.lowering.anchors.base import LoweredProblem
from wpk.lowering.context import Context
from wpk.lowering.views import View
from wpk.problems import FEW_ROWS, Convolution, Matmul, Tensor

_PRECISIONS = (Precision.FP32, Precision.TF32, Precision.FP16, Precision.BF16)
"""In which the same tiles multiply both, in tensor copies and without."""

_CHANNELS = (0, 3, 1, 2)
"""The axes of matrices (b0, b1, m, n) as an image's (n, k, h, w)."""


def as_pixels(lowered: LoweredProblem, context: Context) -> LoweredProblem:
    """Return a product of several matrices of rows with one matrix as the convolution that it is.

    Other problems are returned as they are, and so are products of few rows, which read their matrix once, and
    those whose columns do not lie side by side.
    """
    product = lowered.problem
    if type(product) is not Matmul or not _is_apart(product):
        return lowered
    a, b, *operands = lowered.inputs
    filters = context.constant(_filters(b))
    assert filters is not None
    outer, inner = product.batch
    pixels = inner, product.m.value
    problem = Convolution(
        precision=product.precision,
        n=outer,
        c=product.k,
        h=pixels[0],
        w=pixels[1],
        k=product.n,
        p=pixels[0],
        q=pixels[1],
        filter=(1, 1),
        stride=(1, 1),
        dilation=(1, 1),
        pad=(0, 0),
        groups=1,
        transposed=False,
        x=_image(product.a),
        y=_image(product.y),
        epilogue=replace(product.epilogue, operands=tuple(map(_image, product.epilogue.operands))),
    )
    return LoweredProblem(problem, (a, filters, *operands))


def _is_apart(product: Matmul) -> bool:
    """Whether a convolution reads and writes what the product does, and joins rows that the product does not."""
    outer, inner = product.batch
    matrices, rows = outer.value * inner, product.m.value
    batch = zip((outer.value, inner), product.a.strides, strict=False)
    differ = all(stride for extent, stride in batch if extent > 1)
    written = (product.y, *product.epilogue.operands)
    side_by_side = product.a.strides[3] == 1 and all(t.strides[3] in (0, 1) for t in written)
    is_many = (matrices > 1 or outer.free is not None) and matrices * rows > FEW_ROWS
    takes = product.b_constant and product.precision in _PRECISIONS
    return takes and is_many and differ and side_by_side


def _image(matrices: Tensor) -> Tensor:
    return replace(matrices, strides=tuple(matrices.strides[axis] for axis in _CHANNELS))


def _filters(matrix: View) -> View:
    """The columns of a matrix as filters of one pixel."""
    (k, n), (of_k, of_n) = matrix.shape, matrix.strides
    return replace(matrix, leading=Extent(n), shape=(n, k, 1, 1), strides=(of_n, of_k, 1, 1))
