"""Packings: every name has an inverse, pads with zeros, and rounds only where it says so."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.problems import Convolution, Epilogue, Matmul, Tensor
from wpk.schedules import packings

ANY = Tensor(DType.FP32, (0, 0, 0, 0), alignment=4)


def convolution(c: int = 6, k: int = 10, groups: int = 2, transposed: bool = False) -> Convolution:
    return Convolution(
        *(Precision.FP32, Extent(1), c, 9, 9, k, 7, 7, (3, 2), (1, 1), (1, 1), (0, 0)),
        *(groups, transposed, ANY, ANY, Epilogue()),
    )


MATMUL = Matmul(Precision.FP32, (Extent(1), 1), Extent(4), 10, 147, ANY, ANY, True, ANY, Epilogue())
CONVOLUTIONS = {
    "plain": convolution(groups=1),
    "grouped": convolution(),
    "transposed": convolution(transposed=True),
}
KRSC = [name for name in packings.PACKINGS if name.startswith("krsc")]
NK = [name for name in packings.PACKINGS if name.startswith("nk")]


def logical(problem: Convolution, dtype: Any) -> np.ndarray:
    per_group, channels = problem.k // problem.groups, problem.c // problem.groups
    outer = (problem.c, per_group) if problem.transposed else (problem.k, channels)
    return np.random.default_rng(1).standard_normal((*outer, *problem.filter)).astype(dtype)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (name, dtype)
        for name in KRSC
        for dtype in (np.float32, np.float16, ml_dtypes.bfloat16)
        if dtype is np.float32 or not name.endswith("_tf32")
    ],
)
@pytest.mark.parametrize("problem", CONVOLUTIONS.values(), ids=CONVOLUTIONS)
def test_filters_come_back(name: str, problem: Convolution, dtype: Any) -> None:
    array = logical(problem, dtype)
    packed = packings.pack(name, array, problem)
    assert packed.shape[0] == problem.k
    assert packed.shape[1] * packed.itemsize % 16 == 0
    expected = packings.round_to_tf32(array) if name.endswith("_tf32") else array
    np.testing.assert_array_equal(packings.unpack(name, packed, problem), expected)


@pytest.mark.parametrize(("c", "k"), [(20, 20), (20, 40), (40, 20), (40, 40), (120, 80)])
def test_filters_of_groups_come_back(c: int, k: int) -> None:
    problem = convolution(c, k, groups=5)
    array = logical(problem, np.float16)
    packed = packings.pack("group_mma", array, problem)
    assert packed.shape == packings.packed_shape("group_mma", problem, 2)
    np.testing.assert_array_equal(packings.unpack("group_mma", packed, problem), array)


def test_a_lane_has_two_channels_of_a_filter_and_none_of_the_other_group() -> None:
    problem = convolution(8, 8, groups=2)  # of 3 x 2 taps, each of one chunk
    array = logical(problem, np.float16)
    words = packings.pack("group_mma", array, problem)[0].reshape(2, 8, 4, 4, 2)
    np.testing.assert_array_equal(words[1, 2, 1, 1], array[2, 2:4, 2, 1])  # the sixth word
    np.testing.assert_array_equal(words[0, 5, 2, 3], array[5, 0:2, 1, 1])  # the fourth
    assert not words[:, 2, 2:].any()
    assert not words[:, 5, :2].any()
    assert not words[1, :, :, 2:].any()


@pytest.mark.parametrize("name", NK)
def test_matrices_come_back(name: str) -> None:
    array = np.random.default_rng(2).standard_normal((147, 10)).astype(np.float32)
    packed = packings.pack(name, array, MATMUL)
    assert packed.shape == (10, 148)
    assert not packed[:, 147:].any()
    expected = packings.round_to_tf32(array) if name.endswith("_tf32") else array
    np.testing.assert_array_equal(packings.unpack(name, packed, MATMUL), expected)


def test_a_filter_lies_tap_by_tap_with_zeros_between() -> None:
    problem = convolution(c=3, k=2, groups=1)
    packed = packings.pack("krsc_pad4", logical(problem, np.float32), problem).reshape(2, 3, 2, 4)
    array = logical(problem, np.float32)
    np.testing.assert_array_equal(packed[1, 2, 1, :3], array[1, :, 2, 1])
    assert not packed[..., 3].any()


def test_rounding_to_tf32_is_to_nearest_ties_to_even() -> None:
    ulp = 2.0**-10
    values = np.array([1 + ulp / 2, 1 + ulp * 0.51, -(1 + ulp * 1.5), np.inf, np.nan], np.float32)
    expected = np.array([1.0, 1 + ulp, -(1 + 2 * ulp), np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(packings.round_to_tf32(values), expected)


def test_the_nearest_number_of_tf32_is_what_the_unit_leaves_of_a_packed_one() -> None:
    numbers = np.random.default_rng(0).standard_normal(10000).astype(np.float32)
    numbers = np.concatenate([numbers, np.float32([0, -0.0, np.inf, -np.inf, 1e-40])])
    packed = packings.to_nearest(numbers)
    read = (packed.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    finite = np.isfinite(numbers)
    step = np.spacing(np.abs(read[finite])) * 2.0**13
    assert (np.abs(read[finite] - numbers[finite]) <= step / 2).all()
    np.testing.assert_array_equal(read[~finite], numbers[~finite])
    np.testing.assert_array_equal(
        packings.from_nearest(packed).view(np.uint32), numbers.view(np.uint32)
    )
    assert np.isnan(packings.to_nearest(np.full(1, -1, np.int32).view(np.float32))).all()
