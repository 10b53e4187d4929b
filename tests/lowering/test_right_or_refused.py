"""Forms of operators that are easily read wrong: right, or refused with a reason."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.networks import small_models

from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.expression import Operand, Scalar, apply
from wpk.lowering.model import lower_model
from wpk.problems import Elementwise

FP32 = 2.0**-24

RIGHT = {
    "Clip with a maximum only": (
        "(float[3,4] x) => (float[3,4] y) { h = Constant<value=float {0.5}>() y = Clip(x, , h) }"
    ),
    "Clip with a minimum only": (
        "(float[3,4] x) => (float[3,4] y) { l = Constant<value=float {0.5}>() y = Clip(x, l) }"
    ),
    "Clip without limits": "(float[3,4] x) => (float[3,4] y) { y = Clip(x) }",
    "Clip with a maximum behind a convolution": (
        "(float[1,2,4,4] x, float[3,2,1,1] w) => (float[1,3,4,4] y) "
        "{ h = Constant<value=float {0.5}>() c = Conv(x, w) y = Clip(c, , h) }"
    ),
    "Clip of int8 with a maximum only": (
        "(int8[3,4] x) => (int8[3,4] y) { h = Constant<value=int8 {2}>() y = Clip(x, , h) }"
    ),
    **{
        f"Flatten with axis {axis}": (
            f"(float[4,2,3] x) => (float[a,b] y) {{ y = Flatten<axis={axis}>(x) }}"
        )
        for axis in (-3, -2, -1, 0, 1, 2, 3)
    },
    "a transpose of six axes behind element-wise work": (
        "(float[2,3,2,3,2,3] x) => (float[2,3,3,3,2,2] y) "
        "{ r = Sigmoid(x) y = Transpose<perm=[0,3,1,5,2,4]>(r) }"
    ),
    "a transpose of six axes in front of it": (
        "(float[2,3,2,3,2,3] x) => (float[2,3,3,3,2,2] y) "
        "{ r = Transpose<perm=[0,3,1,5,2,4]>(x) y = Sigmoid(r) }"
    ),
    "a product of the blocks of an image": (
        "(float[2,3,8,6] x, float[2,4] w) => (float[2,4,3,3,2,4] y, float[2,3,8,6] z) "
        "{ r = Relu(x) z = Sigmoid(r) p = Constant<value_ints=[2,3,4,2,3,2]>() i = Reshape(r, p) "
        "t = Transpose<perm=[0,2,4,1,3,5]>(i) y = MatMul(t, w) }"
    ),
    "a product of blocks with others whose batch is parted elsewhere": (
        "(float[2,4,3,2,5] x, float[3,2,4,5,2] w) => (float[2,3,4,2,2] y) "
        "{ r = Relu(x) s = Relu(w) a = Transpose<perm=[0,2,1,3,4]>(r) "
        "b = Transpose<perm=[1,0,2,3,4]>(s) y = MatMul(a, b) }"
    ),
    "a product of two whose batches have no common parts": (
        "(float[2,4,3,2,2,5] x, float[3,2,4,2,5,2] w) => (float[2,3,4,2,2,2] y) "
        "{ r = Relu(x) s = Relu(w) a = Transpose<perm=[0,2,1,3,4,5]>(r) "
        "b = Transpose<perm=[1,0,2,3,4,5]>(s) y = MatMul(a, b) }"
    ),
    "rows of every second pixel in front of a product": (
        "(float[1,36,8] x, float[8,4] w) => (float[1,9,4] y) { r = Relu(x) "
        "p = Constant<value_ints=[1,6,6,8]>() i = Reshape(r, p) s = Constant<value_ints=[0,0]>() "
        "e = Constant<value_ints=[6,6]>() a = Constant<value_ints=[1,2]>() "
        "t = Constant<value_ints=[2,2]>() k = Slice(i, s, e, a, t) "
        "f = Constant<value_ints=[1,9,8]>() q = Reshape(k, f) y = MatMul(q, w) }"
    ),
    "Flatten in front of a Gemm": (
        "(float[4,2,3] x, float[3,5] w) => (float[8,5] y) "
        "{ f = Flatten<axis=-1>(x) y = Gemm(f, w) }"
    ),
    "Flatten in front of a softmax": (
        "(float[4,2,3] x) => (float[4,6] y) { r = Constant<value_ints=[4,6]>() "
        "f = Flatten<axis=-1>(x) s = Softmax(f) y = Reshape(s, r) }"
    ),
    "Floats where integers are less than a range of small ones": (
        "(int64[2] a, float[2,8] x) => (float[2,8] y) { s = Constant<value_ints=[2,1]>() "
        "r = Constant<value_ints=[0,1,2,3,4,5,6,7]>() c = Reshape(a, s) l = Less(c, r) "
        "z = Constant<value=float {0}>() m = Constant<value=float {-3}>() "
        "w = Where(l, z, m) y = Mul(w, x) }"
    ),
    "Max of a tensor and itself flat": (
        "(float[4,6] x) => (float[4,6] y) { f = Flatten<axis=-1>(x) y = Max(x, f) }"
    ),
    "Unsqueeze of a scalar": (
        "(float[3] x) => (float[1] y) { s = ReduceMean<keepdims=0>(x) "
        "a = Constant<value_ints=[0]>() u = Unsqueeze(s, a) y = Relu(u) }"
    ),
    "Dropout at inference": (
        "(float[3,4] x) => (float[3,4] y) { r = Constant<value=float {0.5}>() "
        "t = Constant<value=bool {0}>() y = Dropout(x, r, t) }"
    ),
    "Mod with the sign of the divisor": (
        "(int8[4] x) => (int8[4] y) { c = Constant<value=int8 {-3}>() y = Mod(x, c) }"
    ),
    "integers shifted": (
        "(uint8[4] x) => (uint8[4] y) { c = Constant<value=uint8 {6}>() "
        'y = BitShift<direction="LEFT">(x, c) }'
    ),
    "a narrowed integer in a comparison": (
        "(int64[4] x) => (bool[4] y) { b = Constant<value=int64 {4294967296}>() s = Add(x, b) "
        "c = Cast<to=6>(s) t = Constant<value=int32 {1}>() y = Equal(c, t) }"
    ),
    "integers that fp32 does not hold": (
        "(int64[4] x) => (int64[4] y) { b = Constant<value=int64 {1099511627777}>() "
        "s = Add(x, b) m = Mul(s, s) y = Max(m, b) }"
    ),
    "integers between floating point numbers": (
        "(float[4] x) => (float[4] y) { i = Cast<to=6>(x) b = Constant<value=int32 {3}>() "
        "s = Mul(i, b) f = Cast<to=1>(s) y = Sub(x, f) }"
    ),
    "8-bit sums that overflow": "(uint8[3,4] x) => (uint8[3,4] y) "
    "{ c = Constant<value=uint8 {254}>() s = Add(x, c) y = Mul(s, c) }",
    "signed 8-bit differences that overflow": "(int8[3,4] x) => (int8[3,4] y) "
    "{ c = Constant<value=int8 {127}>() s = Sub(c, x) d = Neg(s) y = Sub(d, c) }",
    "8-bit quotients inside an expression": "(uint8[3,4] x) => (uint8[3,4] y) "
    "{ c = Constant<value=uint8 {3}>() d = Div(x, c) y = Mul(d, c) }",
}

REFUSED = {
    "Dropout in training": (
        (
            "(float[3,4] x) => (float[3,4] y) { r = Constant<value=float {0.5}>() "
            "t = Constant<value=bool {1}>() y = Dropout(x, r, t) }"
        ),
        "Dropout in training mode",
    ),
    "the mask of a Dropout": (
        "(float[3,4] x) => (float[3,4] y, bool[3,4] z) { y, z = Dropout(x) }",
        "Dropout with several outputs that are used",
    ),
    "Squeeze along run-time axes": (
        "(float[1,3,1] x, int64[1] a) => (float[m,n] y) { y = Squeeze(x, a) }",
        "Squeeze: input 2 ('a') must be constant",
    ),
    "Unsqueeze along run-time axes": (
        "(float[3,4] x, int64[1] a) => (float[m,n,o] y) { y = Unsqueeze(x, a) }",
        "Unsqueeze: input 2 ('a') must be constant",
    ),
    "Slice along run-time axes": (
        (
            "(float[3,4] x, int64[1] a) => (float[m,n] y) { s = Constant<value_ints=[0]>() "
            "e = Constant<value_ints=[2]>() y = Slice(x, s, e, a) }"
        ),
        "Slice: input 4 ('a') must be constant",
    ),
    "Slice with run-time steps": (
        (
            "(float[3,4] x, int64[1] t) => (float[m,n] y) { s = Constant<value_ints=[0]>() "
            "e = Constant<value_ints=[2]>() y = Slice(x, s, e, s, t) }"
        ),
        "Slice: input 5 ('t') must be constant",
    ),
    "ReduceSum along run-time axes": (
        "(float[3,4] x, int64[1] a) => (float[m,n] y) { y = ReduceSum(x, a) }",
        "the axes of ReduceSum must be constant",
    ),
    "sums of integers": (
        "(int64[4] x) => (int64[1] y) { y = ReduceSum(x) }",
        "ReduceSum of int64 tensors",
    ),
    "the largest of wide integers": (
        "(int32[4] x) => (int32[1] y) { y = ReduceMax(x) }",
        "ReduceMax of int32 tensors",
    ),
    "a window larger than its input": (
        (
            "(float[4,2,1,1] x) => (float[4,2,a,b] y) "
            "{ p = AveragePool<kernel_shape=[1,3], strides=[2,2], ceil_mode=1>(x) y = Relu(p) }"
        ),
        "a window over 3 elements of 1",
    ),
    "a sum behind a window larger than its input": (
        (
            "(float[4,2,1,1] x) => (float[a] y) "
            "{ p = AveragePool<kernel_shape=[1,3], strides=[2,2], ceil_mode=1>(x) "
            "y = ReduceL1<axes=[1,2,3], keepdims=0>(p) }"
        ),
        "a window over 3 elements of 1",
    ),
    "a scale that ONNX and ONNX Runtime take differently": (
        (
            "(float[1,2,10,10] x) => (float[1,2,a,b] y) { f = Constant<value_floats=[1.0,1.0,0.7,0.7]>() "
            'y = Resize<mode="nearest">(x, , f) }'
        ),
        "its result would have shape (1, 2, 7, 7), where ONNX has (1, 2, 6, 6)",
    ),
    "corners of a fraction of a sample": (
        (
            "(float[1,2,7,7] x) => (float[1,2,a,b] y) { f = Constant<value_floats=[1.0,1.0,1.5,1.5]>() "
            'y = Resize<mode="linear", coordinate_transformation_mode="align_corners">(x, , f) }'
        ),
        "align_corners from 7 to 10.5 samples, no whole number",
    ),
    "dilated windows that are padded to keep the size": (
        (
            "(float[1,2,7,7] x) => (float[1,2,7,7] y) "
            '{ y = MaxPool<kernel_shape=[3,3], dilations=[2,2], auto_pad="SAME_UPPER">(x) }'
        ),
        "windows with dilation 2, padded SAME_UPPER",
    ),
    "a reflection that reaches too far": (
        (
            "(float[1,1,3,3] x) => (float[1,1,3,6] y) { p = Constant<value_ints=[0,0,0,2,0,0,0,2]>() "
            'q = Constant<value_ints=[0,0,0,3,0,0,0,0]>() t = Pad<mode="reflect">(x, p) '
            'y = Pad<mode="reflect">(x, q) }'
        ),
        "Pad of 3 elements by 3 in mode reflect",
    ),
}


@pytest.mark.parametrize("body", RIGHT.values(), ids=RIGHT.keys())
def test_right(tmp_path: Path, execute: Callable[..., Any], body: str) -> None:
    constants = {}
    for shape in [(3, 2, 1, 1), (3, 5)]:
        if f"float[{','.join(map(str, shape))}] w" in body:
            constants["w"] = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    path = small_models.write(f"agraph {body}", tmp_path, constants=constants)
    program = lower_model(path, {}, Precision.FP32).program
    inputs = small_models.draw(path, seed=3)
    with np.errstate(all="ignore"):  # infinities are what some of them are about
        got = execute(program, inputs)
    for name, right in small_models.expected(path, inputs).items():
        # At most six terms of a few units each, rounded to fp32.
        np.testing.assert_allclose(got[name], right, rtol=8 * FP32, atol=6 * FP32 * 4)


@pytest.mark.parametrize(("body", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_in_words(tmp_path: Path, body: str, why: str) -> None:
    path = small_models.write(f"agraph {body}", tmp_path)
    with pytest.raises(UnsupportedError) as refused:
        lower_model(path, {}, Precision.FP32)
    assert why in refused.value.what


def test_a_power_of_one_half_is_no_root_where_it_may_be_minus_infinity(tmp_path: Path) -> None:
    body = "(float[3] x) => (float[3] y) { e = Constant<value=float {0.5}>() y = Pow(x, e) }"
    path = small_models.write(f"agraph {body}", tmp_path)
    (operator,) = lower_model(path, {}, Precision.FP32).program.operators
    assert isinstance(operator.problem, Elementwise)
    assert operator.problem.expression == apply("Pow", Operand(0), Scalar(0.5))


def test_old_softmax_is_refused_where_no_pass_raised_it(tmp_path: Path) -> None:
    body = "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax<axis=1>(x) }"
    path = small_models.write(f"agraph {body}", tmp_path, opset=11)
    with pytest.raises(UnsupportedError, match="Softmax of opset 11, which flattens its input"):
        lower_model(path, {}, Precision.FP32, skip=("modern-forms",))


def test_the_table_names_onnx_nodes_and_their_operators(tmp_path: Path) -> None:
    body = """(float[1,2,4,4] x, float[3,2,1,1] w, float[2,111,111] m) => (float[1,3,4,4] y, float[2] v) {
      [first] a = Bernoulli(x)
      [second] c = Conv(a, w)
      [third] y = Relu(c)
      [fourth] s = Abs(m)
      [fifth] v = Det(s)
    }"""
    path = small_models.write(f"agraph {body}", tmp_path)
    with pytest.raises(UnsupportedError) as refused:
        lower_model(path, {}, Precision.FP32)
    rows = [line.split()[:2] for line in refused.value.what.splitlines()[1:]]
    assert rows == [["first", "Bernoulli"], ["fifth", "Det"]]
