"""Models whose control flow depends on data: what their bodies do has kernels."""

from support.networks.fallback_models import text_model

IF = """g (float[3, 5] x, bool c) => (float[3, 5] y, float[7] z)
    <float[5] w = {1, -2, 3, -4, 5}, float[7] v = {1, 2, 3, 4, 5, 6, 7}>
    { a = Relu (x)
      y, z0 = If (c) <
        then_branch = t () => (float[3, 5] p, float[7] q) { p = Add (a, w)  q = Neg (v) },
        else_branch = e () => (float[3, 5] r, float[7] s) { m = Mul (a, x)  r = Tanh (m)  s = Exp (v) }>
      z = Abs (z0) }"""
"""Two outputs; a branch reads an input of the model, a computed value and constants from outside."""

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

MODELS = {
    name: (lambda text=text: text_model(text))
    for name, text in {"if": IF, "loop": LOOP, "scan": SCAN, "nested": NESTED}.items()
}

DRAWN = {
    "if": [{"c": True}, {"c": False}],
    "loop": [
        {"m": turns, "stop": [stop]}
        for turns, stop in ((0, 9.0), (1, 9.0), (4, 9.0), (9, 3.0), (9, -1.0))
    ],
    "scan": [{}],
    "nested": [{"m": 3, "c": True}, {"m": 2, "c": False}, {"m": 0, "c": True}],
}
"""What decides the way that is taken, each way at least once."""
