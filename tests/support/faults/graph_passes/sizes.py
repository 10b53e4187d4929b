"""Faults in what is computed of sizes, and in what is repeated over a batch."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_SHAPED = f"""{_H} g (float[2, 4, 6] x) => (float[2, 4, 6] y)
    <int64 last = {{2}}, int64 four = {{4}}, int64 two = {{2}}> {{
    s = Shape(x)  n = Gather(s, last)  h = Div(n, four)  m = Mul(h, two)  a = Add(m, n)
    f = Cast<to = 1>(a)  y = Mul(x, f) }}"""
_REPEATED = f"""{_H} g (float[n, 3, 2] x, float[4, 2] w) => (float[n, 3, 2] y)
    <int64[1, 3] index = {{3, 0, 2}}, int64[1] three = {{3}}, int64[1] first = {{0}}> {{
    s = Shape(x)  b = Gather(s, first)  t = Concat<axis = 0>(b, three)  i = Expand(index, t)
    e = Gather(w, i)  y = Mul(x, e) }}"""
_COUNTED = f"""{_H} g (float[n, 3] x) => (float[n, 3] y)
    <float[1, 3] c = {{3, 0, 2}}, int64[1] three = {{3}}, int64 first = {{0}}> {{
    b = Shape<end = 1>(x)  t = Concat<axis = 0>(b, three)  e = Expand(c, t)
    s = CumSum(e, first)  y = Mul(x, s) }}"""

FAULTS = (
    BrokenPass(
        "the wrong dimension is picked from a shape",
        "shape-arithmetic",
        "fold.shape_arithmetic",
        "[data[pick] for pick in picks]",
        "[data[pick - 1] for pick in picks]",
        _SHAPED,
    ),
    BrokenPass(
        "sizes are divided and rounded up",
        "shape-arithmetic",
        "fold.shape_arithmetic",
        "lambda a, b: a // b",
        "lambda a, b: -(-a // b)",
        _SHAPED,
    ),
    BrokenPass(
        "sizes are added where they multiply",
        "shape-arithmetic",
        "fold.shape_arithmetic",
        "operator.mul",
        "operator.add",
        _SHAPED,
    ),
    BrokenPass(
        "a repeated index is looked up from the end",
        "repeated-constants",
        "fold.repeated_constants",
        "editor.add(node.op, rows, like=output, shape=shape, attrs=node.attrs)",
        "editor.add(node.op, [editor.constant('w', rows[0].values[::-1]), *rows[1:]], like=output,"
        " shape=shape, attrs=node.attrs)",
        _REPEATED,
        constants="w",
    ),
    BrokenPass(
        "a count along the batch is taken for one beside it",
        "repeated-constants",
        "fold.repeated_constants",
        "axis % count >= axes for axis in along",
        "axis % count >= 0 for axis in along",
        _COUNTED,
    ),
)
