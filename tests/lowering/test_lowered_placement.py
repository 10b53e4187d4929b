"""What is concatenated or split lies where its parts are computed, and computes what ONNX Runtime does."""

from pathlib import Path

import pytest
from support.networks.lowered_text import Execute, compare, kinds, lowered

from wpk.problems import Matmul


def test_dense_concatenations_lie_in_place(tmp_path: Path, execute: Execute) -> None:
    text = """agraph (float[2,8,5,5] x, float[8,8,3,3] w0, float[8,8,3,3] w1, float[8,16,3,3] w2, float[8,24,1,1] w3) => (float[2,8,5,5] y) {
      s = Conv<pads=[1,1,1,1]>(x, w0)
      a = Conv<pads=[1,1,1,1]>(s, w1)
      c1 = Concat<axis=1>(s, a)
      b = Conv<pads=[1,1,1,1]>(c1, w2)
      c2 = Concat<axis=1>(s, a, b)
      y = Conv(c2, w3)
    }"""
    model, source = lowered(tmp_path, text)
    assert all(kind == "Convolution" for kind in kinds(model))
    compare(execute, model, source)


BLOCK = """agraph (float[N,16,5,5] x, float[16,16,3,3] w0, float[16,16,1,1] wa, float[8,16,1,1] wb,
    float[8,8,3,3] wc, float[8,16,1,1] wp, float[32,32,1,1] wz) => (float[N,32,5,5] y) {
  s = Conv<pads=[1,1,1,1]>(x, w0)
  a0 = Conv(s, wa)
  a = Relu(a0)
  b0 = Conv(s, wb)
  b = Relu(b0)
  c0 = Conv<pads=[1,1,1,1]>(b, wc)
  c = Relu(c0)
  p0 = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1>(s)
  p1 = Conv(p0, wp)
  p = Relu(p1)
  t = Concat<axis=1>(a, c, p)
  y = Conv(t, wz)
}"""


@pytest.mark.parametrize("batch", [1, 3])
def test_an_inception_block_is_a_joined_product_and_its_branches(
    tmp_path: Path, execute: Execute, batch: int
) -> None:
    model, source = lowered(tmp_path, BLOCK)
    assert kinds(model) == ["Convolution"] * 3 + ["Pooling", "Convolution"]
    compare(execute, model, source, batch)


DENSE = """agraph (float[N,16,6,6] x, float[16,16,3,3] w0, float[16,1,1] ws1, float[16,1,1] wt1,
    float[8,16,1,1] w1, float[8,8,3,3] w2, float[24,1,1] ws3, float[24,1,1] wt3,
    float[8,24,1,1] w3) => (float[N,8,3,3] y) {
  a = Conv<pads=[1,1,1,1]>(x, w0)
  m1 = Mul(a, ws1)
  n1 = Add(m1, wt1)
  r1 = Relu(n1)
  b = Conv(r1, w1)
  rb = Relu(b)
  c = Conv<pads=[1,1,1,1]>(rb, w2)
  d = Concat<axis=1>(a, c)
  m3 = Mul(d, ws3)
  n3 = Add(m3, wt3)
  r3 = Relu(n3)
  e = Conv(r3, w3)
  y = AveragePool<kernel_shape=[2,2], strides=[2,2]>(e)
}"""


@pytest.mark.parametrize("batch", [1, 3])
def test_a_dense_block_is_its_convolutions(tmp_path: Path, execute: Execute, batch: int) -> None:
    model, source = lowered(tmp_path, DENSE)
    both = ["Convolution", "ClampedConvolution"]
    assert kinds(model) == both * 2
    compare(execute, model, source, batch)


def test_a_mean_over_the_plane_computes_what_it_alone_reads(
    tmp_path: Path, execute: Execute
) -> None:
    text = """agraph (float[N,16,6,6] x, float[16,16,3,3] w0, float[8,16,3,3] w1, float[24,1,1] ws) => (float[N,24,1,1] y) {
      a = Conv<pads=[1,1,1,1]>(x, w0)
      b = Conv<pads=[1,1,1,1]>(a, w1)
      c = Concat<axis=1>(a, b)
      m = Mul(c, ws)
      r = Relu(m)
      y = GlobalAveragePool(r)
    }"""
    model, source = lowered(tmp_path, text)
    assert kinds(model) == ["Convolution", "Convolution", "Reduction"]
    compare(execute, model, source, batch=3)


@pytest.mark.parametrize(("parts", "copies"), [("a, b", 0), ("b, a", 1)])
def test_parts_that_nothing_else_reads_begin_at_any_4_bytes(
    tmp_path: Path, execute: Execute, parts: str, copies: int
) -> None:
    """Behind 20 bytes; what a convolution reads, too, would be read by narrow accesses there."""
    text = f"""agraph (float[N,8,5,7] x, float[5,8,1,1] w0, float[5,1,3,3] w1, float[9,10,1,1] w2) => (float[N,9,5,7] y) {{
      a = Conv(x, w0)
      b = Conv<group=5, pads=[1,1,1,1]>(a, w1)
      c = Concat<axis=1>({parts})
      y = Conv(c, w2)
    }}"""
    model, source = lowered(tmp_path, text)
    assert kinds(model).count("Elementwise") == copies
    compare(execute, model, source, batch=3)


@pytest.mark.parametrize("batch", [1, 3])
def test_an_upsampled_image_is_written_into_the_concatenation(
    tmp_path: Path, execute: Execute, batch: int
) -> None:
    text = """agraph (float[N,64,3,5] x, float[N,8,6,10] z, float[64,64,1,1] w0, float[64,16,2,2] w1, float[16] wb1, float[8,8,1,1] w2, float[8,24,3,3] w3) => (float[N,8,6,10] y) {
      a = Conv(x, w0)
      r = Relu(a)
      u = ConvTranspose<strides=[2,2]>(r, w1, wb1)
      s = Conv(z, w2)
      c = Concat<axis=1>(s, u)
      y = Conv<pads=[1,1,1,1]>(c, w3)
    }"""
    model, source = lowered(tmp_path, text.replace("[N,", f"[{batch},"))
    assert kinds(model) == ["Convolution", "Convolution", "Matmul", "Elementwise", "Convolution"]
    (product,) = [
        each.problem for each in model.program.operators if isinstance(each.problem, Matmul)
    ]
    assert product.a.strides[3] == 1  # the image lies channels last for it
    compare(execute, model, source, batch)


def test_split_halves_of_unaligned_channels(tmp_path: Path, execute: Execute) -> None:
    text = """agraph (float[2,10,5,5] x, float[10,10,1,1] w0, float[5,5,1,1] w1) => (float[2,10,5,5] y) {
      a = Conv(x, w0)
      l, r = Split<axis=1>(a)
      c = Conv(r, w1)
      y = Concat<axis=1>(l, c)
    }"""
    compare(execute, *lowered(tmp_path, text))
