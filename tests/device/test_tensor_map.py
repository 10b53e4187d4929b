"""What the driver is asked to encode: order, units and kinds of every argument."""

from __future__ import annotations

from typing import Any

import pytest

from wpk.device.tensor_map import encode, encoding
from wpk.errors import LaunchError
from wpk.execution import TensorMap
from wpk.launch import Im2col

driver = pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings (extra gpu)")

# Numbers of cuda.h.
UINT8, UINT16, UINT32, UINT64, TFLOAT32 = 0, 1, 2, 4, 11
SWIZZLE_NONE, SWIZZLE_32, SWIZZLE_64, SWIZZLE_128 = 0, 1, 2, 3
NO_INTERLEAVE, PROMOTE_256, ZERO_FILL = 0, 3, 0


def plain(value: Any) -> Any:
    return [int(each) for each in value] if isinstance(value, list) else int(value)


TABLE: list[tuple[TensorMap, list[Any]]] = [
    (
        TensorMap(0x1000, 2, (72, 100), (160,), (64, 32), 128),
        [UINT16, 2, 0x1000, [72, 100], [160], [64, 32], [1, 1]],
    ),
    (
        TensorMap(0x20, 4, (8,), (), (8,), 32),
        [UINT32, 1, 0x20, [8], [16], [8], [1]],
    ),
    (
        TensorMap(0x40, 1, (64, 56, 55, 3), (64, 3584, 197120), (64, 8, 4, 2), 64),
        [UINT8, 4, 0x40, [64, 56, 55, 3], [64, 3584, 197120], [64, 8, 4, 2], [1, 1, 1, 1]],
    ),
    (
        TensorMap(0x40, 8, (4, 9, 7, 2), (32, 288, 2016), (4, 96), 0, Im2col((-1, -2), (-3, 1), (2, 3))),
        [UINT64, 4, 0x40, [4, 9, 7, 2], [32, 288, 2016], [-1, -2], [-3, 1], 4, 96, [1, 2, 3, 1]],
    ),
    (
        TensorMap(0x40, 4, (9, 7), (48,), (32, 8), 128, to_tf32=True),
        [TFLOAT32, 2, 0x40, [9, 7], [48], [32, 8], [1, 1]],
    ),
]  # fmt: skip

SWIZZLES = {0: SWIZZLE_NONE, 32: SWIZZLE_32, 64: SWIZZLE_64, 128: SWIZZLE_128}


@pytest.mark.parametrize(("tensor", "arguments"), TABLE)
def test_says_innermost_first_in_elements_and_bytes(
    tensor: TensorMap, arguments: list[Any]
) -> None:
    seen = [plain(value) for value in encoding(driver, tensor)]
    swizzle = SWIZZLES[tensor.swizzle]
    assert seen == [*arguments, NO_INTERLEAVE, swizzle, PROMOTE_256, ZERO_FILL]


def test_refuses_what_has_faults_and_names_all_of_them() -> None:
    tensor = TensorMap(0x1004, 2, (72, 100), (150,), (64, 300), 128)
    with pytest.raises(LaunchError, match=r"address: 0x1004 .*; strides: 150 .*; box: 300"):
        encode(tensor)
