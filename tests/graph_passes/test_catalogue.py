"""The whole group, on networks as exporters write them, with every pass and without each."""

from collections import Counter

import numpy as np
import onnx_graphsurgeon as gs
import pytest
from subjects import exported
from support.each_value import each_value

from wpk.graph_passes import run_passes
from wpk.graph_passes.catalogue import simplifying_passes

# MobileNetV3-like, as an old exporter writes it: batch normalisation apart, hard-swish in pieces,
# squeeze-excite, shape arithmetic around a free batch.
CNN = """<ir_version: 7, opset_import: ["" : 11]>
g (float[batch, 3, 16, 16] x, float[8, 3, 3, 3] w1, float[8] s1, float[8] t1, float[8] m1,
   float[8] v1, float[8, 1, 3, 3] w2, float[8] s2, float[8] t2, float[8] m2, float[8] v2,
   float[2, 8, 1, 1] w3, float[8, 2, 1, 1] w4, float[128, 5] w5, float[5] b5) => (float[batch, 5] y)
<float three = {3}, float zero = {0}, float six = {6}, int64 first = {0}, int64[1] rest = {-1},
 int64[8] pad = {0, 0, 1, 1, 0, 0, 1, 1}, float half = {0.5}> {
  c1 = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (x, w1)
  n1 = BatchNormalization (c1, s1, t1, m1, v1)
  a1 = Add(n1, three)  k1 = Clip(a1, zero, six)  p1 = Mul(n1, k1)  h1 = Div(p1, six)
  d1 = Dropout <ratio = 0.2> (h1)
  z1 = Pad(d1, pad)
  c2 = Conv <group = 8> (z1, w2)
  n2 = BatchNormalization (c2, s2, t2, m2, v2)
  g2 = ReduceMean <axes = [2, 3]> (n2)
  e3 = Conv (g2, w3)  r3 = Relu(e3)
  e4 = Conv (r3, w4)  a4 = Add(e4, three)  k4 = Clip(a4, zero, six)  q4 = Div(k4, six)
  f4 = Mul(n2, q4)
  l4 = Add(f4, d1)
  o4 = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (l4)
  sh = Shape(o4)  i0 = Gather(sh, first)  u0 = Unsqueeze <axes = [0]> (i0)
  to = Concat <axis = 0> (u0, rest)
  fl = Reshape(o4, to)
  mm = MatMul(fl, w5)  bi = Add(mm, b5)
  y = Softmax <axis = 1> (bi)
}"""
CNN_WEIGHTS = "w1 s1 t1 m1 v1 w2 s2 t2 m2 v2 w3 w4 w5 b5"

# One encoder layer, everything in pieces.
ENCODER = """<ir_version: 8, opset_import: ["" : 13]>
g (float[batch, 6, 16] x, float[16, 16] wq, float[16] bq, float[16, 16] wk, float[16] bk,
   float[16, 16] wv, float[16] bv, float[16, 16] wo, float[16] bo, float[16] g1, float[16] b1,
   float[16, 32] w1, float[32] c1, float[32, 16] w2, float[16] c2) => (float[batch, 6, 16] y)
<int64[4] heads = {0, 6, 2, 8}, int64[3] back = {0, 6, 16}, float scale = {2.8284271},
 float two = {2}, float eps = {0.00001}, int64[1] last = {-1}, float root = {1.4142135},
 float one = {1}, float half = {0.5}> {
  q0 = MatMul(x, wq)  q1 = Add(q0, bq)  q2 = Reshape(q1, heads)
  q3 = Transpose <perm = [0, 2, 1, 3]> (q2)  q4 = Div(q3, scale)
  k0 = MatMul(x, wk)  k1 = Add(k0, bk)  k2 = Reshape(k1, heads)
  k3 = Transpose <perm = [0, 2, 3, 1]> (k2)
  v0 = MatMul(x, wv)  v1 = Add(v0, bv)  v2 = Reshape(v1, heads)
  v3 = Transpose <perm = [0, 2, 1, 3]> (v2)
  s0 = MatMul(q4, k3)
  s1 = ReduceMax <axes = [-1]> (s0)  s2 = Sub(s0, s1)  s3 = Exp(s2)
  s4 = ReduceSum(s3, last)  s5 = Div(s3, s4)
  o0 = MatMul(s5, v3)  o1 = Transpose <perm = [0, 2, 1, 3]> (o0)  o2 = Reshape(o1, back)
  o3 = MatMul(o2, wo)  o4 = Add(o3, bo)  r1 = Add(o4, x)
  m1 = ReduceMean <axes = [-1]> (r1)  d1 = Sub(r1, m1)  p1 = Pow(d1, two)
  e1 = ReduceMean <axes = [-1]> (p1)  f1 = Add(e1, eps)  h1 = Sqrt(f1)  n1 = Div(d1, h1)
  l1 = Mul(n1, g1)  l2 = Add(l1, b1)
  j0 = MatMul(l2, w1)  j1 = Add(j0, c1)
  u0 = Div(j1, root)  u1 = Erf(u0)  u2 = Add(u1, one)  u3 = Mul(j1, u2)  u4 = Mul(u3, half)
  y0 = MatMul(u4, w2)  y1 = Add(y0, c2)
  y = Add(y1, l2)
}"""
ENCODER_WEIGHTS = "wq bq wk bk wv bv wo bo g1 b1 w1 c1 w2 c2"
MODELS = {"cnn": (CNN, CNN_WEIGHTS), "encoder": (ENCODER, ENCODER_WEIGHTS)}
NAMES = [each.name for each in simplifying_passes()]


