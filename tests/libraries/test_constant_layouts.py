"""Constant operands lie in memory where their strides say."""

import numpy as np
import pytest

from wpk.libraries import lay_out
from wpk.libraries.constant_layouts import LAYOUTS, layout_strides


@pytest.mark.parametrize("name", LAYOUTS)
def test_strides_find_every_element(name: str) -> None:
    shape = (5, 3, 2, 4)[: len(name)]
    array = np.arange(np.prod(shape)).reshape(shape)
    memory = lay_out(name, array).ravel()
    strides = [8 * stride for stride in layout_strides(name, shape)]
    np.testing.assert_array_equal(np.lib.stride_tricks.as_strided(memory, shape, strides), array)


def test_names_say_the_order_of_memory() -> None:
    assert layout_strides("krsc", (5, 3, 2, 4)) == (24, 1, 12, 3)
    assert layout_strides("nk", (5, 3)) == (1, 5)
