"""Faults in what recognises a function in its arithmetic, or writes one in another form."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass
from wpk.dtypes import Precision

_H = '<ir_version: 9, opset_import: ["" : 20]>'
_ROWS = "float[2, 5, 8] x"
_GELU = f"""{_H} g ({_ROWS}) => (float[2, 5, 8] y)
    <float half = {{0.5}}, float one = {{1}}, float k = {{FACTOR}}, float c = {{0.044715}}> {{
    q = Mul(x, x)  s = Mul(q, x)  d = Mul(s, c)  p = Add(x, d)  a = Mul(INNER, k)  e = FUNCTION(a)
    f = Add(e, one)  h = Mul(x, half)  y = Mul(h, f) }}"""
_NORMALISED = f"""{_H} g ({_ROWS}, float[8] g, float[8] b) => (float[2, 5, 8] y)
    <int64[1] last = {{-1}}, int64[1] axes = {{AXIS}}, float eps = {{0.01}}> {{
    m = ReduceMean(x, axes)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean(q, last)  e = Add(v, eps)
    r = Sqrt(e)  n = Div(d, r)  s = Mul(n, g)  y = Add(s, b) }}"""
_ROOT_MEAN_SQUARE = f"""{_H} g ({_ROWS}, float[8] g) => (float[2, 5, 8] y)
    <int64[1] last = {{-1}}, float eps = {{0.01}}, float power = {{POWER}}> {{
    q = Pow(x, power)  v = ReduceMean(q, last)  e = Add(v, eps)  r = Sqrt(e)  i = Reciprocal(r)
    n = Mul(x, i)  y = Mul(g, n) }}"""
_UNIT_ROWS = f"""{_H} g ({_ROWS}, float[8, 8] w) => (float[2, 5, 8] y)
    <int64[1] last = {{-1}}, float eps = {{1e-12}}> {{
    l = ReduceL2(x, last)  m = Clip(l, eps)  n = Div(x, m)  y = MatMul(n, w) }}"""
_ROTATED = f"""{_H} g (float[2, 5, 8] x, float[5, 8] c, float[5, 8] s) => (float[2, 5, 8] y)
    <int64[1] zero = {{0}}, int64[1] half = {{4}}, int64[1] end = {{8}}, int64[1] last = {{-1}}> {{
    a = Slice(x, zero, half, last)  b = Slice(x, half, end, last)  m = Neg(b)
    r = Concat<axis = -1>(TURNED)  p = Mul(x, c)  q = Mul(r, s)  y = Add(p, q) }}"""
_TOKENS = f"""{_H} g (float[2, 6, 8] z, float[5, 8] c, float[5, 8] s) => (float[2, 6, 8] y)
    <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] end = {{8}}, int64[1] rows = {{1}},
    int64[1] last = {{-1}}, int64[3] pairs = {{0, 0, 8}}> {{
    t = Slice(z, zero, one, rows)  x = Slice(z, one, end, rows)  a = Slice(x, zero, end, last, two)
    b = Slice(x, one, end, last, two)  m = Neg(b)  mu = Unsqueeze(m, last)  au = Unsqueeze(a, last)
    st = Concat<axis = -1>(mu, au)  r = Reshape(st, pairs)  p = Mul(x, c)  q = Mul(r, s)  o = Add(p, q)
    y = Concat<axis = 1>(t, o) }}"""
_PAIR = f"""{_H} g (float[2, 5, 8] x, float[5, 4] c, float[5, 4] s) => (float[2, 5, 8] y)
    <int64[1] zero = {{0}}, int64[1] half = {{4}}, int64[1] end = {{8}}, int64[1] last = {{-1}}> {{
    a = Slice(x, zero, half, last)  b = Slice(x, half, end, last)  ac = Mul(a, c)  bs = Mul(b, s)
    as = Mul(a, s)  bc = Mul(b, c)  u = Sub(ac, bs)  v = Add(as, bc)  y = Concat<axis = -1>(u, v) }}"""
_SWISH = f"""{_H} g ({_ROWS}) => (float[2, 5, 8] y)
    <float three = {{3}}, float zero = {{0}}, float top = {{TOP}}, float six = {{6}}> {{
    a = Add(x, three)  c = Clip(a, zero, top)  d = Div(c, six)  y = BEHIND }}"""
_LOGISTIC = f"""{_H} g ({_ROWS}) => (float[2, 5, 8] y)
    <float slope = {{SLOPE}}, float one = {{1}}, float n = {{UPPER}}> {{
    a = Mul(x, slope)  e = Exp(a)  s = Add(e, one)  y = Div(n, s) }}"""
_SHARES = f"""{_H} g (float[2, 6, 6] x) => (float[2, 6, 6] y) <int64[1] axes = {{1}}> {{
    m = ReduceMax(x, axes)  d = Sub(x, m)  e = Exp(d)  s = ReduceSum(e, axes)  y = Div(e, s) }}"""
_GUARDED = f"""{_H} g (int64[2, 6] ids, float[4, 8] table, float[8, 6] w)
    => (float[2, 6, 6] y) <float zero = {{0}}, float[6, 1] seen = {{1, 1, 0, 1, 1, 1}}> {{
    none = Log(seen)
    e = Gather(table, ids)  h = Tanh(e)  m = MatMul(h, w)  l = Add(m, none)
    s = Softmax(l)  t = IsNaN(s)  y = Where(t, zero, s) }}"""
_PLANE = f"""{_H} g (float[2, 6, 4, 4] x) => (float[2, 6] y) <int64[2] axes = {{2, 3}}> {{
    r = Sigmoid(x)  y = ReduceMax<keepdims = 0>(r, axes) }}"""
_ATTENTION = """<ir_version: 10, opset_import: ["" : 23]>
    g (float[2, 3, 5, 8] q, float[2, 3, 5, 8] k, float[2, 3, 5, 4] v) => (float[2, 3, 5, 4] y) {
    y = Attention<ATTRIBUTES>(q, k, v) }"""
_OLD = """<ir_version: 6, opset_import: ["" : 11]> g (float[2, 5, 6] x) => (float[2, 5, 6] y) {
    r = Relu(x)  y = Softmax(r) }"""
_PICKED = f"""{_H} g (float[2, 3] x) => (float[2, 3] y)
    <int64[1] all = {{-1}}, int64[2, 3] order = {{0, 1, 2, 3, 5, 4}}> {{
    r = Relu(x)  f = Reshape(r, all)  p = Gather(f, order)  y = Sigmoid(p) }}"""

FAULTS = (
    BrokenPass(
        "a function near to GELU is taken for it",
        "recognize-gelu",
        "recognise.gelu",
        "_RELATIVE = 1e-6",
        "_RELATIVE = 1e-2",
        _GELU.replace("FACTOR", "0.71").replace("FUNCTION", "Erf").replace("INNER", "x"),
    ),
    BrokenPass(
        "the approximation by tanh is taken for the exact form",
        "recognize-gelu",
        "recognise.gelu",
        '"Tanh": "tanh"',
        '"Tanh": "none"',
        _GELU.replace("FACTOR", "0.7978845608").replace("FUNCTION", "Tanh").replace("INNER", "p"),
    ),
    BrokenPass(
        "a normalisation's epsilon becomes the default",
        "recognize-layer-norm",
        "recognise.layer_norm",
        "match.x, match.axes, match.epsilon, gamma, beta, last",
        "match.x, match.axes, 1e-5, gamma, beta, last",
        _NORMALISED.replace("AXIS", "-1"),
        "g b",
    ),
    BrokenPass(
        "the bias behind a normalisation is dropped",
        "recognize-layer-norm",
        "recognise.layer_norm",
        "match.epsilon, gamma, beta, last",
        "match.epsilon, gamma, None, last",
        _NORMALISED.replace("AXIS", "-1"),
        "g b",
    ),
    BrokenPass(
        "the mean may go over other axes than the variance",
        "recognize-layer-norm",
        "recognise.layer_norm",
        'if reduced_axes(mean) != found.axes or not mean.attrs.get("keepdims", 1):',
        'if not mean.attrs.get("keepdims", 1):',
        _NORMALISED.replace("AXIS", "1"),
        "g b",
    ),
    BrokenPass(
        "the scale behind a root-mean-square normalisation is dropped",
        "recognize-rms-norm",
        "recognise.rms_norm",
        "match.epsilon, gamma, None, last",
        "match.epsilon, None, None, last",
        _ROOT_MEAN_SQUARE.replace("POWER", "2"),
        "g",
    ),
    BrokenPass(
        "another power than the square is taken for it",
        "recognize-rms-norm",
        "recognise.mean_square",
        "uniform(square.inputs[1]) != 2.0",
        "uniform(square.inputs[1]) is None",
        _ROOT_MEAN_SQUARE.replace("POWER", "4"),
        "g",
    ),
    BrokenPass(
        "rows get the length of their root mean square",
        "recognize-unit-rows",
        "recognise.unit_rows",
        "np.full(shape, count**-0.5)",
        "np.ones(shape)",
        _UNIT_ROWS,
        "w",
        Precision.FP16,
    ),
    BrokenPass(
        "a rotation turns the other way",
        "rotary-halves",
        "recognise.rotary",
        "_stacked(editor, negative, cos1, axis)",
        "_stacked(editor, sin0, cos1, axis)",
        _ROTATED.replace("TURNED", "m, a"),
    ),
    BrokenPass(
        "cosines and sines of the second result change places",
        "rotary-halves",
        "recognise.rotary",
        "((cos0, cos1), (sin0, sin1))",
        "((cos0, sin1), (sin0, cos1))",
        _PAIR,
    ),
    BrokenPass(
        "tokens that are not rotated vanish",
        "rotary-halves",
        "recognise.rotary",
        "_for_tokens(editor, match, factor.tensor, of_tokens)",
        "_for_tokens(editor, match, factor.tensor, 0.0)",
        _TOKENS,
        "c s",
    ),
    BrokenPass(
        "what is made of the wrong halves is taken for a rotation",
        "rotary-halves",
        "recognise.turned",
        "if ranges != [(0, size // 2), (size // 2, size)]:",
        "if None in ranges:",
        _ROTATED.replace("TURNED", "m, b"),
    ),
    BrokenPass(
        "the slope of a hard sigmoid becomes the default",
        "recognize-hard-swish",
        "recognise.hard_swish",
        '{"alpha": _ALPHA, "beta": _BETA}',
        '{"beta": _BETA}',
        _SWISH.replace("TOP", "6").replace("BEHIND", "Identity(d)"),
    ),
    BrokenPass(
        "where a hard swish ends is not looked at",
        "recognize-hard-swish",
        "recognise.hard_swish",
        " and close(top, 1.0)",
        "",
        _SWISH.replace("TOP", "4").replace("BEHIND", "Mul(x, d)"),
    ),
    BrokenPass(
        "a steeper logistic function is taken for the plain one",
        "recognize-sigmoid",
        "recognise.sigmoid",
        "{(1, 0): -1.0}, 0.0",
        "{(1, 0): -1.0}, 0.5",
        _LOGISTIC.replace("SLOPE", "-1.25").replace("UPPER", "1"),
    ),
    BrokenPass(
        "a numerator that is a number is dropped",
        "recognize-sigmoid",
        "recognise.sigmoid",
        "uniform(node.inputs[0]) != 1.0",
        "uniform(node.inputs[0]) is None",
        _LOGISTIC.replace("SLOPE", "-1").replace("UPPER", "1.5"),
    ),
    BrokenPass(
        "shares are always taken along the last axis",
        "recognize-softmax",
        "recognise.softmax",
        '{"axis": axes[0]}',
        '{"axis": -1}',
        _SHARES,
    ),
    BrokenPass(
        "a guard goes though a row may be empty",
        "nan-guard",
        "clean.elimination.nan_guard",
        "if logits.name not in bounds:",
        "if logits.name not in bounds and not softmax.inputs:",
        _GUARDED,
        "table w",
    ),
    BrokenPass(
        "the largest of a plane becomes its mean",
        "global-pooling",
        "recognise.global_pooling",
        '"ReduceMax": "GlobalMaxPool"',
        '"ReduceMax": "GlobalAveragePool"',
        _PLANE,
    ),
    BrokenPass(
        "the scale of scores is not rooted",
        "attention-parts",
        "clean.definitions.attention_parts",
        "1.0 / sqrt(size)",
        "1.0 / size",
        _ATTENTION.replace("<ATTRIBUTES>", ""),
    ),
    BrokenPass(
        "the scale of scores is ignored",
        "attention-parts",
        "clean.definitions.attention_parts",
        'float(self.node.attrs.get("scale", 1.0 / sqrt(size)))',
        "1.0 / sqrt(size)",
        _ATTENTION.replace("ATTRIBUTES", "scale = 0.4"),
    ),
    BrokenPass(
        "queries see one key of the future",
        "attention-parts",
        "clean.definitions.attention_parts",
        "np.triu(unseen, 1)",
        "np.triu(unseen, 2)",
        _ATTENTION.replace("ATTRIBUTES", "is_causal = 1"),
    ),
    BrokenPass(
        "scores are not brought back behind their cap",
        "attention-parts",
        "clean.definitions.attention_parts",
        'scores = self.add("Mul", scores, self._number(cap))',
        "pass",
        _ATTENTION.replace("ATTRIBUTES", "softcap = 2.0"),
    ),
    BrokenPass(
        "an old softmax is along the last axis by default",
        "modern-forms",
        "clean.definitions.modern_forms",
        'int(node.attrs.get("axis", 1))',
        'int(node.attrs.get("axis", -1))',
        _OLD,
    ),
    BrokenPass(
        "an index that permutes is taken for the identity",
        "identity-gather",
        "movement.gathers.counting",
        "(numbers.reshape(-1) != start + np.array(steps, np.int64) @ places).any()",
        "(numbers.reshape(-1) != start + np.array(steps, np.int64) @ places).all()",
        _PICKED,
    ),
)
