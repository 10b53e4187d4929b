"""Problems that the templates of warpgroups are for: layers of ResNets and of DistilBERT."""

from typing import Any

from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Matmul, Tensor


def image(dtype: DType, c: int, size: int) -> Tensor:
    """Channels-last."""
    return Tensor(dtype, (size * size * c, 1, size * c, c))


def resnet(c: int = 256, size: int = 14, n: int = 1, **more: Any) -> Convolution:
    """A 3 x 3 convolution of a ResNet with its residual; by default with a free batch."""
    precision = more.get("precision", Precision.FP16)
    x = image(precision.storage, c, size)
    tail = apply("Relu", apply("Add", apply("Add", Acc(), Operand(0)), Operand(1)))
    epilogue = Epilogue(tail, (Tensor(DType.FP32, (0, 1, 0, 0)), x))
    return Convolution(
        *(precision, Extent(n, "n"), c, size, size, c, size, size, (3, 3), (1, 1), (1, 1), (1, 1)),
        *(1, False, x, x, epilogue),
    )


def dense(
    m: int = 128, n: int = 768, k: int = 3072, precision: Precision = Precision.BF16
) -> Matmul:
    """A projection with its bias; the number of rows is free."""
    dtype = precision.storage
    a, b, y = (Tensor(dtype, (0, 0, pitch, 1)) for pitch in (k, n, n))
    bias = Epilogue(apply("Add", Acc(), Operand(0)), (Tensor(DType.FP32, (0, 0, 0, 1)),))
    return Matmul(precision, (Extent(1), 1), Extent(m, "n", m), n, k, a, b, True, y, bias)
