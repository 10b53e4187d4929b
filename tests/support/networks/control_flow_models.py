"""Models whose control flow depends on data: what their bodies do has kernels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from support.networks.fallback_models import text_model
from wpk.engine import random_inputs
from wpk.plan import Plan

IF = """g (float[3, 5] x, bool c) => (float[3, 5] y, float[7] z)
    <float[5] w = {1, -2, 3, -4, 5}, float[7] v = {1, 2, 3, 4, 5, 6, 7}>
    { a = Relu (x)
      y, z0 = If (c) <
        then_branch = t () => (float[3, 5] p, float[7] q) { p = Add (a, w)  q = Neg (v) },
        else_branch = e () => (float[3, 5] r, float[7] s) { m = Mul (a, x)  r = Tanh (m)  s = Exp (v) }>
      z = Abs (z0) }"""
"""Two outputs; a branch reads an input of the model, a computed value and constants from outside."""

BRANCHES = """g (float[2, 3] x, bool c) => (float[2, 3] y)
    { y = If (c) <then_branch = t () => (float[2, 3] p) { p = Exp (x) },
                  else_branch = e () => (float[2, 3] q) { q = Neg (x) }> }"""
"""One node, whose branches are one each."""

LOOP = """g (float[2, 5] x, int64 m, float[1] stop) => (float[2, 5] y, float[1] n)
    <float one = {1.0}, bool yes = {1}>
    { a = Neg (x)
      y0, n = Loop (m, yes, a, stop) <body = b (int64 i, bool k, float[2, 5] v, float[1] u) =>
        (bool d, float[2, 5] w, float[1] t)
        { t = Sub (u, one)  s = ReduceSum<keepdims = 0> (t)  zero = Sub (one, one)  d = Greater (s, zero)
          h = Add (v, x)  f = Cast<to = 1> (i)  w0 = Mul (h, f)  w = Sub (w0, v) }>
      y = Abs (y0) }"""
"""Ends after m turns, or where a state has counted to 0; reads its turn's number and values from outside."""

SCAN = """g (float[6, 5] x, float[5] s) => (float[5] y, float[6, 5] z)
    <float[5] w = {0.5, 0.25, 1, 2, 0.125}>
    { y, z0 = Scan<num_scan_inputs = 1, scan_input_directions = [1], body = b (float[5] v, float[5] p) =>
        (float[5] o, float[5] q) { u = Mul (v, w)  o = Add (u, p)  q = Sub (o, v) }> (s, x)
      z = Neg (z0) }"""
"""Its number of turns is known; it is driven where it is not unrolled."""

NESTED = """g (float[2, 3] x, int64 m, bool c) => (float[2, 3] y)
    { a = Neg (x)
      y = Loop (m, , a) <body = b (int64 i, bool k, float[2, 3] v) => (bool d, float[2, 3] w)
        { d = Identity (k)
          w = If (c) <then_branch = t () => (float[2, 3] p) { p = Add (v, x) },
                      else_branch = e () => (float[2, 3] q) { q = Mul (v, a) }> }> }"""
"""An If within a Loop, whose branches read from the body and from outside of it."""

COLLECT = """g (float[2, 5] x, float stop) => (float[2, 5] y, float[r, 2, 5] z, float[q] s)
    <int64 m = {20}>
    { a = Abs (x)
      y0, z, s = Loop (m, , a) <body = b (int64 i, bool k, float[2, 5] v) =>
        (bool d, float[2, 5] w, float[2, 5] p, float t)
        { w = Add (v, a)  p = Mul (w, x)  t = ReduceSum<keepdims = 0> (w)  d = Less (t, stop) }>
      y = Neg (y0) }"""
"""Ends after 20 turns, or where a sum is large: a run decides how long z and s are."""

COUNTED = """g (float[2, 5] x) => (float[2, 5] y, float[9, 2, 5] z)
    <int64 m = {9}, bool yes = {1}>
    { a = Tanh (x)
      y, p = Loop (m, yes, a) <body = b (int64 i, bool k, float[2, 5] v) => (bool d, float[2, 5] w, float[2, 5] q)
        { d = Identity (k)  h = Mul (v, x)  t = Tanh (h)  w = Sub (a, t)  f = Cast<to = 1> (i)  q = Mul (w, f) }>
      z = Abs (p) }"""
"""What it collects is as long as its constant number of turns, so a kernel reads it."""

