"""Faults in what joins products, sets types, makes operators, and lays values out."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass
from wpk.dtypes import Precision

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_BRANCHES = f"""{_H} g (float[2, 6, 5, 5] x, float[8, 6, 1, 1] wa, float[8, 6, 1, 1] wb,
    float[8] ba, float[8] bb) => (float[2, 8, 4, 4] y, float[2, 8, 4, 4] z)
    <float zero = {{0}}, float one = {{1}}, float half = {{0.5}}> {{
    a = Conv(x, wa, ba)  ra = FIRST  b = Conv(x, wb, bb)  rb = SECOND
    y = MaxPool<kernel_shape = [2, 2]>(ra)  z = AveragePool<kernel_shape = [2, 2]>(rb) }}"""
_HIDDEN = f"""{_H} g (float[2, 2] x) => (float[2, 2] y)
    <float zero = {{0}}, float one = {{1}}, float[2] lowest = {{-3e38, -3e38}}> {{
    seen = Greater(x, zero)  m = Cast<to = 1>(seen)  h = Sub(one, m)  p = Mul(h, lowest)
    y = Max(x, p) }}"""
_ENERGY = f"""{_H} g (float[2, 4, 32, 32] x) => (float[2, 4, 1, 1] y, float[2, 4, 1, 1] z)
    <float ten = {{10}}, float small = {{0.001}}, int64[2] axes = {{2, 3}}> {{
    t = Mul(x, ten)  s = Mul(t, t)  a = ReduceSum(s, axes)  y = Mul(a, small)  z = Sqrt(a) }}"""
_QKV = f"""{_H} g (float[2, 5, 8] x, float[8, 24] w) => (float[2, 5, 8] y)
    <int64[5] parts = {{2, 5, 3, 2, 4}}, int64 q = {{0}}, int64 k = {{1}}, int64 v = {{2}},
     int64[3] back = {{2, 5, 8}}> {{
    p = MatMul(x, w)  r = Reshape(p, parts)  t = Transpose<perm = [0, 2, 3, 1, 4]>(r)
    REST  u = Transpose<perm = [0, 1, 3, 2]>(b)  s = MatMul(a, u)  o = Softmax(s)  m = MatMul(o, c)
    n = Transpose<perm = [0, 2, 1, 3]>(m)  y = Reshape(n, back) }}"""
_GATHERED = "a = Gather<axis = 1>(t, q)  b = Gather<axis = 1>(t, k)  c = Gather<axis = 1>(t, v)"
_SPLIT = """a5, b5, c5 = Split<axis = 1>(t, ones)
    a = Squeeze(a5, first)  b = Squeeze(b5, first)  d = Squeeze(c5, first)  c = Relu(d)"""
_GROUPED = f"""{_H} g (float[2, 4, 5, 8] q, float[2, 2, 7, 8] k, float[2, 2, 7, 4] v,
    float[4, 1, 1] slopes) => (float[2, 4, 5, 4] y) <int64[1] two = {{2}},
    int64[5] wide = {{1, 2, 2, 1, 1}}, int64[4] keys = {{2, 4, 7, 8}}, int64[4] values = {{2, 4, 7, 4}}> {{
    k1 = Unsqueeze(k, two)  k2 = Expand(k1, wide)  ORDER
    v1 = Unsqueeze(v, two)  v2 = Expand(v1, wide)  v3 = Reshape(v2, values)
    k4 = Transpose<perm = [0, 1, 3, 2]>(k3)  s = MatMul(q, k4)  t = Mul(s, slopes)
    p = Softmax<axis = AXIS>(t)  y = MatMul(p, v3) }}"""
_MASKED = f"""{_H} g (int64[2, 5] m, float[2, 3, 5, 5] x) => (float[2, 3, 5, 5] y)
    <int64[4] wide = {{2, 1, 1, 5}}, float low = {{-9}}> {{
    c = Cast<to = 9>(m)  r = Reshape(c, wide)  y = Where(r, x, low) }}"""
_NEIGHBOURS = f"""{_H} g (float[2, 6, 8] x) => (float[2, 2, 8] y) <int64[2] i = {{INDEX}}> {{
    r = Sigmoid(x)  y = Gather<axis = 1>(r, i) }}"""
_HOISTED = f"""{_H} g (float[2, 6, 8] x, float[8, 6] w, float[6] c) => (float[6, 2, 1, 6] y)
    <float half = {{0.5}}, int64[4] parts = {{2, 6, 1, 6}}> {{
    p = MatMul(x, w)  r = Reshape(p, parts)  t = Transpose<perm = [3, 0, 2, 1]>(r)
    l = LeakyRelu<alpha = 0.3>(t)  s = Mul(l, c)  y = Softmax(s) }}"""
_FUSED = f"""{_H} g (float[2, 6, 6] x, float[2, 6, 6] z) => (float[2, 6, 6] y) {{
    l = LeakyRelu<alpha = 0.3>(x)  e = Exp(z)  y = Sub(e, l) }}"""
_SQUARE = f"""{_H} g (float[2, 3, 4, 4] x, float[4, 3, 1, 1] w, float[4, 4, 3, 3] v)
    => (float[2, 4, 4, 4] y, float[2, 64] z) {{
    a = Conv(x, w)  r = Relu(a)  y = Conv<pads = [1, 1, 1, 1]>(r, v)  z = Flatten(r) }}"""
_SURROUNDED = f"""{_H} g (float[2, 3, 4, 4] x, float[4, 3, 1, 1] w, float[4, 4, 3, 3] v)
    => (float[2, 4, 4, 4] y) <int64[8] pads = {{0, 0, 2, 0, 0, 0, 0, 2}}, float one = {{1}}> {{
    a = Conv(x, w)  r = Relu(a)  p = Pad(r, pads, one)  y = Conv(p, v) }}"""

FAULTS = (
    BrokenPass(
        "siblings get each other's part",
        "join-siblings",
        "products.join_siblings",
        "outputs = [one.output for one in members]",
        "outputs = [one.output for one in members][::-1]",
        _BRANCHES.replace("FIRST", "Relu(a)").replace("SECOND", "Relu(b)"),
        "wa wb ba bb",
    ),
    BrokenPass(
        "siblings get each other's bias",
        "join-siblings",
        "products.join_siblings",
        "zip(members, biases, strict=True)",
        "zip(members, biases[::-1], strict=True)",
        _BRANCHES.replace("FIRST", "Relu(a)").replace("SECOND", "Relu(b)"),
        "wa wb ba bb",
    ),
    BrokenPass(
        "a sibling without activation is limited, too",
        "join-siblings",
        "products.join_siblings",
        "-np.inf if node is None else 0.0",
        "0.0 if node is None else 0.0",
        _BRANCHES.replace("FIRST", "Relu(a)").replace("SECOND", "Identity(b)"),
        "wa wb ba bb",
    ),
    BrokenPass(
        "activations with other bounds are the same",
        "join-siblings",
        "products.siblings",
        "tuple(None if b is None else b.tobytes() for b in bounds)",
        "len(bounds)",
        _BRANCHES.replace("FIRST", "Clip(a, zero, one)").replace("SECOND", "Clip(b, zero, half)"),
        "wa wb ba bb",
    ),
    BrokenPass(
        "a constant beyond what 16 bits hold is no reason for 32",
        "set-precision",
        "precision.types",
        "if np.isfinite(rounded.astype(np.float32)):",
        "if not np.isnan(rounded.astype(np.float32)):",
        _HIDDEN,
        precision=Precision.FP16,
    ),
    BrokenPass(
        "long sums are stored in 16 bits",
        "set-precision",
        "precision.types",
        "names(lambda row: row.is_sensitive)",
        'names(lambda row: row.is_sensitive and row.name != "ReduceSum")',
        _ENERGY,
        precision=Precision.FP16,
    ),
    BrokenPass(
        "the part beside the wanted one is taken",
        "split-before-views",
        "fusion.split",
        "index[0] % size",
        "(index[0] + 1) % size",
        _QKV.replace("REST", _GATHERED),
        "w",
    ),
    BrokenPass(
        "every part begins at the beginning",
        "split-before-views",
        "fusion.split",
        "        begin += part\n",
        "",
        _QKV.replace("REST", _SPLIT).replace(
            "int64 q =", "int64[3] ones = {1, 1, 1}, int64[1] first = {1}, int64 q ="
        ),
        "w",
    ),
    BrokenPass(
        "repeated heads are taken for groups in whatever order",
        "grouped-heads",
        "fusion.grouped_heads",
        "if views.groups == (outer, group + time, *matrix):",
        "if views.groups[2:] == matrix:",
        _GROUPED.replace(
            "ORDER", "k7 = Transpose<perm = [0, 2, 1, 3, 4]>(k2)  k3 = Reshape(k7, keys)"
        )
        .replace("AXIS", "3")
        .replace("4] y)", "4] y, float[2, 2, 2, 7, 8] k2)"),
    ),
    BrokenPass(
        "the softmax goes along whatever axis",
        "grouped-heads",
        "fusion.grouped_heads",
        'softmax.attrs.get("axis", -1) not in (-1, _RANK - 1)',
        "False",
        _GROUPED.replace("ORDER", "k3 = Reshape(k2, keys)").replace("AXIS", "2"),
    ),
    BrokenPass(
        "a cast is made of the wrong integers",
        "views-before-casts",
        "fusion.views_before_casts",
        "editor.add(first.op, inputs, like=output, attrs=dict(first.attrs))",
        'editor.add("Not", [editor.add(first.op, inputs, like=output, attrs=dict(first.attrs))], like=output)',
        _MASKED,
    ),
    BrokenPass(
        "a range begins one element later",
        "range-gather",
        "movement.gathers.range_gather",
        '("begin", first), ("end", first + len(index))',
        '("begin", first + 1), ("end", first + 1 + len(index))',
        _NEIGHBOURS.replace("INDEX", "2, 3"),
    ),
    BrokenPass(
        "indices are taken for a range that they are not",
        "range-gather",
        "movement.gathers.range_gather",
        "if others != list(range(first + 1, first + len(index))):",
        "if first + len(index) > size:",
        _NEIGHBOURS.replace("INDEX", "2, 5"),
    ),
    BrokenPass(
        "a vector is moved over a transpose like a scalar",
        "hoist-over-views",
        "fusion.hoist",
        "len(tensors) != 1:",
        "sum(isinstance(t, gs.Variable) for t in tensors) != 1:",
        _HOISTED,
        "w c",
    ),
    BrokenPass(
        "attributes are not copied into an operator's body",
        "fuse-operators",
        "core.functions",
        "attrs = copy.copy(node.attrs)",
        "attrs = {k: v for k, v in node.attrs.items() if k != 'alpha'}",
        _FUSED,
    ),
    BrokenPass(
        "an operator is called with its operands in another order",
        "fuse-operators",
        "core.functions",
        "sources = [body.sources[key] for key in body.inputs]",
        "sources = [body.sources[key] for key in reversed(body.inputs)]",
        _FUSED,
    ),
    BrokenPass(
        "a body reads channels last in the wrong order",
        "channels-last",
        "layout.channels_last",
        'perms = {"perm": to_first(len(inner.shape))}',
        'perms = {"perm": to_last(len(inner.shape))}',
        _SQUARE,
        "w v",
    ),
    BrokenPass(
        "a copy in the model's order is made in the wrong order",
        "channels-last",
        "layout.channels_last",
        'perms = {"perm": to_first(len(tensor.shape))}',
        'perms = {"perm": to_last(len(tensor.shape))}',
        _SQUARE,
        "w v",
    ),
    BrokenPass(
        "padding of begins and ends is exchanged when axes are renamed",
        "channels-last",
        "layout.axes",
        ".reshape(2, dimensions)",
        ".reshape(2, dimensions)[::-1]",
        _SURROUNDED,
        "w v",
    ),
)
