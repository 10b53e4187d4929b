"""Models of one operator, or two, whose shapes divide by no tile; weights are called w, v, a, b, c."""

H = '<ir_version: 8, opset_import: ["" : 17]>'
CONVOLUTIONS = f"""{H} g (float[1, 16, 9, 7] x, float[24, 16, 3, 3] w, float[40, 24, 3, 3] v)
    => (float[1, 40, 5, 3] y) {{ a = Conv(x, w)  r = Relu(a)  y = Conv(r, v) }}"""
POOLED = f"""{H} g (float[1, 24, 10, 8] x, float[40, 24, 3, 3] w) => (float[1, 40, 7, 5] y) {{
    a = MaxPool<kernel_shape = [2, 2]>(x)  y = Conv(a, w) }}"""
FIRST = f"""{H} g (float[1, 3, 17, 15] x, float[20, 3, 5, 5] w) => (float[1, 20, 9, 8] y) {{
    y = Conv<pads = [2, 2, 2, 2], strides = [2, 2]>(x, w) }}"""
GROUPED = f"""{H} g (float[1, 24, 10, 8] x, float[24, 4, 3, 3] w) => (float[1, 24, 7, 5] y) {{
    a = MaxPool<kernel_shape = [2, 2]>(x)  y = Conv<group = 6>(a, w) }}"""
DEPTHWISE = f"""{H} g (float[1, 20, 9, 7] x, float[20, 1, 3, 3] w) => (float[1, 20, 7, 5] y) {{
    y = Conv<group = 20>(x, w) }}"""
DEPTHWISE_IMAGES = f"""{H} g (float[72, 64, 14, 16] x, float[64, 1, 3, 3] w) => (float[72, 64, 11, 13] y) {{
    a = MaxPool<kernel_shape = [2, 2]>(x)  b = Conv<group = 64, pads = [1, 1, 1, 1]>(a, w)
    y = MaxPool<kernel_shape = [3, 3]>(b) }}"""
PRODUCT = (
    f"""{H} g (float[37, 48] x, float[48, 24] w) => (float[37, 24] y) {{ y = MatMul(x, w) }}"""
)
NORMED = f"""{H} g (float[37, 48] x, float[48, 64] v, float[64, 64] u, float[64] g, float[64] b, float[64, 40] w)
    => (float[37, 40] y) {{ p = MatMul(x, v)  q = Relu(p)  s = MatMul(q, u)  r = Add(s, b)
    n = LayerNormalization(r, g, b)  y = MatMul(n, w) }}"""
BY_COLUMNS = f"""{H.replace("17", "20")} g (float[70, 48] x, float[48, 40] w, float[40] b) => (float[70, 40] y) {{
    a = Softmax(x)  p = MatMul(a, w)  s = Add(p, b)  e = Gelu(s)  y = Softmax(e) }}"""
BLOCK = f"""{H.replace("17", "20")} g (float[2, 37, 48] x, float[48, 48] v, float[48, 72] u, float[72] b, float[72, 48] w, float[48] c)
    => (float[2, 37, 48] y) {{ p = MatMul(x, v)  n = LayerNormalization(p, c)  h = MatMul(n, u)  i = Add(h, b)
    e = Gelu(i)  o = MatMul(e, w)  y = Add(o, p) }}"""
FEW_ROWS = f"""{H} g (float[3, 49] x, float[49, 23] w) => (float[3, 23] y) {{ y = MatMul(x, w) }}"""
ATTENTION = f"""{H} g (float[1, 19, 32] x, float[32, 32] a, float[32, 32] b, float[32, 32] c)
    => (float[1, 19, 32] y) <int64[4] heads = {{1, 19, 2, 16}}, int64[3] back = {{1, 19, 32}}> {{
    q = MatMul(x, a)  qh = Reshape(q, heads)  qt = Transpose<perm = [0, 2, 1, 3]>(qh)
    k = MatMul(x, b)  kh = Reshape(k, heads)  kt = Transpose<perm = [0, 2, 3, 1]>(kh)
    v = MatMul(x, c)  vh = Reshape(v, heads)  vt = Transpose<perm = [0, 2, 1, 3]>(vh)
    s = MatMul(qt, kt)  p = Softmax(s)  o = MatMul(p, vt)  t = Transpose<perm = [0, 2, 1, 3]>(o)
    y = Reshape(t, back) }}"""
SQUEEZED = f"""{H} g (float[2, 20, 9, 7] x, float[6, 20, 1, 1] d, float[20, 6, 1, 1] u)
    => (float[2, 20, 9, 7] y) {{
    m = GlobalAveragePool(x)  a = Conv(m, d)  b = Relu(a)  c = Conv(b, u)  g = Sigmoid(c)
    y = Mul(x, g) }}"""
