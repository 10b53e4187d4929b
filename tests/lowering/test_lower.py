"""Lowered programs, executed in NumPy, compute what onnxruntime computes on the model."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from wpk.assembly.ports import input_ports
from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.problems import Attention, Convolution, Elementwise, Gather, Matmul, Normalisation


def lowered(
    tmp_path: Path,
    text: str,
    shapes: dict[str, tuple[int, ...]] | None = None,
    precision: Precision = Precision.FP32,
    weights: int = 0,
) -> tuple[LoweredModel, onnx.ModelProto]:
    """A model written as ONNX text, weights drawn for its extra inputs named ``w...``."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    rng = np.random.default_rng(weights)
    for info in [i for i in model.graph.input if i.name.startswith("w")]:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        values = (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(
            np.float32
        )
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, info.name))
        model.graph.input.remove(info)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return lower_model(path, shapes or {}, precision), model


Compare = Callable[..., None]


@pytest.fixture(name="compare")
def fixture_compare(execute: Callable[..., Any]) -> Compare:
    """Execute both at a batch and compare every output."""
    return partial(_compare, execute)


def _compare(
    execute: Callable[..., Any],
    model: LoweredModel,
    source: onnx.ModelProto,
    batch: int = 2,
    tolerance: float = 2e-5,
) -> None:
    rng = np.random.default_rng(7)
    inputs = {}
    for info in source.graph.input:
        shape = [d.dim_value or batch for d in info.type.tensor_type.shape.dim]
        integer = info.type.tensor_type.elem_type == onnx.TensorProto.INT64
        inputs[info.name] = (
            rng.integers(0, 5, shape) if integer else rng.standard_normal(shape).astype(np.float32)
        )
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, inputs)
    got = execute(model.program, inputs)
    for info, reference in zip(source.graph.output, expected, strict=True):
        scale = np.sqrt(np.mean(np.square(reference))) + 1e-6
        np.testing.assert_allclose(got[info.name], reference, rtol=0, atol=tolerance * scale)


def kinds(model: LoweredModel) -> list[str]:
    """Kinds of the program's problems, in order."""
    return [type(operator.problem).__name__ for operator in model.program.operators]


CONV = """
agraph (float[N,6,9,11] x, float[8,3,3,3] w1, float[8] wb, float[8,8,1,1] w2) => (float[N,8,a,b] y) {
  c = Conv<group=2, dilations=[2,1], pads=[1,0,2,1], strides=[2,1]>(x, w1, wb)
  r = Relu(c)
  d = Conv(r, w2)
  y = Add(d, r)
}"""


@pytest.mark.parametrize("batch", [1, 3])
def test_grouped_dilated_convolution_with_residual_at_a_free_batch(
    tmp_path: Path, compare: Compare, batch: int
) -> None:
    model, source = lowered(tmp_path, CONV)
    assert kinds(model)[:2] == ["Convolution", "Convolution"]
    compare(model, source, batch)


@pytest.mark.parametrize(
    "body",
    [
        "y = ConvTranspose<group=2, strides=[2,3], pads=[1,0,0,2], output_padding=[1,1]>(x, w1)",
        "y = ConvTranspose<group=2, strides=[2,2], output_shape=[19,21]>(x, w1)",
        'y = ConvTranspose<group=2, strides=[2,2], auto_pad="SAME_UPPER">(x, w1)',
    ],
)
def test_transposed_convolutions(tmp_path: Path, compare: Compare, body: str) -> None:
    text = f"agraph (float[2,6,9,10] x, float[6,4,3,3] w1) => (float[2,8,a,b] y) {{ {body} }}"
    compare(*lowered(tmp_path, text))


