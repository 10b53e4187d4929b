"""Problems that the templates of warpgroups are for: layers of ResNets and of DistilBERT."""

from subjects.problems import convolution, matmul

from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Convolution, Matmul


def resnet(
    c: int = 256, size: int = 14, n: int = 1, precision: Precision = Precision.FP16
) -> Convolution:
    """A 3 x 3 convolution of a ResNet with its residual and a free batch."""
    tail = {"bias": DType.FP32, "residual": True, "relu": True}
    return convolution(c, size=size, n=Extent(n, "n"), precision=precision, **tail)


def dense(
    m: int = 128, n: int = 768, k: int = 3072, precision: Precision = Precision.BF16
) -> Matmul:
    """A projection with its bias; the number of rows is free."""
    return matmul(Extent(m, "n", m), n, k, precision=precision, bias=DType.FP32)
