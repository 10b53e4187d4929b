"""Where a step's output lies, compared with places counted by hand."""

from itertools import product

import numpy as np
import pytest

from wpk.checks.region import OutputRegion
from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.lowering.program import Value
from wpk.problems import Access, Tensor

SIZE, OFFSET = 147, 8


def region(
    dtype: DType, shape: tuple[int, ...], strides: tuple[int, ...], padding: int = 0
) -> OutputRegion:
    """A region of an image in which no byte is zero."""
    value = Value(
        name="y",
        dtype=dtype,
        leading=Extent(shape[0] if shape else 1),
        shape=shape,
        strides=strides,
        padding=padding,
        buffer="b",
        offset=OFFSET,
        logical_shape=shape,
    )
    image = (np.arange(SIZE) % 251 + 1).astype(np.uint8)
    return OutputRegion(image, value, Access(Tensor(dtype, strides, padding), shape), {})


CASES = [
    # shape, strides, padding, places of the elements, places of the padding
    (
        (2, 3, 4),
        (12, 1, 3),
        0,
        [12 * n + c + 3 * w for n, c, w in product(*map(range, (2, 3, 4)))],
        [],
    ),
    (
        (2, 3, 2),
        (10, 1, 5),
        2,
        [10 * n + c + 5 * w for n, c, w in product(*map(range, (2, 3, 2)))],
        [10 * n + 3 + p + 5 * w for n, p, w in product(*map(range, (2, 2, 2)))],
    ),
    ((3,), (7,), 0, [0, 7, 14], []),
    ((), (), 3, [0], [1, 2, 3]),
    ((2,), (8,), 3, [0, 8], [1, 2, 3, 9, 10, 11]),
]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.FP16, DType.FP32])
@pytest.mark.parametrize(("shape", "strides", "padding", "elements", "zeros"), CASES)
def test_elements_and_padding_lie_where_strides_put_them(
    dtype: DType,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    padding: int,
    elements: list[int],
    zeros: list[int],
) -> None:
    given = region(dtype, shape, strides, padding)
    words = given.image[OFFSET:][: (SIZE - OFFSET) // dtype.bytes * dtype.bytes].view(dtype.numpy)
    found = given.elements()
    assert found.shape == shape
    np.testing.assert_array_equal(found.ravel(), words[elements])
    rest = given.padding()
    if not zeros:
        assert rest is None
        assert given.dirty_padding() == 0
    else:
        assert rest is not None
        np.testing.assert_array_equal(rest.ravel(), words[zeros])
        assert given.dirty_padding() == len(zeros)
        words[zeros[1:]] = 0
        assert given.dirty_padding() == 1

    marked = np.zeros(SIZE, bool)
    for place in elements + zeros:
        marked[OFFSET + place * dtype.bytes : OFFSET + (place + 1) * dtype.bytes] = True
    np.testing.assert_array_equal(given.mask(), marked)
    before = given.image.copy()
    given.poison()
    np.testing.assert_array_equal(given.image[~marked], before[~marked])
    assert (given.image[marked] == 0xFF).all()
    if dtype.is_float:
        assert np.isnan(given.elements()).all()


def test_a_negative_zero_in_the_padding_is_not_zero() -> None:
    given = region(DType.FP32, (2,), (1,), 2)
    padding = given.padding()
    assert padding is not None
    padding[...] = 0.0
    assert given.dirty_padding() == 0
    padding[1] = -0.0
    assert given.dirty_padding() == 1