@pytest.mark.parametrize(
    "body",
    [
        "y = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1, pads=[1,0,0,1]>(x)",
        'y = MaxPool<kernel_shape=[3,2], strides=[2,1], auto_pad="SAME_LOWER">(x)',
        "y = AveragePool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1, count_include_pad=1, pads=[1,1,1,1]>(x)",
        "y = AveragePool<kernel_shape=[2,3], strides=[1,2], pads=[0,1,1,1]>(x)",
        "y = GlobalAveragePool(x)",
    ],
)
def test_pooling_attributes(tmp_path: Path, compare: Compare, body: str) -> None:
    text = f"agraph (float[N,5,10,9] x) => (float[N,5,a,b] y) {{ {body} }}"
    compare(*lowered(tmp_path, text), batch=3)


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
    tmp_path: Path, compare: Compare, batch: int
) -> None:
    model, source = lowered(tmp_path, ATTENTION.replace(")  ", ")\n  "))
    assert kinds(model).count("Elementwise") == 0
    assert kinds(model).count("Normalisation") == 1
    assert kinds(model).count("Matmul") == 2  # query, key and value are one product
    assert kinds(model).count("Attention") == 1
    compare(model, source, batch)


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
    tmp_path: Path, compare: Compare, between: str, kind: str
) -> None:
    text = WINDOWS.replace("BETWEEN", between).replace(")  ", ")\n  ")
    model, source = lowered(tmp_path, text)
    assert set(kinds(model)) == {"Matmul", kind}
    compare(model, source)


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
    tmp_path: Path, compare: Compare, batch: int
) -> None:
    model, source = lowered(tmp_path, GROUPED.replace(")  ", ")\n  "))
    assert sorted(kinds(model)) == ["Attention", "Matmul"]
    (attention,) = [p for p in model.program.problems if isinstance(p, Attention)]
    assert (attention.batch[1], attention.heads_of_keys) == (4, 2)
    compare(model, source, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_product_may_repeat_matrices_along_its_last_batch_axis(
    tmp_path: Path, compare: Compare, batch: int
) -> None:
    text = """agraph (float[N,2,3,5,8] a, float[N,2,1,8,7] b) => (float[N,2,3,5,7] y) {
      q = Relu(a)
      k = Sigmoid(b)
      y = MatMul(q, k)
    }"""
    model, source = lowered(tmp_path, text)
    assert sorted(kinds(model)) == ["Elementwise", "Elementwise", "Matmul"]
    compare(model, source, batch)


def test_dense_concatenations_lie_in_place(tmp_path: Path, compare: Compare) -> None:
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
    compare(model, source)


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
    tmp_path: Path, compare: Compare, batch: int
) -> None:
    model, source = lowered(tmp_path, BLOCK)
    assert kinds(model) == ["Convolution"] * 3 + ["Pooling", "Convolution"]
    compare(model, source, batch)


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
def test_a_dense_block_is_its_convolutions(tmp_path: Path, compare: Compare, batch: int) -> None:
    model, source = lowered(tmp_path, DENSE)
    both = ["Convolution", "ClampedConvolution"]
    assert kinds(model) == both * 2
    compare(model, source, batch)


