"""Lowered attention and products of several heads, executed in NumPy, compute what ONNX Runtime computes on the model."""

from pathlib import Path

import pytest
from support.networks.lowered_text import Execute, compare, kinds, lowered

from wpk.problems import Attention

ATTENTION = """
agraph (float[N,7,32] x, float[N,1,1,7] mask, float[32,32] wq, float[32,32] wk, float[32,32] wv, float[32,32] wo, float[32] wg, float[32] wb)
  => (float[N,7,32] y) {
  shape = Constant<value_ints=[0,7,4,8]>()
  flat = Constant<value_ints=[0,7,32]>()
  scale = Constant<value=float {0.35355339}>()
  q0 = MatMul(x, wq)  k0 = MatMul(x, wk)  v0 = MatMul(x, wv)
  q1 = Reshape(q0, shape)  k1 = Reshape(k0, shape)  v1 = Reshape(v0, shape)
  q = Transpose<perm=[0,2,1,3]>(q1)  k = Transpose<perm=[0,2,3,1]>(k1)  v = Transpose<perm=[0,2,1,3]>(v1)
  s0 = MatMul(q, k)  s1 = Mul(s0, scale)  s2 = Add(s1, mask)  s = Softmax(s2)
  o0 = MatMul(s, v)  o1 = Transpose<perm=[0,2,1,3]>(o0)  o2 = Reshape(o1, flat)
  o = MatMul(o2, wo)  z = Add(o, x)  y = LayerNormalization(z, wg, wb)
}"""


@pytest.mark.parametrize("batch", [1, 3])
def test_attention_with_a_mask_needs_no_transposes(
    tmp_path: Path, execute: Execute, batch: int
) -> None:
    model, source = lowered(tmp_path, ATTENTION.replace(")  ", ")\n  "))
    assert kinds(model).count("Elementwise") == 0
    assert kinds(model).count("Normalisation") == 1
    assert kinds(model).count("Matmul") == 2  # query, key and value are one product
    assert kinds(model).count("Attention") == 1
    compare(execute, model, source, batch)


WINDOWS = """
agraph (float[1,6,5,8] x, float[8,8] wq, float[8,8] wk, float[8,8] wv) => (float[1,6,5,8] y) {
  shape = Constant<value_ints=[1,6,5,2,4]>()
  flat = Constant<value_ints=[1,6,5,8]>()
  q0 = MatMul(x, wq)  k0 = MatMul(x, wk)  v0 = MatMul(x, wv)
  q1 = Reshape(q0, shape)  k1 = Reshape(k0, shape)  v1 = Reshape(v0, shape)
  q = Transpose<perm=[0,1,3,2,4]>(q1)  k = Transpose<perm=[0,1,3,4,2]>(k1)  v = Transpose<perm=[0,1,3,2,4]>(v1)
  s0 = MatMul(q, k)  s = BETWEEN
  o0 = MatMul(s, v)  o1 = Transpose<perm=[0,1,3,2,4]>(o0)  y = Reshape(o1, flat)
}"""


@pytest.mark.parametrize(
    ("between", "kind"), [("Softmax(s0)", "Attention"), ("Tanh(s0)", "Matmul")]
)
def test_windows_and_heads_behind_a_batch_of_one_are_two_axes(
    tmp_path: Path, execute: Execute, between: str, kind: str
) -> None:
    text = WINDOWS.replace("BETWEEN", between).replace(")  ", ")\n  ")
    model, source = lowered(tmp_path, text)
    assert set(kinds(model)) == {"Matmul", kind}
    compare(execute, model, source)


GROUPED = """agraph (float[N,5,16] x, float[16,32] wq, float[16,16] wk, float[16,16] wv, float[N,1,5,5] m) => (float[N,5,32] y)
  <int64[4] q_heads = {0,5,4,8}, int64[4] k_heads = {0,5,2,8}, int64[1] two = {2}, int64[5] wide = {1,2,2,5,8},
   int64[4] flat = {-1,4,5,8}, int64[3] merged = {0,5,32}> {
  q = MatMul(x, wq)  q1 = Reshape(q, q_heads)  q2 = Transpose<perm=[0,2,1,3]>(q1)
  k = MatMul(x, wk)  k1 = Reshape(k, k_heads)  k2 = Transpose<perm=[0,2,1,3]>(k1)
  v = MatMul(x, wv)  v1 = Reshape(v, k_heads)  v2 = Transpose<perm=[0,2,1,3]>(v1)
  k3 = Unsqueeze(k2, two)  k4 = Expand(k3, wide)  k5 = Reshape(k4, flat)
  v3 = Unsqueeze(v2, two)  v4 = Expand(v3, wide)  v5 = Reshape(v4, flat)
  k6 = Transpose<perm=[0,1,3,2]>(k5)
  s = MatMul(q2, k6)  t = Add(s, m)  p = Softmax<axis=-1>(t)  o = MatMul(p, v5)
  o1 = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(o1, merged) }"""


@pytest.mark.parametrize("batch", [1, 3])
def test_heads_that_share_keys_read_them_where_they_lie(
    tmp_path: Path, execute: Execute, batch: int
) -> None:
    model, source = lowered(tmp_path, GROUPED.replace(")  ", ")\n  "))
    assert sorted(kinds(model)) == ["Attention", "Matmul"]
    (attention,) = [p for p in model.program.problems if isinstance(p, Attention)]
    assert (attention.batch[1], attention.heads_of_keys) == (4, 2)
    compare(execute, model, source, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_product_may_repeat_matrices_along_its_last_batch_axis(
    tmp_path: Path, execute: Execute, batch: int
) -> None:
    text = """agraph (float[N,2,3,5,8] a, float[N,2,1,8,7] b) => (float[N,2,3,5,7] y) {
      q = Relu(a)
      k = Sigmoid(b)
      y = MatMul(q, k)
    }"""
    model, source = lowered(tmp_path, text)
    assert sorted(kinds(model)) == ["Elementwise", "Elementwise", "Matmul"]
    compare(execute, model, source, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_heads_that_flatten_their_product(tmp_path: Path, execute: Execute, batch: int) -> None:
    text = """agraph (float[N,7,32] x, float[32,32] w0, float[32,32] w1, float[224,6] w2, float[224,5] w3) => (float[N,6] y, float[N,5] z) {
      a = MatMul(x, w0)
      b = MatMul(x, w1)
      fa = Flatten(a)
      fb = Flatten(b)
      y = MatMul(fa, w2)
      z = MatMul(fb, w3)
    }"""
    model, source = lowered(tmp_path, text)
    assert kinds(model) == ["Matmul"] * 4  # joined, their rows would not be contiguous
    compare(execute, model, source, batch)
