"""What meets the free axis is right at every size, or refused in words."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.networks import small_models

from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.extent import Extent
from wpk.lowering.free_axis import (
    STAND_INS,
    broadcast_shapes,
    extent_of,
    is_joinable,
    joined,
)
from wpk.lowering.model import lower_model
from wpk.lowering.refusal import RefusedError
from wpk.model_checks import MAX_ELEMENTS

SIZES = (1, 2, 3, *sorted({int(n) for n in np.random.default_rng(14).integers(4, 258, 4)}), 257)
"""Every size up to a few, and drawn ones."""

BOUNDS = (
    "s = Constant<value_ints=[{}]>() e = Constant<value_ints=[{}]>() a = Constant<value_ints=[0]>()"
)
LAST = 2**63 - 1

RIGHT = {
    "a slice of all rows": f"(float[N,6] x) => (float[N,6] y) {{ {BOUNDS.format(0, 2**31 - 1)} "
    "t = Slice(x, s, e, a) y = Relu(t) }",
    "a slice from far in front": "(float[N,6] x) => (float[N,6] y) { "
    f"{BOUNDS.format(-LAST, LAST)} t = Slice(x, s, e, a) y = Relu(t) }}",
    "a product of batches": "(float[N,4,6] x, float[N,6,4] z) => (float[N,4,4] y) "
    "{ y = MatMul(x, z) }",
    "a product of batches of rows": "(float[N,1,6] x, float[N,6,4] z) => (float[N,1,4] y) "
    "{ y = MatMul(x, z) }",
    "one matrix for all": "(float[N,4,6] x, float[6,4] z) => (float[N,4,4] y) { y = MatMul(x, z) }",
    "one matrix in front": "(float[4,6] x, float[N,6,5] z) => (float[N,4,5] y) "
    "{ y = MatMul(x, z) }",
    "a batch of one": "(float[1,4,6] x, float[N,6,5] z) => (float[N,4,5] y) { y = MatMul(x, z) }",
    "heads of one tensor": "(float[N,2,4,6] x, float[2,6,5] z) => (float[N,2,4,5] y) "
    "{ y = MatMul(x, z) }",
    "a Gram matrix": "(float[N,4,6] x) => (float[N,4,4] y) "
    "{ z = Transpose<perm=[0,2,1]>(x) y = MatMul(x, z) }",
    "a row for all": "(float[N,6] x, float[1,6] z) => (float[N,6] y) { y = Add(x, z) }",
    "an inner Expand": "(float[N,1,6] x) => (float[N,4,6] y) "
    "{ s = Constant<value_ints=[1,4,6]>() t = Expand(x, s) y = Relu(t) }",
    "half rows": "(float[N,6] x) => (float[M,3] y) "
    "{ s = Constant<value_ints=[-1,3]>() t = Reshape(x, s) y = Relu(t) }",
    "one long row": "(float[N,6] x) => (float[M] y) "
    "{ s = Constant<value_ints=[-1]>() t = Reshape(x, s) y = Relu(t) }",
    "Flatten from the back": "(float[N,6,3] x) => (float[M,3] y) "
    "{ t = Flatten<axis=-1>(x) y = Relu(t) }",
    "Flatten of all axes": "(float[N,6,3] x) => (float[M,1] y) "
    "{ t = Flatten<axis=3>(x) y = Relu(t) }",
    "rows side by side": "(float[N,6] x, float[N,4] z) => (float[N,10] y) "
    "{ y = Concat<axis=1>(x, z) }",
    "rows by index": "(float[5,6] x, int64[N,3] i) => (float[N,3,6] y) { y = Gather<axis=0>(x, i) }",
    "columns by index": "(float[N,6] x, int64[4] i) => (float[N,4] y) { y = Gather<axis=1>(x, i) }",
    "inner sums": "(float[N,6] x) => (float[N] y) { y = ReduceMean<axes=[1], keepdims=0>(x) }",
    "columns apart": "(float[N,6] x) => (float[N,2] y, float[N,4] z) "
    "{ s = Constant<value_ints=[2,4]>() y, z = Split<axis=1>(x, s) }",
    "Flatten of the batch": "(float[N,6,3] x) => (float[1,M] y) "
    "{ t = Flatten<axis=0>(x) y = Relu(t) }",
    "Unsqueeze in front": "(float[N,6] x) => (float[1,N,6] y) "
    "{ s = Constant<value_ints=[0]>() t = Unsqueeze(x, s) y = Relu(t) }",
    "a scalar beside": "(float[N,6] x) => (float[N,6] y) "
    "{ c = Constant<value=float {2.0}>() y = Mul(x, c) }",
}

REFUSED = {
    "Slice to a row": (
        (
            f"(float[N,6] x) => (float[M,6] y) {{ {BOUNDS.format(0, 4)} t = Slice(x, s, e, a) "
            "y = Relu(t) }"
        ),
        "a part of the free dimension 'N' is taken",
    ),
    "Slice from the back": (
        (
            f"(float[N,6] x) => (float[M,6] y) {{ {BOUNDS.format(-16, LAST)} t = Slice(x, s, e, a) "
            "y = Relu(t) }"
        ),
        "a part of the free dimension 'N' is taken",
    ),
    "Slice by default axes": (
        f"(float[N,6] x) => (float[M,6] y) {{ {BOUNDS.format(0, 8)} y = Slice(x, s, e) }}",
        "a part of the free dimension 'N' is taken",
    ),
    "Slice in front of a window": (
        (
            f"(float[N,3,8,8] x) => (float[M,3,6,6] y) {{ {BOUNDS.format(0, 2)} t = Slice(x, s, e, a) "
            "y = MaxPool<kernel_shape=[3,3]>(t) }"
        ),
        "a part of the free dimension 'N' is taken",
    ),
    "a broadcast of the batch over itself": (
        "(float[N,6] x, float[N,1,6] z) => (float[N,N,6] y) { y = Add(x, z) }",
        "a free dimension decides more than the first extent",
    ),
    "x and its transpose": (
        "(float[N,1] x) => (float[N,N] y) { t = Transpose(x) y = Add(x, t) }",
        "a free dimension decides more than the first extent: 'N'",
    ),
    "rows of a number": (
        "(float[N,6] x, float[4,6] z) => (float[4,6] y) { y = Add(x, z) }",
        "shapes (N, 6) and (4, 6) do not fit each other",
    ),
    "Expand to a number of rows": (
        "(float[N,6] x) => (float[4,6] y) { s = Constant<value_ints=[4,6]>() y = Expand(x, s) }",
        "shapes (N, 6) and (4, 6) do not fit each other",
    ),
    "Reshape to a number of rows": (
        "(float[N,6] x) => (float[1,6] y) { s = Constant<value_ints=[1,6]>() y = Reshape(x, s) }",
        "Reshape from (N, 6) to (1, 6) changes the number of elements",
    ),
    "Reshape to rows that need not fit": (
        "(float[N,6] x) => (float[M,12] y) { s = Constant<value_ints=[-1,12]>() y = Reshape(x, s) }",
        "Reshape from (N, 6) to (-1, 12)",
    ),
    "Transpose of the batch": (
        "(float[N,6,3] x) => (float[6,N,3] y) { t = Transpose<perm=[1,0,2]>(x) y = Relu(t) }",
        "moves the free dimension 'N' away from the front",
    ),
    "Squeeze of the batch": (
        "(float[N,6] x) => (float[6] y) { s = Constant<value_ints=[0]>() y = Squeeze(x, s) }",
        "which are not all of size 1",
    ),
    "Squeeze of whatever is 1": (
        "(float[N,6,1] x) => (float[N,6] y) { y = Squeeze(x) }",
        "of which a free one may be one",
    ),
    "Pad": (
        "(float[N,6] x) => (float[M,6] y) { p = Constant<value_ints=[1,0,0,0]>() y = Pad(x, p) }",
        "Pad of the leading axis",
    ),
    "Concat along it": (
        "(float[N,6] x, float[3,6] z) => (float[M,6] y) { y = Concat<axis=0>(x, z) }",
        "Concat along the free dimension",
    ),
    "Concat of a row": (
        "(float[N,6] x, float[1,6] z) => (float[N,12] y) { y = Concat<axis=1>(x, z) }",
        "Concat of shapes (N, 6), (1, 6)",
    ),
    "Gather of one": (
        "(float[N,6] x) => (float[6] y) { i = Constant<value=int64 {0}>() y = Gather(x, i) }",
        "Gather along the free dimension 'N'",
    ),
    "ReduceMean": (
        "(float[N,6] x) => (float[1,6] y) { y = ReduceMean<axes=[0]>(x) }",
        "a reduction over the free dimension 'N'",
    ),
    "Softmax": (
        "(float[N,6] x) => (float[N,6] y) { y = Softmax<axis=0>(x) }",
        "Softmax along the free dimension 'N'",
    ),
    "Where with rows of a number": (
        "(float[N,6] x, bool[4,6] c, float[1,6] z) => (float[4,6] y) { y = Where(c, x, z) }",
        "do not fit each other",
    ),
    "Split along it": (
        (
            "(float[N,6] x) => (float[2,6] y, float[M,6] z) "
            "{ s = Constant<value_ints=[2,2]>() y, z = Split<axis=0>(x, s) }"
        ),
        "Split of N into [2, 2]",
    ),
    "Resize to a batch": (
        (
            "(float[N,3,4,4] x) => (float[1,3,8,8] y) "
            '{ s = Constant<value_ints=[1,3,8,8]>() y = Resize<mode="nearest">(x, , , s) }'
        ),
        "Resize of batch or channels",
    ),
    "products with rows of a number": (
        "(float[N,6] x, float[3,6,5] z) => (float[3,N,5] y) { y = MatMul(x, z) }",
        "a free dimension decides more than the first extent: 'N'",
    ),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT.keys())
def test_right_at_every_size(tmp_path: Path, execute: Callable[..., Any], body: str) -> None:
    path = small_models.write(f"agraph {body}", tmp_path)
    program = lower_model(path, {}, Precision.FP32).program
    for size in SIZES:
        inputs = small_models.draw(path, seed=size, size=size)
        got = execute(program, inputs)
        for name, right in small_models.expected(path, inputs).items():
            # Six products of fp32 numbers at most: 6 * 2^-24 of their magnitudes, of which few exceed 20.
            np.testing.assert_allclose(got[name], right, rtol=0, atol=6 * 2.0**-24 * 20)


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_in_words(tmp_path: Path, body: str, why: str) -> None:
    path = small_models.write(f"agraph {body}", tmp_path)
    with pytest.raises(UnsupportedError) as refused:
        lower_model(path, {}, Precision.FP32)
    assert why in refused.value.what


STAND_IN, OTHER = STAND_INS[:2]


@pytest.mark.parametrize("stand_in", STAND_INS)
def test_a_stand_in_is_a_prime_that_no_tensor_has(stand_in: int) -> None:
    assert stand_in > MAX_ELEMENTS
    assert all(stand_in % divisor for divisor in range(2, int(stand_in**0.5) + 1))


def test_a_size_says_by_its_factors_what_decides_it() -> None:
    assert extent_of(12) == Extent(12)
    both = extent_of(12 * OTHER * STAND_IN)
    assert (both.names, both.factor) == (("#0", "#1"), 12)
    assert extent_of(STAND_IN * STAND_IN).names == ("#0", "#0")


def test_a_free_size_fits_only_itself_and_one() -> None:
    assert broadcast_shapes((STAND_IN, 4), (4,), (1, 1)) == (STAND_IN, 4)
    with pytest.raises(RefusedError, match="do not fit"):
        broadcast_shapes((STAND_IN, 4), (3, 4))


@pytest.mark.parametrize(
    ("shape", "strides", "flat"),
    [
        ((STAND_IN, 4), (4, 1), ((STAND_IN, 4), (4, 1))),
        ((4, STAND_IN), (STAND_IN, 1), ((4 * STAND_IN,), (1,))),
        ((STAND_IN, OTHER, 8), (8 * OTHER, 8, 1), ((STAND_IN * OTHER, 8), (8, 1))),
        ((STAND_IN, 1, 1, OTHER), (OTHER, 7, 5, 1), ((STAND_IN * OTHER,), (1,))),
        ((1, STAND_IN, 8), (0, 8, 1), ((STAND_IN, 8), (8, 1))),
    ],
)
def test_free_axes_that_lie_in_each_other_are_one(
    shape: tuple[int, ...], strides: tuple[int, ...], flat: object
) -> None:
    assert is_joinable(shape, strides)
    assert joined("x", shape, strides) == flat


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((STAND_IN, OTHER, 8), (0, 8, 1)),
        ((STAND_IN, 4, OTHER, 8), (4 * 8 * OTHER, 8, 32, 1)),
        ((2, OTHER, 8), (0, 8, 1)),
    ],
)
def test_free_axes_apart_are_refused(shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    assert not is_joinable(shape, strides)
    with pytest.raises(RefusedError, match="apart in memory"):
        joined("x", shape, strides)
