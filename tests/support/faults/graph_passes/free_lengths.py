"""Faults in what makes room for free lengths: of sequences, and of batches beside them."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_LOOKED_UP = f"""{_H} g (float[2, n, 3] x, float[9, 3] w) => (float[2, n, 3] y)
    <int64[1, 9] i = {{8, 0, 0, 3, 1, 5, 2, 7, 4}}, int64[1] zero = {{0}}, int64[1] one = {{1}}> {{
    n = Shape<start = 1, end = 2>(x)  p = Slice(i, zero, n, one)  r = Gather(w, p)  y = Add(x, r) }}"""
_SPREAD = (
    f"""{_H} g (float[b, s, 3] x, float[b, 1, 3] z) => (float[b, s, 3] y) {{ y = Add(x, z) }}"""
)
_MASK = f"""{_H} g (float[b, 1, s, s] x) => (float[b, 1, s, s] y)
    <int64 zero = {{0}}, int64 one = {{1}}, int64[4] shape = {{1, 1, -1, 1}}, float nought = {{0}},
    float below = {{-9}}> {{
    k = Shape<start = 3>(x)  n = Squeeze(k)  i = Range(zero, n, one)  q = Reshape(i, shape)
    t = GreaterOrEqual(q, one)  m = Greater(x, below)  a = And(t, m)  y = Where(a, x, nought) }}"""
_TURNED = f"""{_H} g (float[b, 2, s, 4] x) => (float[b, 2, 4, s] y)
    <int64[1] open = {{-1}}, int64[1] two = {{2}}, int64[1] four = {{4}}, int64[1] wide = {{8}}> {{
    s = Shape<start = 2, end = 3>(x)  b = Shape<start = 0, end = 1>(x)
    first = Concat<axis = 0>(open, s, wide)  last = Concat<axis = 0>(b, two, four, s)
    m = Reshape(x, first)  t = Transpose<perm = [0, 2, 1]>(m)  y = Reshape(t, last) }}"""

FAULTS = (
    BrokenPass(
        "rows that were looked up are taken from the end",
        "free-rows",
        "movement.gathers.free_rows",
        'editor.constant(f"{output.name}_rows", match.whole)',
        'editor.constant(f"{output.name}_rows", np.flip(match.whole, axis))',
        _LOOKED_UP,
        constants="w",
    ),
    BrokenPass(
        "what is repeated changes its sign",
        "spread-rows",
        "movement.repeats.spread_rows",
        'editor.add("Expand", [given, target], like=given, shape=match.shape)',
        'editor.add("Expand", [editor.add("Neg", [given], like=given), target], like=given, shape=match.shape)',
        _SPREAD,
    ),
    BrokenPass(
        "a test that some numbers fail is left out",
        "certain-masks",
        "fold.certain_masks",
        "count.start >= least[0]",
        "count.start <= least[0]",
        _MASK,
    ),
    BrokenPass(
        "matrices of another width are turned as if they were the model's",
        "merged-transpose",
        "movement.transposes.merged_transpose",
        "merged[1:] == own[-2:] and parted == turned",
        "parted == turned",
        _TURNED,
    ),
)
