"""Faults in what changes the weights of linear operators."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass
from wpk.dtypes import Precision

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_IMAGE = "float[2, 6, 6, 6] x"
_NORM = "float[8] g, float[8] b, float[8] m, float[8] v"
_NORMED = f"""{_H} g (float[n, 6, 6, 6] x, float[8, 6, 3, 3] w, {_NORM}) => (float[n, 8, 4, 4] y) {{
    c = Conv(x, w)  y = BatchNormalization<epsilon = 0.01>(c, g, b, m, v) }}"""
_BEFORE = f"""{_H} g (float[2, 8, 6, 6] x, {_NORM}, float[4, 4, 3, 3] w) => (float[2, 4, h, h] y) {{
    r = Relu(x)  n = BatchNormalization(r, g, b, m, v)  y = Conv<group = 2PADS>(n, w) }}"""
_ALONE = f"""{_H} g (float[2, 8, 8, 8] x, {_NORM}) => (float[2, 8, 8, 8] y) {{
    n = BatchNormalization(x, g, b, m, v)  y = Relu(n) }}"""
_VECTORS = "float[6, 1, 1] s, float[6, 1, 1] t"
_BEHIND = f"""{_H} g ({_IMAGE}, float[6, 6, 1, 1] w, float[6] b, {_VECTORS}) => (float[2, 6, 6, 6] y) {{
    c = Conv(x, w, b)  a = Mul(c, s)  y = Sub(t, a) }}"""
_DIVIDED = f"""{_H} g ({_IMAGE}, float[6, 6, 1, 1] w, float[6, 1, 1] vs) => (float[2, 6, 6, 6] y) {{
    c = Conv(x, w)  y = Div(c, vs) }}"""
_GEMM = f"""{_H} g (float[5, 6] x, float[6, 6] w, float[6] b, float[6] s) => (float[5, 6] y) {{
    p = Gemm<ATTRIBUTES>(x, w, b)  y = Mul(p, s) }}"""
_GEMM_BEHIND = f"""{_H} g (float[5, 6] x, float[6, 6] w, float[6] s, float[6] t) => (float[5, 6] y) {{
    r = Relu(x)  m = Mul(r, s)  a = Add(m, t)  y = Gemm<alpha = 0.5>(a, w) }}"""
_CONV_BEHIND = f"""{_H} g ({_IMAGE}, float[6, 6, 3, 3] w, {_VECTORS}) => (float[2, 6, 4, 4] y) {{
    r = Relu(x)  a = Add(r, t)  y = Conv(a, w) }}"""
_ROWS = f"""{_H} g (float[2, 5, 6] x, float[6, 6] w, float[6] b, float[6] s) => (float[2, 5, 6] y) {{
    p = MatMul(x, w)  a = Add(p, b)  y = Mul(a, s) }}"""
_HEADS = f"""{_H} g (float[1, 6, 8] x, float[8, 8] w, float[8] b) => (float[1, 2, 6, 4] y)
    <int64[4] heads = {{1, 6, 2, 4}}, float three = {{3}}> {{
    m = MatMul(x, w)  a = Add(m, b)  h = Reshape(a, heads)  t = Transpose<perm = [0, 2, 1, 3]>(h)
    z = Div(t, three)  y = BEHIND }}"""
_FACTORS = f"""{_H} g (float[2, 5, 6] a, float[2, 6, 5] b) => (float[2, 5, 5] y)
    <float s = {{0.5}}, float t = {{3}}> {{
    p = Mul(a, s)  q = Mul(b, t)  y = MatMul(p, q) }}"""
_TWO_SIZED = f"""{_H} g (float[2, 3, 6] x, float[6, 6] w, float[6] b) => (float[2, 3, 6] y)
    <int64[2] rows = {{6, 6}}, int64[3] back = {{2, 3, 6}}> {{
    f = Reshape(x, rows)  p = Gemm<alpha = 0.9, beta = 0.5, transB = 1>(f, w, b)
    y = Reshape(p, back) }}"""
_SHUFFLED = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[1, 6, 5, 4] x, float[3, 6, 1, 1] u, float[3, 6, 1, 1] w, float[4, 6, 1, 1] v) => (float[1, 4, 5, 4] y)
<int64[5] apart = {1, 2, 3, 5, 4}, int64[4] whole = {1, 6, 5, 4}> {
    a = Conv (x, u)
    p = Relu (a)
    b = Conv (x, w)
    q = Sigmoid (b)
    c = Concat <axis = 1> (p, q)
    s = Reshape (c, apart)
    t = Transpose <perm = [0, 2, 1, 3, 4]> (s)
    r = Reshape (t, whole)
    y = Conv (r, v)
}"""
_BRANCHES = f"""{_H} g (float[2, 6, 6, 6] x, float[6, 6, 3, 3] w, float[6, 6, 1, 1] v) => (float[2, 6, 6, 6] y) {{
    p = Conv<pads = [1, 1, 1, 1]>(x, w)  q = Conv(x, v)  s = Add(p, q)  y = Relu(s) }}"""
