"""Loops as exporters write them: scripted functions of torch 2.14, and recurrences as pairs of Scans.

The texts are those that `torch.onnx.export` wrote of `torch.jit.script` modules, with shorter names.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from support.networks.fallback_models import text_model

_GREEDY = """g (float[1, 16] h, int64 limit, float[24, 16] table, float[16, 32] zw, float[16] zb, float[16, 32] nw,
       float[16] nb, float[24, 16] ow, float[24] ob) => (int64[d0, d1] tokens, float[l0, l1] last) {
    most = Constant<value = int64 {9223372036854775807}> ()  none = Constant<value = int64 {0}> ()
    no = Constant<value = bool {0}> ()  first = Constant<value = int64[1] {1}> ()
    empty = SequenceEmpty<dtype = 7> ()  c4 = Constant<value = int64 {0}> ()
    less = Less (c4, limit)  cast = Cast<to = 9> (less)
    begins = If (cast) <then_branch = s0 () => (bool c5) { c5 = Constant<value = bool {1}> () },
                        else_branch = s1 () => (bool c6) { c6 = Identity (no) }>
    last, n, token, list = Loop (most, begins, h, none, first, empty) <body = s2
        (int64 i, bool cond, float[1, 16] hi, int64 ni, int64[1] ti, seq(int64[?]) si) =>
        (bool goes, float[e0, e1] ho, int64 no1, int64[e2] to, seq(int64[?]) so) {
        row = Gather (table, ti)  both = Concat<axis = 1> (row, hi)
        zg = Gemm<alpha = 1.0, beta = 1.0, transB = 1> (both, zw, zb)  z = Sigmoid (zg)
        zn = Neg (z)  one = Constant<value = float {1.0}> ()  rest = Add (zn, one)  old = Mul (rest, hi)
        ng = Gemm<alpha = 1.0, beta = 1.0, transB = 1> (both, nw, nb)  nt = Tanh (ng)  new = Mul (z, nt)
        ho = Add (old, new)  out = Gemm<alpha = 1.0, beta = 1.0, transB = 1> (ho, ow, ob)
        to = ArgMax<axis = 1, keepdims = 0, select_last_index = 0> (out)  so = SequenceInsert (si, to)
        step = Constant<value = int64 {1}> ()  no1 = Add (ni, step)  fewer = Less (no1, limit)
        go = Cast<to = 9> (fewer)
        goes = If (go) <then_branch = s3 () => (bool differs) {
                pick = Gather<axis = 0> (to, none)  end = Constant<value = int64 {0}> ()
                is_end = Equal (pick, end)  differs = Not (is_end) },
            else_branch = s4 () => (bool stop) { stop = Identity (no) }> }>
    tokens = ConcatFromSequence<axis = 0, new_axis = 1> (list) }"""
"""``while n < limit and bool(token[0] != 0)``: a gated cell, argmax, and the tokens in a list."""

_GATED = """g (float[length, 2, 5] x, float[2, 8] h, float[8, 5] aw, float[8] ab, float[8, 8] bw) =>
       (float[d0, d1, d2] ys, float[l0, l1] last) {
    yes = Constant<value = bool {1}> ()  empty = SequenceEmpty<dtype = 1> ()
    shape = Shape (x)  c1 = Constant<value = int64 {0}> ()  count = Gather<axis = 0> (shape, c1)
    last, list = Loop (count, yes, h, empty) <body = s0
        (int64 i, bool cond, float[2, 8] hi, seq(float[?, ?]) si) =>
        (bool goes, float[e0, e1] ho, seq(float[?, ?]) so) {
        row = Gather<axis = 0> (x, i)  ag = Gemm<alpha = 1.0, beta = 1.0, transB = 1> (row, aw, ab)
        bm = MatMul (hi, bw)  sum = Add (ag, bm)  g = Sigmoid (sum)
        mean = ReduceMean<keepdims = 0> (g)  half = Constant<value = float {0.5}> ()
        more = Greater (mean, half)  cast = Cast<to = 9> (more)
        ho = If (cast) <then_branch = s1 () => (float[f0, f1] p) { m = Mul (g, hi)  p = Tanh (m) },
                        else_branch = s2 () => (float[f2, f3] q) { q = Sub (hi, g) }>
        so = SequenceInsert (si, ho)  goes = Identity (yes) }>
    ys = ConcatFromSequence<axis = 0, new_axis = 1> (list) }"""
"""``for i in range(x.size(0))`` of any length, with an ``if`` that a gate decides, and the states in a list."""

_CELL = """(float[2, 8] v, float[2, 5] p) => (float[2, 8] o, float[2, 8] q)
        { a = MatMul (p, aw)  b = MatMul (v, bw)  c = Add (a, b)  d = Add (c, ab)  o = Tanh (d)  q = Identity (o) }"""

_BOTH_WAYS = f"""g (float[length, 2, 5] x, float[2, 8] h, float[5, 8] aw, float[8] ab, float[8, 8] bw) =>
       (float[length, 2, 16] ys, float[2, 8] first, float[2, 8] last) {{
    last, there = Scan<num_scan_inputs = 1, body = f {_CELL}> (h, x)
    first, back = Scan<num_scan_inputs = 1, scan_input_directions = [1], scan_output_directions = [1],
        body = b {_CELL}> (h, x)
    ys = Concat<axis = 2> (there, back) }}"""
"""A recurrent layer of both directions over a sequence of any length."""

TEXTS = {"greedy": _GREEDY, "gated": _GATED, "both ways": _BOTH_WAYS}

GIVEN: Mapping[str, tuple[str, ...]] = {
    "greedy": ("h", "limit"),
    "gated": ("x", "h"),
    "both ways": ("x", "h"),
}
"""What a run gives; the other inputs of the texts are weights."""


def scripted_model(name: str) -> onnx.ModelProto:
    """A model whose weights a seed draws."""
    model = text_model(TEXTS[name])
    rng = np.random.default_rng(3)
    for info in [each for each in model.graph.input if each.name not in GIVEN[name]]:
        shape = [each.dim_value for each in info.type.tensor_type.shape.dim]
        weight = rng.standard_normal(shape, np.float32) * np.float32(2 / shape[-1] ** 0.5)
        model.graph.initializer.append(numpy_helper.from_array(weight, info.name))
        model.graph.input.remove(info)
    return model


WAYS: Mapping[str, tuple[tuple[int, int], ...]] = {
    "greedy": ((0, 12), (14, 20), (3, 9)),
    "gated": ((0, 1), (1, 7), (2, 12)),
    "both ways": ((0, 1), (1, 7), (2, 12)),
}
"""Seeds and lengths, at most, of runs: the decoder's end at a token, or there."""


def drawn_way(name: str, seed: int, size: int) -> dict[str, NDArray[np.generic]]:
    """Inputs of a run of a length."""
    rng = np.random.default_rng(seed)
    if name == "greedy":
        return {"h": rng.standard_normal((1, 16)).astype(np.float32), "limit": np.asarray(size)}
    x, h = rng.standard_normal((size, 2, 5), np.float32), rng.standard_normal((2, 8), np.float32)
    return {"x": x, "h": h}
