"""Several free dimensions: right at every size where they join into one, refused in words elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.networks import small_models

from wpk.dims import evaluate
from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.free_sizes import assignments
from wpk.lowering.model import lower_model

SIZES = ((1, 1), (1, 5), (4, 1), (2, 3), (3, 2), (7, 16))

_INTS = "Constant<value_ints=[{}]>()"

RIGHT = {
    "element by element": "(float[B,S] x, float[B,S] z) => (float[B,S] y) { t = Mul(x, z) y = Relu(t) }",
    "rows": "(float[B,S,6] x, float[6] w) => (float[B,S,6] y) { y = Add(x, w) }",
    "products of rows": "(float[B,S,6] x, float[6,4] w) => (float[B,S,4] y) { y = MatMul(x, w) }",
    "rows normalised": "(float[B,S,6] x) => (float[B,S,6] y) { y = Softmax<axis=-1>(x) }",
    "sums of rows": "(float[B,S,6] x) => (float[B,S] y) { y = ReduceSum<keepdims=0>(x, a) }".replace(
        "{ y", f"{{ a = {_INTS.format(-1)} y"
    ),
    "rows by index": "(float[5,6] x, int64[B,S] i) => (float[B,S,6] y) { y = Gather(x, i) }",
    "merged and split": "(float[B,S,6] x) => (float[M,3] y) "
    f"{{ s = {_INTS.format('-1,3')} t = Reshape(x, s) y = Relu(t) }}",
    "part of each row": "(float[B,S,6] x) => (float[B,S,2] y) "
    f"{{ s = {_INTS.format(1)} e = {_INTS.format(3)} a = {_INTS.format(2)} t = Slice(x, s, e, a) "
    "y = Relu(t) }",
    "rows side by side": "(float[B,S,6] x, float[B,S,2] z) => (float[B,S,8] y) "
    "{ y = Concat<axis=2>(x, z) }",
    "all of three": "(float[B,S,T,4] x) => (float[B,S,T,4] y) { t = Relu(x) y = Neg(t) }",
    "a row for each place": "(float[B,S,6] x, float[S,6] z) => (float[B,S,6] y) { y = Add(x, z) }",
    "a row for each sequence": "(float[B,S,6] x, float[B,1,6] z) => (float[B,S,6] y) { y = Mul(x, z) }",
    "a number for each place": "(float[B,S] x, float[1,S] z) => (float[B,S] y) { y = Add(x, z) }",
    "rows for each place of two": "(float[2,S,6] x, float[S,6] z) => (float[2,S,6] y) { y = Add(x, z) }",
    "an inner free axis": "(float[B,4,S] x) => (float[B,4,S] y) { y = Relu(x) }",
    "a free axis behind a fixed one": "(float[4,S] x) => (float[4,S] y) { y = Relu(x) }",
    "the first place of each": "(float[B,S,6] x) => (float[B,6] y) "
    "{ i = Constant<value=int64 {0}>() y = Gather<axis=1>(x, i) }",
    "a batch beside rows of its own": "(float[B,6] x, float[S,6] z) => (float[B,6] y, float[S,6] v) "
    "{ y = Relu(x) v = Neg(z) }",
}

REFUSED = {
    "turned": (
        "(float[B,S,6] x) => (float[S,B,6] y) { t = Transpose<perm=[1,0,2]>(x) y = Relu(t) }",
        "moves the free dimension 'B' away from the front",
    ),
    "a softmax along it": (
        "(float[B,S] x) => (float[B,S] y) { y = Softmax<axis=-1>(x) }",
        "Softmax along the free dimension 'S'",
    ),
    "a mean over it": (
        "(float[B,S,6] x) => (float[B,6] y) { y = ReduceMean<axes=[1], keepdims=0>(x) }",
        "a reduction over the free dimension 'S'",
    ),
    "another place of it": (
        (
            "(float[B,S,6] x) => (float[B,6] y) "
            "{ i = Constant<value=int64 {1}>() y = Gather<axis=1>(x, i) }"
        ),
        "Gather along the free dimension 'S'",
    ),
    "a part of it": (
        (
            "(float[B,S,6] x) => (float[B,M,6] y) "
            f"{{ s = {_INTS.format(0)} e = {_INTS.format(3)} a = {_INTS.format(1)} t = Slice(x, s, e, a) "
            "y = Relu(t) }"
        ),
        "a part of the free dimension 'S' is taken",
    ),
    "a row in front": (
        "(float[B,S,6] x, float[B,1,6] z) => (float[B,M,6] y) { y = Concat<axis=1>(z, x) }",
        "Concat along the free dimension",
    ),
    "products of sequences": (
        "(float[B,S,6] x, float[B,6,S] z) => (float[B,S,S] y) { y = MatMul(x, z) }",
        "a free dimension decides more than the first extent: 'S'",
    ),
    "one for the other": (
        "(float[B,6] x, float[S,6] z) => (float[B,6] y) { y = Add(x, z) }",
        "shapes (B, 6) and (S, 6) do not fit each other",
    ),
}


def _drawn(path: Path, sizes: dict[str, int]) -> dict[str, Any]:
    rng, inputs = np.random.default_rng(0), {}
    for info in onnx.load(path).graph.input:
        kind = info.type.tensor_type
        shape = [dim.dim_value or sizes[dim.dim_param] for dim in kind.shape.dim]
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        floats = dtype.kind == "f"
        drawn = rng.standard_normal(shape) if floats else rng.integers(0, 5, shape)
        inputs[info.name] = drawn.astype(dtype)
    return inputs


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT.keys())
def test_right_at_every_size(tmp_path: Path, execute: Callable[..., Any], body: str) -> None:
    path = small_models.write(f"agraph {body}", tmp_path)
    program = lower_model(path, {}, Precision.FP32).program
    for first, second in SIZES:
        inputs = _drawn(path, {"B": first, "S": second, "T": 2})
        got = execute(program, inputs)
        for name, right in small_models.expected(path, inputs).items():
            assert got[name].shape == right.shape
            # Six products of fp32 numbers at most: 6 * 2^-24 of their magnitudes, of which few exceed 20.
            np.testing.assert_allclose(got[name], right, rtol=0, atol=6 * 2.0**-24 * 20)


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_in_words(tmp_path: Path, body: str, why: str) -> None:
    path = small_models.write(f"agraph {body}", tmp_path)
    with pytest.raises(UnsupportedError) as refused:
        lower_model(path, {}, Precision.FP32)
    assert why in refused.value.what


def test_kernels_get_the_product_of_both(tmp_path: Path) -> None:
    path = small_models.write(f"agraph {RIGHT['products of rows']}", tmp_path)
    (operator,) = lower_model(path, {}, Precision.FP32).program.operators
    leading = operator.problem.leading
    assert leading.names == ("B", "S")
    assert evaluate(leading.expression, {"B": 3, "S": 5}) == 15


def test_sizes_are_checked_in_turn_within_their_limits() -> None:
    found = assignments((1, 3, 17), ("B", "S"), {"S": (2, 9)})
    assert found == ({"B": 1, "S": 3}, {"B": 3, "S": 9}, {"B": 17, "S": 2})