_WHOLE = f"""{_H} g (float[1, 4, 512, 512] x) => (float[1, 4, 512, 512] y)
    <int64[3] rows = {{1, 1, 1048576}}, int64[4] back = {{1, 4, 512, 512}}, float[1] s = {{2}}, float[1] b = {{1}}> {{
    e = Sigmoid(x)  r = Reshape(e, rows)  i = InstanceNormalization(r, s, b)  y = Reshape(i, back) }}"""
_LAYER_NORM = f"""{_H} g (float[3, 9, 16] x, float[16] g, float[16] b, float[16, 24] w, float[24] c) => (float[3, 9, 24] y) {{
    n = LayerNormalization(x, g, b)  p = MatMul(n, w)  y = Add(p, c) }}"""
_RMS_NORM = """<ir_version: 10, opset_import: ["" : 23]> g (float[3, 9, 16] x, float[16] g, float[16, 24] w) => (float[3, 9, 24] y) {
    n = RMSNormalization(x, g)  y = MatMul(n, w) }"""
_TWO_NORMS = """<ir_version: 8, opset_import: ["" : 17]> g (float[3, 9, 16] x, float[16, 32] u, float[32] g,
    float[32] b, float[32, 48] w, float[48, 32] v, float[32, 24] t) => (float[3, 9, 24] y) {
    p = MatMul(x, u)  h = Add(p, b)  n = LayerNormalization(h, g, b)  q = MatMul(n, w)  r = Relu(q)
    s = MatMul(r, v)  k = Add(s, h)  m = LayerNormalization(k, g, b)  y = MatMul(m, t) }"""