def test_a_mean_over_the_plane_computes_what_it_alone_reads(
    tmp_path: Path, compare: Compare
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
    compare(model, source, batch=3)


@pytest.mark.parametrize(("parts", "copies"), [("a, b", 0), ("b, a", 1)])
def test_parts_that_nothing_else_reads_begin_at_any_4_bytes(
    tmp_path: Path, compare: Compare, parts: str, copies: int
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
    compare(model, source, batch=3)


@pytest.mark.parametrize("batch", [1, 3])
def test_heads_that_flatten_their_product(tmp_path: Path, compare: Compare, batch: int) -> None:
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
    compare(model, source, batch)


def test_channel_shuffle_is_one_copy(tmp_path: Path, compare: Compare) -> None:
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
    compare(model, source)
    assert len(model.program.operators) <= 3


def test_a_picture_in_patches_is_a_cast_and_a_product_beside_a_token(
    tmp_path: Path, compare: Compare
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
    compare(model, source, tolerance=3e-3)


@pytest.mark.parametrize("batch", [1, 3])
def test_an_upsampled_image_is_written_into_the_concatenation(
    tmp_path: Path, compare: Compare, batch: int
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
    compare(model, source, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_a_pixel_shuffle_moves_whole_pixels(tmp_path: Path, compare: Compare, batch: int) -> None:
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
    compare(model, source, batch)


@pytest.mark.parametrize("batch", [1, 3])
def test_embeddings_of_categories_are_one_gather(
    tmp_path: Path, compare: Compare, batch: int
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
    compare(model, source, batch)


def test_split_halves_of_unaligned_channels(tmp_path: Path, compare: Compare) -> None:
    text = """agraph (float[2,10,5,5] x, float[10,10,1,1] w0, float[5,5,1,1] w1) => (float[2,10,5,5] y) {
      a = Conv(x, w0)
      l, r = Split<axis=1>(a)
      c = Conv(r, w1)
      y = Concat<axis=1>(l, c)
    }"""
    compare(*lowered(tmp_path, text))


def test_squeeze_excite(tmp_path: Path, compare: Compare) -> None:
    text = """agraph (float[N,12,6,6] x, float[12,12,3,3] w0, float[4,12,1,1] w1, float[4] wb1, float[12,4,1,1] w2, float[12] wb2) => (float[N,12,6,6] y) {
      a = Conv<pads=[1,1,1,1]>(x, w0)
      g = GlobalAveragePool(a)
      s = Conv(g, w1, wb1)
      t = Relu(s)
      u = Conv(t, w2, wb2)
      v = Sigmoid(u)
      y = Mul(a, v)
    }"""
    compare(*lowered(tmp_path, text), batch=2)


@pytest.mark.parametrize(
    "body",
    [
        "y = ReduceMean<axes=[-1], keepdims=0>(x)",
        "y = ReduceMax<axes=[1,3], keepdims=1>(x)",
        "y = ReduceL2<axes=[2,3], keepdims=0>(x)",
        "y = ReduceMin<keepdims=0>(x)",
        "t = Mul(x, x)  s = ReduceMean<axes=[2]>(t)  e = Constant<value=float {1.0}>() a = Add(s, e)  y = Sqrt(a)",
        "y = Softmax<axis=1>(x)",
        "y = LogSoftmax<axis=-1>(x)",
        "y = Transpose<perm=[0,3,1,2]>(x)",
        "y = Clip(x)",
    ],
)
def test_reductions_and_rows(tmp_path: Path, compare: Compare, body: str) -> None:
    text = f"agraph (float[3,4,5,6] x) => (float y) {{ {body.replace('  ', chr(10))} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    model.graph.output[0].type.tensor_type.ClearField("shape")
    inferred = onnx.shape_inference.infer_shapes(model)
    path = tmp_path / "model.onnx"
    onnx.save(inferred, path)
    compare(lower_model(path, {}, Precision.FP32), inferred)


def test_embedding_lookup_and_class_token(tmp_path: Path, compare: Compare) -> None:
    text = """agraph (int64[N,6] ids, float[9,8] w0, float[6,8] w1) => (float[N,8] y) {
      zero = Constant<value=int64 {0}>()
      e = Gather(w0, ids)
      p = Add(e, w1)
      y = Gather<axis=1>(p, zero)
    }"""
    model, source = lowered(tmp_path, text)
    assert any(isinstance(o.problem, Gather) for o in model.program.operators)
    compare(model, source, batch=3)


def test_reports_all_unsupported_nodes_at_once(tmp_path: Path) -> None:
    text = """agraph (float[2,6] x) => (float[2,6] y) {
      a = CumSum(x, axis)
      b = Relu(a)
      c = Det(m)
      y = Bernoulli(b)
    }""".replace("axis)", "axis)").replace("c = Det(m)\n", "")
    text = text.replace("float[2,6] x)", "float[2,6] x, int32 axis)")
    with pytest.raises(UnsupportedError) as refused:
        lowered(tmp_path, text)
    assert "CumSum" in refused.value.what
    assert "Bernoulli" in refused.value.what


def test_equal_layers_share_one_problem(tmp_path: Path) -> None:
    layers: Sequence[str] = [f"t{i + 1} = Conv<pads=[1,1,1,1]>(t{i}, w{i})" for i in range(4)]
    weights = ", ".join(f"float[8,8,3,3] w{i}" for i in range(4))
    text = f"agraph (float[1,8,6,6] t0, {weights}) => (float[1,8,6,6] t4) {{ {' '.join(layers)} }}"
    model, _ = lowered(tmp_path, text.replace(") t", ")\n t"))
    problems = [o.problem for o in model.program.operators]
    assert len(set(problems[1:3])) == 1
    assert all(isinstance(p, Convolution | Elementwise | Matmul | Normalisation) for p in problems)


def test_what_an_epilogue_reads_is_known_as_a_constant_or_not(tmp_path: Path) -> None:
    """A bias is one; a residual is not, nor is a gate of each channel that a kernel computes."""
    text = """agraph (float[1,8,6,6] x, float[8,8,3,3] w1, float[8] w2, float[8,8,1,1] w3)
    => (float[1,8,6,6] y) {
        gate = GlobalAveragePool(x)
        product = Conv<pads=[1,1,1,1]>(x, w1, w2)
        gated = Mul(product, gate)
        y = Add(gated, x)
    }"""
    model, _ = lowered(tmp_path, text)
    (conv,) = (o.problem for o in model.program.operators if isinstance(o.problem, Convolution))
    known = [each.constant for each in conv.epilogue.operands]
    assert len(known) > 1
    assert known.count(True) == 1
