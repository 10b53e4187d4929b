"""Faults in passes for forms that exporters write: windows, places of a batch, rows in between."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 8, opset_import: ["" : 18]>'
_WINDOWS = f"""{_H} g (float[2, 2, 2, 2, 2, 2] x) => (float[2, 2, 2, 2, 2, 2] y) {{
    r = Sigmoid(x)  y = Transpose<perm = [0, 3, 1, 5, 2, 4]>(r) }}"""
_ROW = f"""{_H} g (float[4] x) => (float[4] y)
    <int64[2] row = {{1, -1}}, int64[1] flat = {{-1}}> {{
    s = Softmax(x)  r = Reshape(s, row)  n = Neg(r)  y = Reshape(n, flat) }}"""
_MASKED = f"""{_H} g (float[4, 2, 3] x) => (float[4, 2, 3] y)
    <int64[4] there = {{2, 2, 2, 3}}, int64[3] back = {{4, 2, 3}},
     float[2, 1, 3] c = {{0.0, 1.0, 2.0, 4.0, 0.5, 3.0}}> {{
    n = Sigmoid(x)  r = Reshape(n, there)  m = Add(r, c)  t = Reshape(m, back)  y = Softmax(t) }}"""
_PICKED = f"""{_H} g (float[3, 7, 7] x, float[3, 7] m) => (float[3] y) <int64[3, 1] b = {{0, 1, 2}}> {{
    s = Sigmoid(x)  i = ArgMax<axis = 1>(m)  k = ArgMin<axis = 1>(m)
    j = Concat<axis = 1>(b, i, k)  y = GatherND(s, j) }}"""
_TURNED_PICKS = f"""{_H} g (float[n, 3, 4] x) => (float[2, n] y) <int64[2, 2] i = {{0, 3, 2, 1}}> {{
    s = Sigmoid(x)  t = Transpose<perm = [1, 2, 0]>(s)  y = GatherND(t, i) }}"""
_LOG_SUM = f"""{_H} g (float[3, 6] x) => (float[3, 1] y) <int64[1] a = {{1}}> {{ y = ReduceLogSumExp(x, a) }}"""

_PARTED = f"""{_H} g (float[n, 4, 4] x) => (float[n, 2, 4] y) {{
    t = Transpose<perm = [1, 0, 2]>(x)  a, b = Split<axis = 0, num_outputs = 2>(t)
    d = Sub(a, b)  y = Transpose<perm = [1, 0, 2]>(d) }}"""

_FOURIER = (
    f"""{_H.replace("18", "20")} g (float[2, 6, 1] x) => (float[2, 6, 2] y) {{ y = DFT(x) }}"""
)

FAULTS = (
    BrokenPass(
        "a transform turns the other way round",
        "fourier-products",
        "clean.definitions.fourier_products",
        "(1 if inverse else -1)",
        "(-1 if inverse else 1)",
        _FOURIER,
    ),
    BrokenPass(
        "parts of what is turned are given out backwards",
        "turned-splits",
        "movement.transposes.turned_splits",
        "zip(old, parts, strict=True)",
        "zip(old, parts[::-1], strict=True)",
        _PARTED,
    ),
    BrokenPass(
        "the second step of a transpose starts over",
        "transpose-parts",
        "movement.transposes.transpose_parts",
        "[first.index(axis) for axis in perm]",
        "[perm.index(axis) for axis in first]",
        _WINDOWS,
    ),
    BrokenPass(
        "what stands between two reshapes is forgotten",
        "reshapes-around",
        "movement.reshapes.reshapes_around",
        "editor.replace(match.last.outputs[0], tensor)",
        "editor.replace(match.last.outputs[0], match.source)",
        _ROW,
    ),
    BrokenPass(
        "masks of windows are repeated one by one, not for image after image",
        "reshapes-around",
        "movement.reshapes.reshapes_around",
        "np.broadcast_to(array.reshape(self.own), self.repeated)",
        "np.broadcast_to(array.reshape(self.own), self.repeated).swapaxes(0, 1)",
        _MASKED,
    ),
    BrokenPass(
        "places of a batch are joined in the wrong order",
        "batch-picks",
        "movement.gathers.batch_picks",
        'editor.add("Concat", parts, like=index',
        'editor.add("Concat", parts[::-1], like=index',
        _PICKED,
    ),
    BrokenPass(
        "columns are taken for rows where two dimensions become one",
        "batch-in-front",
        "movement.transposes.behind_joins",
        "np.ravel_multi_index(tuple(inside), sizes)",
        'np.ravel_multi_index(tuple(inside), sizes, order="F")',
        _TURNED_PICKS,
    ),
    BrokenPass(
        "the largest number is not added again",
        "defined-forms",
        "clean.definitions.defined_forms",
        'to.add("Add", to.add("Log", total), finite)',
        'to.add("Log", total)',
        _LOG_SUM,
    ),
)
