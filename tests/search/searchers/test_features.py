"""Problems as numbers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from subjects.problems import convolution

from wpk.dtypes import DType, Precision
from wpk.expression import Operand
from wpk.extent import Extent
from wpk.problems import Elementwise, Epilogue, Reduction, Tensor
from wpk.problems.reduction import ReduceKind
from wpk.search.searchers.features import problem_features

CONVOLUTION = convolution(
    *(64, 128, (56, 48), (3, 5)), stride=2, n=Extent(4, "batch"), precision=Precision.FP32
)


def test_a_convolution_is_the_papers_nine_numbers() -> None:
    features = problem_features(CONVOLUTION)
    assert list(features.values()) == [4, 64, 128, 3, 5, 56, 48, 2, 1]
    assert problem_features(replace(CONVOLUTION, pad=(0, 0)))["padding"] == 0


def test_a_product_is_its_extents(make_product: Callable[..., Any]) -> None:
    assert problem_features(make_product(8, 16, 32)) == {"batch": 1, "m": 8, "n": 16, "k": 32}


def test_axes_count_from_the_last_so_that_ranks_compare() -> None:
    rows = Tensor(DType.FP32, (768, 1))
    add = Elementwise(Extent(128), (128, 768), Operand(0), (rows, rows), rows)
    features = problem_features(add)
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
    assert list(problem_features(mean).values()) == [1, 1, 2, 512, 1, 1, 49]
