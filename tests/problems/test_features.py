"""Problems as numbers."""

from dataclasses import replace

from subjects.problems import convolution

from wpk.dtypes import DType, Precision
from wpk.expression import Operand
from wpk.extent import Extent
from wpk.problems import Elementwise, Epilogue, Matmul, Pooling, ReduceKind, Reduction, Tensor
from wpk.problems.pooling import PoolKind

CONVOLUTION = convolution(
    *(64, 128, (56, 48), (3, 5)), stride=2, n=Extent(4, "batch"), precision=Precision.FP32
)


def test_a_convolution_is_the_papers_nine_numbers() -> None:
    features = CONVOLUTION.features()
    assert list(features.values()) == [4, 64, 128, 3, 5, 56, 48, 2, 1]
    assert replace(CONVOLUTION, pad=(0, 0)).features()["padding"] == 0


def test_a_product_is_its_extents() -> None:
    a, b, y = (Tensor(DType.FP32, (0, 0, columns, 1)) for columns in (32, 16, 16))
    product = Matmul(Precision.FP32, (Extent(1), 1), Extent(8), 16, 32, a, b, True, y, Epilogue())
    assert product.features() == {"batch": 1, "m": 8, "n": 16, "k": 32}


def test_axes_count_from_the_last_so_that_ranks_compare() -> None:
    rows = Tensor(DType.FP32, (768, 1))
    add = Elementwise(Extent(128), (128, 768), Operand(0), (rows, rows), rows)
    features = add.features()
    assert features == {
        "inputs": 2,
        "axis_5": 1,
        "axis_4": 1,
        "axis_3": 1,
        "axis_2": 128,
        "axis_1": 768,
    }
    mean = Reduction(
        kind=ReduceKind.MEAN,
        leading=Extent(2),
        outer=(2, 512),
        inner=(49,),
        prologue=Operand(0),
        inputs=(Tensor(DType.FP32, (25088, 49, 1)),),
        y=rows,
        epilogue=Epilogue(),
    )
    assert list(mean.features().values()) == [1, 1, 2, 512, 1, 1, 49]


def test_pools_have_a_window_of_two_sizes() -> None:
    x, y = Tensor(DType.FP32, (1536, 1, 48, 3)), Tensor(DType.FP32, (72, 1, 9, 3))
    pool = Pooling(
        PoolKind.MAX, Extent(1), 3, 32, 16, 8, 3, (5, 7), (4, 4), (1, 1), (1, 2), (0, 0), False, x, y,
        Epilogue(),
    )  # fmt: skip
    features = pool.features()
    assert (features["window_h"], features["window_w"]) == (5, 7)
    assert (features["stride"], features["padding"]) == (4, 1)