LENGTHS = """g (float[2, 5] x, bool c) => (float[r, 5] y)
    { a = Relu (x)
      y = If (c) <
        then_branch = t () => (float[2, 5] p) { p = Exp (a) },
        else_branch = e () => (float[4, 5] q) { m = Mul (x, a)  q = Concat<axis = 0> (m, x) }> }"""
"""Its branches give different shapes."""

FREE_IF = """g (float[n, 3] x, bool c) => (float[n, 3] y)
    { a = Relu (x)
      y0 = If (c) <then_branch = t () => (float[n, 3] p) { p = Exp (a) },
                   else_branch = e () => (float[n, 3] q) { q = Mul (x, a) }>
      y = Neg (y0) }"""

FREE_LOOP = """g (float[n, 3] x, int64 m) => (float[n, 3] y, float[t, n, 3] z)
    { a = Neg (x)
      y, z = Loop (m, , a) <body = b (int64 i, bool k, float[n, 3] v) => (bool d, float[n, 3] w, float[n, 3] p)
        { d = Identity (k)  w = Add (v, x)  p = Mul (w, v) }> }"""
"""A free batch in the state and in what is collected."""

FREE_SCAN = """g (float[l, 2, 5] x, float[2, 5] s) => (float[2, 5] y, float[l, 2, 5] z)
    <float[5] w = {0.5, 0.25, 1, 2, 0.125}>
    { y, z0 = Scan<num_scan_inputs = 1, scan_output_directions = [1], body = b (float[2, 5] v, float[2, 5] p) =>
        (float[2, 5] o, float[2, 5] q) { u = Mul (v, w)  o = Add (u, p)  q = Sub (o, v) }> (s, x)
      z = Neg (z0) }"""
"""A sequence of any length, whose results stand in the other order."""

AXES = """g (float[5, 2] s, float[5, 6, 2] x, float[3, 6] u) => (float[5, 2] y, float[5, 2, 6] z, float[3, 6] r)
    { a = Relu (x)
      y, z0, r = Scan<num_scan_inputs = 2, scan_input_axes = [1, -1], scan_input_directions = [0, 1],
        scan_output_axes = [-1, 1], scan_output_directions = [1, 0],
        body = b (float[5, 2] v, float[5, 2] p, float[3] t) => (float[5, 2] o, float[5, 2] q, float[3] e)
        { h = Add (v, p)  o = Tanh (h)  q = Sub (o, p)  e = Exp (t) }> (s, a, u)
      z = Neg (z0) }"""
"""Cuts and collects along other axes than the first, in both directions."""

_TEXTS = {
    "if": IF,
    "loop": LOOP,
    "scan": SCAN,
    "nested": NESTED,
    "axes": AXES,
    "collect": COLLECT,
    "counted": COUNTED,
    "lengths": LENGTHS,
    "free if": FREE_IF,
    "free loop": FREE_LOOP,
    "free scan": FREE_SCAN,
}

KEPT = ("select-conditionals", "unroll-loops")
"""Passes that take control flow away; they are skipped where it is to be driven."""

MODELS = {name: (lambda text=text: text_model(text)) for name, text in _TEXTS.items()}

DRAWN = {
    "if": [{"c": True}, {"c": False}],
    "loop": [
        {"m": turns, "stop": [stop]}
        for turns, stop in ((0, 9.0), (1, 9.0), (4, 9.0), (9, 3.0), (9, -1.0))
    ],
    "scan": [{}],
    "nested": [{"m": 3, "c": True}, {"m": 2, "c": False}, {"m": 0, "c": True}],
    "axes": [{}],
    "collect": [{"stop": stop} for stop in (1e9, 0.0, 60.0, 150.0)],
    "counted": [{}],
    "lengths": [{"c": True}, {"c": False}],
    "free if": [{"c": True, "n": 7}, {"c": False, "n": 1}],
    "free loop": [{"m": 2, "n": 7}, {"m": 19, "n": 1}],
    "free scan": [{"l": 6}, {"l": 1}, {"l": 9}],
}
"""What decides the way that is taken, each way at least once: inputs, and sizes of free dimensions."""


def drawn(plan: Plan, seed: int, way: Mapping[str, Any]) -> dict[str, Any]:
    """Random inputs that take a way."""
    dims = {name: size for name, size in way.items() if name in plan.free}
    inputs = dict(random_inputs(plan, seed, dims))
    given = {name: value for name, value in way.items() if name in inputs}
    return inputs | {name: np.asarray(given[name], inputs[name].dtype) for name in given}
