"""The guard behind a softmax goes only where a proof says that it is idle."""

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.graph_passes.clean.elimination.magnitude import magnitude_bounds
from wpk.graph_passes.clean.elimination.nan_guard import NanGuard

HEAD = """<ir_version: 9, opset_import: ["" : 20]>
  g (int64[n, 6] ids, float[n, 6, 8] x, float[4, 8] table, float[8] g, float[8] b, float[8, 6] w,
     float[6, 6] mask, float[6, 6] low, float[6, 6] holes) => (float[n, 6, 6] y) <float zero = {0}>"""
CONSTANTS = "table g b w mask low=-3.4028235e38 holes=-inf"
GUARD = "s = Softmax <axis = -1> (l)  t = IsNaN(s)  y = Where(t, zero, s)"
EMBED = "e = Gather(table, ids)  h = LayerNormalization <epsilon = 1e-12> (e, g, b)"


@pytest.mark.parametrize(
    "logits",
    [
        f"{EMBED}  l = MatMul(h, w)",
        f"{EMBED}  m = MatMul(h, w)  l = Add(m, mask)",
        f"{EMBED}  m = MatMul(h, w)  l = Add(m, low)",
        f"{EMBED}  t0 = Transpose <perm = [0, 2, 1]> (h)  l = MatMul(h, t0)",
        "e = Gather(table, ids)  q = Tanh(e)  l = MatMul(q, w)",
    ],
)
def test_removes_the_guard_behind_embeddings(prove, logits):
    proof = prove(f"{HEAD} {{ {logits}  {GUARD} }}", NanGuard(), constants=CONSTANTS)
    assert "IsNaN" not in proof.ops
    assert proof.ops[-1] == "Softmax"


@pytest.mark.parametrize(
    "logits",
    [
        "l = MatMul(x, w)",
        "h = LayerNormalization(x, g, b)  l = MatMul(h, w)",
        "h = Tanh(x)  l = MatMul(h, w)",
        f"{EMBED}  m = MatMul(h, w)  l = Add(m, holes)",
        f"{EMBED}  m = MatMul(h, w)  k = Add(m, low)  l = Add(k, low)",
    ],
)
def test_keeps_the_guard_where_infinities_may_come(refusals, logits):
    assert refusals(f"{HEAD} {{ {logits}  {GUARD} }}", NanGuard(), CONSTANTS) == [
        "'l' may hold infinities for some input, which softmax to NaN"
    ]


def test_a_guard_that_works_is_kept_and_works(load, export, run_model):
    graph = load(f"{HEAD} {{ {EMBED}  m = MatMul(h, w)  l = Add(m, holes)  {GUARD} }}", CONSTANTS)
    NanGuard()(graph)
    feeds = {"ids": np.zeros((1, 6), np.int64), "x": np.zeros((1, 6, 8), np.float32)}
    (y,) = run_model(export(graph), feeds)
    assert (y == 0.0).all()


def test_a_guard_of_something_else_is_no_match(refusals):
    body = f"{EMBED}  l = MatMul(h, w)  t = IsNaN(l)  y = Where(t, zero, l)"
    assert refusals(f"{HEAD} {{ {body} }}", NanGuard(), CONSTANTS) == []


def test_bounds_hold_for_random_and_extreme_ids(load, export, run_model):
    body = f"""{EMBED}  l = MatMul(h, w)  k = Gelu(l)  a = Add(k, mask)  c = Mul(a, a)
        f = ReduceMean(c)  y = Add(f, mask)"""
    graph = load(f"{HEAD} {{ {body} }}", CONSTANTS)
    bounds = magnitude_bounds(graph)
    inner = [node.outputs[0] for node in graph.nodes]
    graph.outputs = inner
    rng = np.random.default_rng(0)
    for ids in (rng.integers(0, 4, (3, 6)), np.full((3, 6), 3)):
        feeds = {"ids": ids.astype(np.int64), "x": np.zeros((3, 6, 8), np.float32)}
        for tensor, value in zip(inner, run_model(export(graph), feeds), strict=True):
            if tensor.name in bounds:
                assert np.abs(value).max() <= bounds[tensor.name], tensor.name
    assert {"e", "h", "l", "k", "a", "c"} <= set(bounds)


def test_a_guard_that_float16_would_need_is_kept_for_float16(load):
    body = f"{EMBED}  m = MatMul(h, w)  l = Add(m, mask)  {GUARD}"
    constants = CONSTANTS.replace(" mask", " mask=60000")
    assert NanGuard(DType.FP32)(load(f"{HEAD} {{ {body} }}", constants)).rewritten == 1
    assert NanGuard(DType.BF16)(load(f"{HEAD} {{ {body} }}", constants)).rewritten == 1
    assert NanGuard(DType.FP16)(load(f"{HEAD} {{ {body} }}", CONSTANTS)).rewritten == 1
    high = constants.replace("=60000", "=65504")
    assert NanGuard(DType.FP16)(load(f"{HEAD} {{ {body} }}", high)).rewritten == 0


def test_a_mask_that_bfloat16_rounds_to_infinity_keeps_the_guard(load):
    body = f"{EMBED}  m = MatMul(h, w)  l = Add(m, low)  {GUARD}"
    assert NanGuard(DType.BF16)(load(f"{HEAD} {{ {body} }}", CONSTANTS)).rewritten == 0
