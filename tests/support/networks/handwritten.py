"""Small networks written by hand as ONNX text: the shapes that exported networks do not have.

Inputs of the text whose names begin with ``w`` become seeded weights.
"""

from pathlib import Path

import numpy as np
import onnx

from support.networks.family_blocks import BLOCKS

_HEADER = '<ir_version: 8, opset_import: ["" : 17]>\n'

TEXTS: dict[str, str] = {
    "grouped_dilated": """
agraph (float[N,12,13,11] x, float[24,6,3,3] w1, float[24] wb1, float[32,24,1,1] w2, float[32,4,3,3] w3,
    float[32,16,3,3] w4) => (float[N,32,13,11] y) {
  a = Conv<group=2, dilations=[2,1], pads=[2,1,2,1]>(x, w1, wb1)
  b = Relu(a)
  c = Conv(b, w2)
  d = Conv<group=8, pads=[1,1,1,1]>(c, w3)
  e = Conv<group=2, pads=[1,1,1,1]>(d, w4)
  y = Add(e, c)
}""",
    "group_norm": """
agraph (float[N,16,10,8] x, float[16,4,3,3] w1, float[16,1,1] w2) => (float[N,16,9,7] y)
  <int64[3] rows = {0, 4, -1}, int64[4] back = {0, 16, 9, 7}, float[4] one = {1, 1, 1, 1}, float[4] none = {0, 0, 0, 0}> {
  p = MaxPool<kernel_shape=[2,2]>(x)
  a = Conv<group=4, pads=[1,1,1,1]>(p, w1)
  b = Reshape(a, rows)
  c = InstanceNormalization(b, one, none)
  d = Reshape(c, back)
  e = Mul(d, w2)
  y = Add(e, p)
}""",
    "asymmetric_padding": """
agraph (float[N,16,15,10] x, float[32,16,3,3] w1, float[32] wb1, float[8,32,5,3] w2)
  => (float[N,8,p,q] y) {
  a = Conv<pads=[0,1,2,3], strides=[2,2]>(x, w1, wb1)
  b = Sigmoid(a)
  y = Conv<pads=[1,2,2,0]>(b, w2)
}""",
    "ceil_mode_pooling": """
agraph (float[N,8,14,13] x, float[16,8,3,3] w1) => (float[N,16,p,q] y) {
  a = Conv<pads=[1,1,1,1]>(x, w1)
  b = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(a)
  y = AveragePool<kernel_shape=[3,3], strides=[3,3], pads=[1,1,1,1], count_include_pad=1, ceil_mode=1>(b)
}""",
    "average_pooling": """
agraph (float[N,16,9,9] x, float[16,16,1,1] w1) => (float[N,16,5,5] y) {
  a = Conv(x, w1)
  b = AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(a)
  y = HardSigmoid(b)
}""",
    "transposed_convolution": """
agraph (float[N,16,7,6] x, float[16,24,3,3] w1, float[24] wb1, float[24,4,2,2] w2)
  => (float[N,8,28,24] y) {
  a = ConvTranspose<strides=[2,2], pads=[1,1,1,1], output_padding=[1,1]>(x, w1, wb1)
  b = Relu(a)
  y = ConvTranspose<strides=[2,2], group=2>(b, w2)
}""",
    "channel_shuffle": """
agraph (float[N,16,8,8] x, float[16,16,1,1] w1, float[16,1,3,3] w2, float[16,16,1,1] w3)
  => (float[N,16,8,8] y) {
  split = Constant<value_ints=[0,2,8,8,8]>()
  join = Constant<value_ints=[0,16,8,8]>()
  a = Conv(x, w1)
  b = Reshape(a, split)
  c = Transpose<perm=[0,2,1,3,4]>(b)
  d = Reshape(c, join)
  e = Conv<group=16, pads=[1,1,1,1]>(d, w2)
  y = Conv(e, w3)
}""",
    "squeeze_excite": """
agraph (float[N,24,9,9] x, float[24,24,1,1] w1, float[6,24,1,1] w2, float[6] wb2, float[24,6,1,1] w3, float[24] wb3, float[16,24,1,1] w4)
  => (float[N,16,9,9] y) {
  a0 = Conv(x, w1)
  a = HardSwish(a0)
  g = GlobalAveragePool(a)
  s = Conv(g, w2, wb2)
  t = Relu(s)
  u = Conv(t, w3, wb3)
  v = Sigmoid(u)
  m = Mul(a, v)
  y = Conv(m, w4)
}""",
    "dense_concat": """
agraph (float[N,16,7,7] x, float[16,16,3,3] w1, float[16,32,3,3] w2, float[8,48,1,1] w3) => (float[N,8,7,7] y) {
  a = Conv<pads=[1,1,1,1]>(x, w1)
  ra = Relu(a)
  c1 = Concat<axis=1>(x, ra)
  b = Conv<pads=[1,1,1,1]>(c1, w2)
  c2 = Concat<axis=1>(x, ra, b)
  r = Relu(c2)
  y = Conv(r, w3)
}""",
    "channels_58": """
agraph (float[N,3,16,16] x, float[58,3,3,3] w1, float[58] wb1, float[58,58,1,1] w2, float[58,1,3,3] w3, float[58,116,1,1] w4, float[10,58] w5)
  => (float[N,10] y) {
  a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w1, wb1)
  b = Sigmoid(a)
  c = Conv(b, w2)
  d = Conv<group=58, pads=[1,1,1,1]>(c, w3)
  e = Concat<axis=1>(d, b)
  f = Conv(e, w4)
  p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(f)
  g = GlobalAveragePool(p)
  h = Flatten(g)
  y = Gemm<transB=1>(h, w5)
}""",
    "attention_with_mask": """
agraph (float[N,11,48] x, float[N,1,1,11] mask, float[48,48] wq, float[48,48] wk, float[48,48] wv, float[48,48] wo, float[48] wob, float[48] wg, float[48] wb, float[48,96] wf1, float[96,48] wf2)
  => (float[N,11,48] y) {
  shape = Constant<value_ints=[0,11,3,16]>()
  flat = Constant<value_ints=[0,11,48]>()
  scale = Constant<value=float {0.25}>()
  half = Constant<value=float {0.5}>()
  one = Constant<value=float {1.0}>()
  root = Constant<value=float {1.41421356}>()
  q0 = MatMul(x, wq)
  k0 = MatMul(x, wk)
  v0 = MatMul(x, wv)
  q1 = Reshape(q0, shape)
  k1 = Reshape(k0, shape)
  v1 = Reshape(v0, shape)
  q = Transpose<perm=[0,2,1,3]>(q1)
  k = Transpose<perm=[0,2,3,1]>(k1)
  v = Transpose<perm=[0,2,1,3]>(v1)
  s0 = MatMul(q, k)
  s1 = Mul(s0, scale)
  s2 = Add(s1, mask)
  s = Softmax(s2)
  o0 = MatMul(s, v)
  o1 = Transpose<perm=[0,2,1,3]>(o0)
  o2 = Reshape(o1, flat)
  o3 = MatMul(o2, wo)
  o4 = Add(o3, wob)
  o5 = Add(o4, x)
  n = LayerNormalization(o5, wg, wb)
  f0 = MatMul(n, wf1)
  f1 = Div(f0, root)
  f2 = Erf(f1)
  f3 = Add(f2, one)
  f4 = Mul(f0, f3)
  f5 = Mul(f4, half)
  f6 = MatMul(f5, wf2)
  f7 = Add(f6, n)
  y = LayerNormalization(f7, wg, wb)
}""",
    "across": """
agraph (float[N,24,50] x) => (float[N,24,50] y) {
  s = Softmax<axis=1>(x)
  y = Relu(s)
}""",
    "movement": """
agraph (float[N,8,6,7] x, float[8,8,3,3] w1, float[16,32,1,1] w2) => (float[N,16,6,7] y) {
  pads = Constant<value_ints=[0,0,1,2,0,0,2,1]>()
  scales = Constant<value_floats=[1.0,1.0,2.0,2.0]>()
  a = Conv<pads=[1,1,1,1]>(x, w1)
  p = Pad<mode="reflect">(a, pads)
  q = MaxPool<kernel_shape=[4,4]>(p)
  u = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(q, none, scales)
  d = SpaceToDepth<blocksize=2>(u)
  y = Conv(d, w2)
}""".replace(", none,", ",,"),
    "embedding": """
agraph (int64[N,9] ids, float[50,24] w1, float[9,24] w2, float[24] wg, float[24] wb) => (float[N,24] y) {
  axis = Constant<value=int64 {0}>()
  e = Gather(w1, ids)
  p = Add(e, w2)
  n = LayerNormalization(p, wg, wb)
  y = Gather<axis=1>(n, axis)
}""",
    "rows": """
agraph (float[N,6,33] x, float[33,40] w1) => (float[N,40] y) {
  a = MatMul(x, w1)
  l = LogSoftmax(a)
  t = Tanh(l)
  s = Mul(t, t)
  y = ReduceSum<keepdims=0>(s, axes)
}""".replace("=> (float[N,40] y) {", "=> (float[N,40] y) {\n  axes = Constant<value_ints=[1]>()"),
    "ranking": """
agraph (float[N,6,20] x) => (float[N,6,20] y, int64[N,6] z) {
  k = Constant<value_ints=[5]>()
  axis = Constant<value=int64 {2}>()
  c = CumSum(x, axis)
  z = ArgMax<axis=2, keepdims=0>(c)
  v, i = TopK(c, k)
  s = Softmax(v)
  y = ScatterElements<axis=2>(x, i, s)
}""",
    "regions": """
agraph (float[2,12,9,11] x, float[N,4] r, int64[N] i, float[16,12,3,3] w1, float[8,16,1,1] w2)
  => (float[N,8,4,5] y) {
  a = Conv<pads=[1,1,1,1]>(x, w1)
  b = Relu(a)
  c = RoiAlign<output_height=4, output_width=5, sampling_ratio=2, spatial_scale=4.0,
    coordinate_transformation_mode="output_half_pixel">(b, r, i)
  y = Conv(c, w2)
}""",
    "unpooled": """
agraph (float[N,6,8,10] x, float[12,6,3,3] w1, float[8,12,1,1] w2) => (float[N,8,8,10] y, int64[N,12,4,5] i) {
  a = Conv<pads=[1,1,1,1]>(x, w1)
  v, i = MaxPool<kernel_shape=[2,2], strides=[2,2]>(a)
  s = Sigmoid(v)
  u = MaxUnpool<kernel_shape=[2,2], strides=[2,2]>(s, i)
  y = Conv(u, w2)
}""",
    "reversed": """
agraph (float[N,7,16] x, int64[N] n, float[16,24] w1) => (float[N,7,24] y) {
  a = MatMul(x, w1)
  b = ReverseSequence<batch_axis=0, time_axis=1>(a, n)
  y = Tanh(b)
}""",
    "determinants": """
agraph (float[N,6,5,5] x, float[6,4] w1) => (float[N,4] y) {
  a = Tanh(x)
  b = Det(a)
  y = MatMul(b, w1)
}""",
    "recurrent": """
agraph (float[N,7,40] x, float[1,128,40] w1, float[1,128,32] w2, float[1,256] wb) => (float[N,7,32] y) {
  axis = Constant<value_ints=[1]>()
  t = Transpose<perm=[1,0,2]>(x)
  a, h, c = LSTM<hidden_size=32>(t, w1, w2, wb)
  s = Squeeze(a, axis)
  y = Transpose<perm=[1,0,2]>(s)
}""",
    "transposed_output": """
agraph (float[N,8,5,9] x, float[8,8,1,1] w1) => (float[N,9,8,5] y) {
  a = Conv(x, w1)
  y = Transpose<perm=[0,3,1,2]>(a)
}""",
}
TEXTS |= BLOCKS