FAULTS = (
    BrokenPass(
        "moments are of squares that are not centred",
        "fuse-operators",
        "fusion.row_moments",
        'mean(made.add("Mul", differences, differences), -1)',
        'mean(made.add("Mul", rows, rows), -1)',
        _TWO_NORMS,
        "u g b w v t",
        Precision.FP16,
    ),
    BrokenPass(
        "rows are normalised by the moments of others",
        "fuse-operators",
        "fusion.row_moments",
        "_known(clusters.graph, norm, maker.moments)",
        "_known(clusters.graph, norm, next(c.moments for c in clusters.all if c.moments))",
        _TWO_NORMS,
        "u g b w v t",
        Precision.FP16,
    ),
    BrokenPass(
        "the scale of a normalisation is lost",
        "norm-into-product",
        "products.norm_into_product",
        "weight = old * scale.reshape(-1, 1)",
        "weight = old",
        _LAYER_NORM,
        "g b w c",
        Precision.FP16,
    ),
    BrokenPass(
        "the shift of a normalisation is scaled",
        "norm-into-product",
        "products.norm_into_product",
        "shift.reshape(-1) @ old",
        "shift.reshape(-1) @ weight",
        _LAYER_NORM,
        "g b w c",
        Precision.FP16,
    ),
    BrokenPass(
        "columns lose their means though rows keep theirs",
        "norm-into-product",
        "products.norm_into_product",
        "if centred:",
        "if is_op(norm, *NORMS):",
        _RMS_NORM,
        "g w",
        Precision.FP16,
    ),
    BrokenPass(
        "the mean of squares stands for the variance",
        "long-rows",
        "clean.definitions.long_rows",
        'variance = _mean(editor, editor.add("Mul", [centred, centred], like=x))',
        'variance = _mean(editor, editor.add("Mul", [x, x], like=x))',
        _WHOLE,
    ),
    BrokenPass(
        "new channels are thought to lie where others stay",
        "channel-orders",
        "products.channel_orders",
        "return Channels(whole, np.concatenate(parts))",
        "return Channels(whole, np.concatenate(parts[::-1]))",
        _SHUFFLED,
        constants="u w v",
    ),
    BrokenPass(
        "the smaller window lies in the corner of the larger one",
        "summed-convolutions",
        "products.summed_convolutions",
        "placed = _placed(float_weight(beside), _window(conv), begins)",
        "placed = _placed(float_weight(beside), _window(conv), [0] * len(begins))",
        _BRANCHES,
        constants="w v",
    ),
    BrokenPass(
        "the scale of a normalisation is tripled",
        "batch-norm-after",
        "fold.batch_norm",
        "return ChannelAffine(scale, beta - mean * scale)",
        "return ChannelAffine(3 * scale, beta - mean * scale)",
        _NORMED,
        "w g b m v",
    ),
    BrokenPass(
        "a normalisation's epsilon is always the default",
        "batch-norm-after",
        "fold.batch_norm",
        'float(norm.attrs.get("epsilon", _EPSILON))',
        "_EPSILON",
        _NORMED,
        "w g b m v",
    ),
    BrokenPass(
        "the mean is not scaled",
        "batch-norm-after",
        "fold.batch_norm",
        "beta - mean * scale",
        "beta - mean",
        _NORMED,
        "w g b m v",
    ),
    BrokenPass(
        "one channel keeps its scale",
        "batch-norm-after",
        "fold.batch_norm",
        "    scale = gamma / np.sqrt(widened)\n",
        "    scale = gamma / np.sqrt(widened)\n    scale[-1] = gamma[-1]\n",
        _NORMED,
        "w g b m v",
    ),
    BrokenPass(
        "shifts of groups are taken in turns",
        "batch-norm-before",
        "fold.linear_operator",
        "np.repeat(affine.shift.reshape(group, -1), len(weight) // group, axis=0)",
        "np.tile(affine.shift.reshape(group, -1), (len(weight) // group, 1))",
        _BEFORE.replace("PADS", ""),
        "w g b m v",
    ),
    BrokenPass(
        "a shift goes into a bias though zeros are padded behind it",
        "batch-norm-before",
        "fold.linear_operator",
        'if node.op == "Conv" and pads(node):',
        'if node.op == "Gemm" and pads(node):',
        _BEFORE.replace("PADS", ", pads = [1, 1, 1, 1]"),
        "w g b m v",
    ),
    BrokenPass(
        "scale and shift lie along the rows",
        "batch-norm-to-affine",
        "fold.batch_norm",
        "(-1, *[1] * (dimensions - 2))",
        "(-1, *[1] * (dimensions - 3))",
        _ALONE,
        "g b m v",
    ),
    BrokenPass(
        "variance and epsilon are not rooted",
        "batch-norm-to-affine",
        "fold.batch_norm",
        "gamma / np.sqrt(widened)",
        "gamma / widened",
        _ALONE,
        "g b m v",
    ),
    BrokenPass(
        "what is subtracted from is subtracted",
        "constants-into-weights",
        "fold.constants_into_weights",
        "return ChannelAffine(-ones, vector) if constant_first else ChannelAffine(ones, -vector)",
        "return ChannelAffine(ones, -vector)",
        _BEHIND,
        "w b s t",
    ),
    BrokenPass(
        "the bias is not scaled",
        "constants-into-weights",
        "fold.linear_operator",
        "_float_bias(node) * affine.scale + affine.shift",
        "_float_bias(node) + affine.shift",
        _BEHIND,
        "w b s t",
    ),
    BrokenPass(
        "a divisor becomes a factor",
        "constants-into-weights",
        "fold.constants_into_weights",
        "return ChannelAffine(1.0 / vector, zeros)",
        "return ChannelAffine(vector, zeros)",
        _DIVIDED,
        "w vs",
    ),
    BrokenPass(
        "factors of rows of a transposed matrix scale its columns",
        "constants-into-weights",
        "fold.linear_operator",
        "scale[:, None] if rows else scale",
        "scale[:, None] if rows and not outputs else scale",
        _GEMM.replace("ATTRIBUTES", "transB = 1"),
        "w b s",
    ),
    BrokenPass(
        "a shift enters the bias with the wrong sign",
        "constants-before-weights",
        "fold.linear_operator",
        "bias = bias + (weight.sum(",
        "bias = bias - (weight.sum(",
        _CONV_BEHIND,
        "w t s",
    ),
    BrokenPass(
        "alpha does not reach the shift",
        "constants-before-weights",
        "fold.linear_operator",
        'float(node.attrs.get("alpha", 1.0)) * added',
        "added",
        _GEMM_BEHIND,
        "w s t",
    ),
    BrokenPass(
        "factors of what is read scale what is written",
        "constants-before-weights",
        "fold.linear_operator",
        "scale[:, None] if rows else scale",
        "scale[:, None] if rows and outputs else scale",
        _GEMM_BEHIND,
        "w s t",
    ),
    BrokenPass(
        "the bias behind a MatMul is not scaled",
        "scale-through-bias",
        "fold.constants_into_weights",
        "offsets * factors",
        "offsets",
        _ROWS,
        "w b s",
    ),
    BrokenPass(
        "a divisor moves to the projection as a factor",
        "scale-into-projection",
        "fold.attention_scale",
        "return (variable, 1.0 / value) if",
        "return (variable, value) if",
        _HEADS.replace("BEHIND", "Relu(z)"),
        "w b",
    ),
    BrokenPass(
        "another reader of the heads is scaled, too",
        "scale-into-projection",
        "fold.attention_scale",
        "[*(view.outputs[0] for view in chain), chain[-1].inputs[0]]",
        "[chain[-1].inputs[0]]",
        _HEADS.replace("BEHIND", "Add(z, t)"),
        "w b",
    ),
    BrokenPass(
        "of two factors the last counts",
        "scale-behind-product",
        "fold.attention_scale",
        "factor *= found[1]",
        "factor = found[1]",
        _FACTORS,
    ),
    BrokenPass(
        "alpha is dropped",
        "gemm-between-reshapes",
        "recognise.matmul_to_gemm",
        'alpha = float(gemm.attrs.get("alpha", 1.0))',
        "alpha = 1.0",
        _TWO_SIZED,
        "w b",
    ),
    BrokenPass(
        "a transposed weight stays as it is",
        "gemm-between-reshapes",
        "recognise.matmul_to_gemm",
        "weight = weight.T",
        "weight = np.array(weight)",
        _TWO_SIZED,
        "w b",
    ),
)