POOL = f"""{H} g (float[2, 5, 9, 7] x) => (float[2, 5, 4, 3] y) {{
    y = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(x) }}"""
REGIONS = f"""{H} g (float[2, 5, 9, 7] x, float[6, 4] r, int64[6] b) => (float[6, 5, 2, 3] y) {{
    y = RoiAlign<output_height = 2, output_width = 3, spatial_scale = 4.0,
        coordinate_transformation_mode = "output_half_pixel">(x, r, b) }}"""
SUM = f"""{H} g (float[7, 45] x) => (float[7] y) <int64[1] axes = {{1}}> {{
    y = ReduceSum<keepdims = 0>(x, axes) }}"""
ROWS = f"{H} g (float[7, 45] x) => (float[7, 45] y) {{ y = Softmax(x) }}"
LONG_ROWS = f"""{H} g (float[2, 6, 5, 7] x, float[6, 1, 1] s) => (float[2, 6, 5, 7] y)
    <int64[3] rows = {{2, 3, 70}}, int64[4] back = {{2, 6, 5, 7}}, float[3] one = {{1, 1, 1}}, float[3] none = {{0, 0, 0}}> {{
    r = Reshape(x, rows)  i = InstanceNormalization(r, one, none)  g = Reshape(i, back)  y = Mul(g, s) }}"""
ACROSS = f"{H} g (float[2, 40, 21] x) => (float[2, 40, 21] y) {{ y = Softmax <axis = 1> (x) }}"
ELEMENTS = f"{H} g (float[7, 45] x) => (float[7, 45] y) {{ y = Sigmoid(x) }}"
TURNED = f"{H} g (float[39, 45] x) => (float[45, 39] y) {{ t = Transpose(x)  y = Sigmoid(t) }}"
REPEATED = f"""{H} g (float[1, n, 21] x) => (float[5, n, 21] y) <int64[1] five = {{5}}> {{
    s = Shape<start = 1>(x)  t = Concat<axis = 0>(five, s)  y = Expand(x, t) }}"""
PICKED = f"{H} g (int64[7] i, float[9, 20] w) => (float[7, 20] y) {{ y = Gather(w, i) }}"
PADDED = f"""{H} g (float[2, 5, 5, 7] x) => (float[2, 5, 8, 9] y)
    <int64[8] pads = {{0, 0, 1, 2, 0, 0, 2, 0}}> {{ y = Pad<mode = "reflect">(x, pads) }}"""
RESIZED = f"""{H} g (float[2, 5, 5, 7] x) => (float[2, 5, 10, 14] y)
    <float[4] scales = {{1, 1, 2, 2}}> {{ y = Resize<mode = "linear">(x, "", scales) }}"""
PICKED_EACH = f"""{H} g (float[3, 5, 7] x, int64[3, 4, 7] i) => (float[3, 4, 7] y) {{
    y = GatherElements<axis = 1>(x, i) }}"""
WRITTEN = f"""{H} g (float[9, 5] x, int64[4, 1] i, float[4, 5] u) => (float[9, 5] y) {{
    y = ScatterND(x, i, u) }}"""
FIRST_OF_ROWS = f"{H} g (float[7, 45] x) => (int64[7, 1] y) {{ y = ArgMax<axis = 1>(x) }}"
RANKED = (
    f"""{H} g (float[7, 45] x) => (int64[7, 5] y) <int64[1] k = {{5}}> {{ v, y = TopK(x, k) }}"""
)
SUMS = f"""{H} g (float[7, 45] x) => (float[7, 45] y) <int64 axis = {{1}}> {{
    y = CumSum<reverse = 1>(x, axis) }}"""

SELECTED = f"""{H} g (float[2, 45, 4] x, float[2, 3, 45] s) => (int64[k, 3] y)
    <int64[1] most = {{7}}, float[1] overlap = {{0.2}}, float[1] least = {{0.1}}> {{
    y = NonMaxSuppression(x, s, most, overlap, least) }}"""
DETERMINANTS = f"{H} g (float[7, 3, 5, 5] x) => (float[7, 3] y) {{ y = Det(x) }}"

RECURRENT = """<ir_version: 8, opset_import: ["" : 17]>
g (float[3,2,16] x, float[1,128,16] w, float[1,128,32] r) => (float[3,1,2,32] y) {
  y = LSTM<hidden_size=32>(x, w, r)
}"""