FREE_LENGTHS = {
    "positions": """
agraph (float[N,S,24] x, float[40,24] w1) => (float[N,S,24] y) {
  zero = Constant<value_ints=[0]>()
  s = Shape<start=1, end=2>(x)
  p = Slice(w1, zero, s, zero)
  y = Add(x, p)
}""",
}
"""Networks whose batch and length are free."""

FEED_FORWARDS = {
    "feed_forward": """
agraph (float[N,72,16] x, float[16,32] w1, float[32] wg, float[32] wb, float[32,80] w2, float[80] wb2, float[80,32] w3)
  => (float[N,72,32] y) {
  p = MatMul(x, w1)
  n = LayerNormalization(p, wg, wb)
  f = MatMul(n, w2)
  b = Add(f, wb2)
  r = Relu(b)
  o = MatMul(r, w3)
  y = Add(o, p)
}""",
}
"""Networks of which both products of a feed-forward block may be one operator, where that form is asked for."""

DOUBLES = {
    "double": """
agraph (double[N,6,20] x, float[N,6,20] z, double[20,24] w1, double[24] wb1, double[24] wg, double[24] wb)
  => (double[N,6,26] y, int64[N,6] i, float[N,24,6] t, double[N,6,2,24] g) {
  k = Constant<value_ints=[5]>()
  pads = Constant<value_ints=[0,0,1,0,0,1]>()
  axes = Constant<value_ints=[2]>()
  axis = Constant<value=int64 {2}>()
  d = Cast<to=11>(z)
  c = CumSum(x, axis)
  e = Mul(c, d)
  h = MatMul(e, w1)
  b = Add(h, wb1)
  a = Tanh(b)
  u = Transpose<perm=[0,2,1]>(a)
  m = MatMul(a, u)
  p = Softmax<axis=-1>(m)
  s = MatMul(p, a)
  n = LayerNormalization<axis=-1>(s, wg, wb)
  v, j = TopK(n, k)
  o = Softmax(v)
  q = ScatterElements<axis=2>(n, j, o)
  l = ReduceL2<axes=[2]>(q)
  f = Div(q, l)
  y = Pad(f, pads)
  i = ArgMax<axis=2, keepdims=0>(s)
  t = Cast<to=1>(u)
  r = Unsqueeze(n, axes)
  g = Concat<axis=2>(r, r)
}""",
}
"""Networks of fp64, which TensorRT does not have."""


def model(name: str, seed: int = 0) -> onnx.ModelProto:
    """One of `TEXTS`, `FREE_LENGTHS`, `FEED_FORWARDS` or `DOUBLES` with weights drawn so that activations keep their size."""
    texts = TEXTS | FREE_LENGTHS | FEED_FORWARDS | DOUBLES
    proto = onnx.parser.parse_model(_HEADER + texts[name])
    rng = np.random.default_rng(seed)
    for info in [i for i in proto.graph.input if i.name.startswith("w")]:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        fan_in = float(np.prod(shape[1:])) if len(shape) == 4 else float(shape[0])
        values = rng.standard_normal(shape) / (np.sqrt(fan_in) if len(shape) > 1 else 4.0)
        if info.name == "wg":
            values += 1.0
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        proto.graph.initializer.append(
            onnx.numpy_helper.from_array(values.astype(dtype), info.name)
        )
        proto.graph.input.remove(info)
    return proto


def write(name: str, folder: Path, seed: int = 0) -> Path:
    """Write a model's file and return its path."""
    path = folder / f"{name}.onnx"
    onnx.save(model(name, seed), path)
    return path