def _compare(before, after, export, run_model, batches=(1, 3)):
    """Twelve layers of sums of at most 128 terms, each side; the tolerance is relative to max |y|."""
    old_model, new_model = export(before), export(after)
    (source,) = before.inputs
    for batch in batches:
        shape = [batch, *source.shape[1:]]
        x = np.random.default_rng(batch).standard_normal(shape).astype(np.float32)
        (old,), (new,) = (run_model(m, {source.name: x}) for m in (old_model, new_model))
        bound = 2 * 12 * 128 * 2.0**-24 * float(np.abs(old).max())
        np.testing.assert_allclose(new, old, rtol=0.0, atol=bound)


def _ops(graph: gs.Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


def test_an_old_cnn_comes_down_to_its_layers(load, export, run_model):
    before, after = (load(CNN, CNN_WEIGHTS) for _ in range(2))
    run_passes(after, simplifying_passes())
    assert _ops(after) == {
        "Conv": 4, "HardSwish": 1, "GlobalAveragePool": 1, "Relu": 1, "HardSigmoid": 1, "Mul": 1,
        "Add": 1, "AveragePool": 1, "Reshape": 1, "Gemm": 1, "Softmax": 1,
    }  # fmt: skip
    _compare(before, after, export, run_model)


def test_an_encoder_in_pieces_comes_down_to_its_operators(load, export, run_model):
    before, after = (load(ENCODER, ENCODER_WEIGHTS) for _ in range(2))
    run_passes(after, simplifying_passes())
    assert _ops(after) == {
        "MatMul": 8, "Add": 8, "Reshape": 4, "Transpose": 4, "Softmax": 1,
        "LayerNormalization": 1, "Gelu": 1,
    }  # fmt: skip
    _compare(before, after, export, run_model)


@pytest.mark.parametrize("model", MODELS)
def test_passes_that_rewrite_can_be_skipped(load, export, run_model, model):
    """Where a pass finds nothing to rewrite, its absence makes no difference."""
    records = run_passes(load(*MODELS[model]), simplifying_passes())
    names = [record.name for record in records if record.rewritten]
    assert names
    for name in names:
        test_each_pass_can_be_skipped(load, export, run_model, model, name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("model", MODELS)
def test_each_pass_can_be_skipped(load, export, run_model, model, name):
    before, after = (load(*MODELS[model]) for _ in range(2))
    records = run_passes(after, simplifying_passes(), skip={name})
    assert [record.name for record in records if record.skipped] == [name]
    _compare(before, after, export, run_model, batches=(2,))


@pytest.mark.parametrize(("name", "model"), each_value(NAMES, MODELS))
def test_each_pass_alone_keeps_the_numbers(load, export, run_model, model, name):
    before, after = (load(*MODELS[model]) for _ in range(2))
    run_passes(after, simplifying_passes(), skip=set(NAMES) - {name})
    _compare(before, after, export, run_model, batches=(2,))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tv_resnet18.script", {"Conv": 20, "Relu": 17, "Add": 8, "MaxPool": 1,
                                "GlobalAveragePool": 1, "Flatten": 1, "Gemm": 1}),
        ("tv_mobilenet_v2.dynamo", {"Conv": 52, "Clip": 35, "Add": 10, "GlobalAveragePool": 1,
                                    "Reshape": 1, "Gemm": 1}),
        ("hf_distilbert.dynamo", {"MatMul": 24, "Add": 28, "Reshape": 12, "Transpose": 12,
                                  "LayerNormalization": 7, "Softmax": 3, "Gelu": 3, "Gather": 1}),
    ],
)  # fmt: skip
def test_exported_networks(run_model, name, expected):
    model = exported.refill(name)
    graph = gs.import_onnx(model)
    for index, node in enumerate(graph.nodes):
        node.name = node.name or f"{node.op}_{index}"
    run_passes(graph, simplifying_passes())
    assert _ops(graph) == expected
    (source,) = graph.inputs
    shape = [dim if isinstance(dim, int) else 2 for dim in source.shape]
    rng = np.random.default_rng(0)
    integers = np.issubdtype(source.dtype, np.integer)
    x = rng.integers(0, 2000, shape) if integers else rng.standard_normal(shape)
    feeds = {source.name: x.astype(source.dtype)}
    old, new = (run_model(m, feeds)[0] for m in (model, gs.export_onnx(graph)))
    rms = float(np.sqrt(np.mean(np.square(old, dtype=np.float64))))
    # The project's own line for fp32: worst error relative to the output's RMS.
    assert float(np.abs(new - old).max()) <= 5e-5 * rms
