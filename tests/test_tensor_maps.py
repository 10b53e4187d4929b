"""What tensor maps can be: the limits of the driver's two ways to encode one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from wpk.execution import TensorMap
from wpk.launch import Im2col
from wpk.tensor_maps import faults, reach

MATRIX = TensorMap(0x1000, 2, (72, 100), (160,), (64, 256), 128)
IMAGES = TensorMap(
    0x1000, 4, (16, 9, 7, 2), (64, 576, 4032), (16, 1024), 64, Im2col((-1, -1), (-1, -1), (2, 8))
)
POSSIBLE = [
    MATRIX,
    IMAGES,
    TensorMap(0, 1, (2**32,), (), (256,), 0),
    TensorMap(16, 8, (2,) * 5, (16, 32, 64, 2**40 - 16), (2, 1, 1, 1, 256), 32),
    TensorMap(0, 2, (8, 5, 3), (16, 80), (8, 1), 0, Im2col((-(2**15),), (2**15 - 1,), (1,))),
    TensorMap(
        0,
        2,
        (8, 40, 3, 3, 3),
        (16, 640, 1920, 5760),
        (8, 1),
        0,
        Im2col((-16,) * 3, (15,) * 3, (1,) * 3),
    ),
]

FAULTY: list[tuple[TensorMap, dict[str, Any], str, str]] = [
    (MATRIX, {"address": 0x1008}, "address", "0x1008 is no multiple of 16"),
    (MATRIX, {"element_bytes": 3}, "element_bytes", "3, possible"),
    (MATRIX, {"to_tf32": True}, "to_tf32", "elements of 2 bytes"),
    (MATRIX, {"shape": ()}, "shape", "0 dimensions"),
    (MATRIX, {"shape": (8,) * 6}, "shape", "6 dimensions"),
    (MATRIX, {"shape": (72, 0)}, "shape", "0 is not within"),
    (MATRIX, {"shape": (72, 2**32 + 1)}, "shape", "4294967297 is not within"),
    (MATRIX, {"strides": ()}, "strides", "0, the dimensions but the innermost are 1"),
    (MATRIX, {"strides": (144 + 2,)}, "strides", "146 bytes"),
    (MATRIX, {"strides": (0,)}, "strides", "0 bytes"),
    (MATRIX, {"strides": (2**40,)}, "strides", "1099511627776 bytes"),
    (MATRIX, {"box": (64,)}, "box", "1 extents, 2"),
    (MATRIX, {"box": (64, 257)}, "box", "257 is not within 1 to 256"),
    (MATRIX, {"box": (64, 0)}, "box", "0 is not within"),
    (MATRIX, {"box": (60, 8)}, "box", "a row of 120 bytes"),
    (MATRIX, {"swizzle": 16}, "swizzle", "16, possible"),
    (MATRIX, {"swizzle": 64}, "swizzle", "64 bytes, a row of the box has 128"),
    (IMAGES, {"shape": (16, 9), "strides": (64,)}, "shape", "2 dimensions, 3 to 5"),
    (IMAGES, {"box": (16, 1025)}, "box", "1025 is not within 1 to 1024"),
    (IMAGES, {"box": (16, 4, 4, 1)}, "box", "4 extents, 2"),
    (IMAGES, {"im2col": Im2col((-1,), (-1, -1), (1, 1))}, "im2col.lower", "1 numbers for 2"),
    (IMAGES, {"im2col": Im2col((-129, 0), (0, 0), (1, 1))}, "im2col.lower", "-129"),
    (IMAGES, {"im2col": Im2col((0, 0), (0, 128), (1, 1))}, "im2col.upper", "128"),
    (IMAGES, {"im2col": Im2col((0, 0), (0, 0), (1, 9))}, "im2col.steps", "9 is not within 1 to 8"),
    (IMAGES, {"im2col": Im2col((0, 0), (-9, 0), (1, 1))}, "im2col.upper", "no pixel"),
]


@pytest.mark.parametrize("tensor", POSSIBLE)
def test_finds_no_fault_with_what_can_be_made(tensor: TensorMap) -> None:
    assert list(faults(tensor)) == []


@pytest.mark.parametrize(("tensor", "change", "field", "what"), FAULTY)
def test_names_the_field_that_is_wrong(
    tensor: TensorMap, change: dict[str, Any], field: str, what: str
) -> None:
    ((seen, words),) = faults(replace(tensor, **change))
    assert seen == field
    assert what in words


def test_reach_is_the_end_of_the_last_element() -> None:
    assert reach(MATRIX) == 99 * 160 + 72 * 2
    assert reach(IMAGES) == 2 * 7 * 9 * 16 * 4
    assert reach(TensorMap(0, 4, (8,), (), (8,), 0)) == 32
