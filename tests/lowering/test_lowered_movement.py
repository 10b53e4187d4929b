"""Lowered shuffles, patches and selections, executed in NumPy, compute what ONNX Runtime computes on the model."""

from pathlib import Path

import pytest
from support.networks.lowered_text import Execute, compare, kinds, lowered

from wpk.assembly.ports import input_ports
from wpk.dtypes import Precision
from wpk.problems import Elementwise


def test_channel_shuffle_is_one_copy(tmp_path: Path, execute: Execute) -> None:
    text = """agraph (float[2,8,5,5] x, float[8,8,1,1] w0, float[8,8,1,1] w1) => (float[2,8,5,5] y) {
      split = Constant<value_ints=[0,2,4,5,5]>()
      join = Constant<value_ints=[0,8,5,5]>()
      a = Conv(x, w0)
      b = Reshape(a, split)
      c = Transpose<perm=[0,2,1,3,4]>(b)
      d = Reshape(c, join)
      y = Conv(d, w1)
    }"""
    model, source = lowered(tmp_path, text)
    compare(execute, model, source)
    assert len(model.program.operators) <= 3


def test_a_picture_in_patches_is_a_cast_and_a_product_beside_a_token(
    tmp_path: Path, execute: Execute
) -> None:
    text = """agraph (float[1,3,12,20] x, float[16,3,6,5] w0, float[16] wb0, float[1,9,16] w1) => (float[1,9,16] y) {
      zero = Constant<value_ints=[0]>()
      one = Constant<value_ints=[1]>()
      rows = Constant<value_ints=[0,16,8]>()
      token = Constant<value_ints=[1,16]>()
      a = Conv<strides=[6,5]>(x, w0, wb0)
      b = Reshape(a, rows)
      c = Transpose<perm=[0,2,1]>(b)
      m = ReduceMean<axes=[1], keepdims=1>(c)
      d = Concat<axis=1>(m, c)
      y = Add(d, w1)
    }"""
    model, source = lowered(tmp_path, text, precision=Precision.FP16)
    assert kinds(model)[:2] == ["Elementwise", "Matmul"]
    assert not [each for each in model.program.operators if each.name.startswith("copy")]
    compare(execute, model, source, tolerance=3e-3)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_pixel_shuffle_moves_whole_pixels(tmp_path: Path, execute: Execute, batch: int) -> None:
    text = """agraph (float[N,8,3,5] x, float[32,8,3,3] w0, float[32] wb0, float[8,8,3,3] w1) => (float[N,8,6,10] y) {
      a = Conv<pads=[1,1,1,1]>(x, w0, wb0)
      b = DepthToSpace<blocksize=2, mode="CRD">(a)
      y = Conv<pads=[1,1,1,1]>(b, w1)
    }"""
    model, source = lowered(tmp_path, text)
    assert kinds(model) == ["Convolution", "Elementwise", "Convolution"]
    move = model.program.operators[1].problem
    assert isinstance(move, Elementwise)
    assert [t.strides[-1] for t in (move.inputs[0], move.y)] == [1, 1]
    compare(execute, model, source, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_embeddings_of_categories_are_one_gather(
    tmp_path: Path, execute: Execute, batch: int
) -> None:
    text = """agraph (int64[N,3] i, float[N,8] x, float[8,8] w0, float[5,8] w1, float[7,8] w2, float[6,8] w3) => (float[N,4,4] y) {
      zero = Constant<value_int=0>()
      first = Constant<value_int=1>()
      second = Constant<value_int=2>()
      axis = Constant<value_ints=[1]>()
      d = MatMul(x, w0)
      a = Gather<axis=1>(i, zero)
      b = Gather<axis=1>(i, first)
      c = Gather<axis=1>(i, second)
      p = Gather(w1, a)
      q = Gather(w2, b)
      r = Gather(w3, c)
      ud = Unsqueeze(d, axis)
      up = Unsqueeze(p, axis)
      uq = Unsqueeze(q, axis)
      ur = Unsqueeze(r, axis)
      s = Concat<axis=1>(ud, up, uq, ur)
      t = Transpose<perm=[0,2,1]>(s)
      y = MatMul(s, t)
    }"""
    model, source = lowered(tmp_path, text.replace("[N,", "[1,") if batch == 1 else text)
    assert kinds(model).count("Gather") == 1
    assert [port.draw_below for port in input_ports(model.program)] == [5, 0]  # the smallest table
    assert kinds(model).count("Elementwise") == (
        1 if batch == 1 else 2
    )  # rows of several are copied
    compare(execute, model, source, batch)
