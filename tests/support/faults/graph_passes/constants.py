"""Faults in arithmetic with constants, in limits, and in pooling and padding beside products."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_IMAGE = "float[2, 6, 6, 6] x"
_SPLIT = f"""{_H} g (float[2, 4] x, float[8, 4] w) => (float[2, 4] y) <int64[2] halves = {{4, 4}}> {{
    a, b = Split<axis = 0>(w, halves)  p = MatMul(x, a)  r = Relu(p)  y = MatMul(r, b) }}"""
_SINGLE = f"""{_H} g (float[2, 5, 1] x, float[1] s, float[1] b) => (float[2, 5, 1] y) {{
    n = LayerNormalization(x, s, b)  y = Add(x, n) }}"""
_ARITHMETIC = f"""{_H} g ({_IMAGE}, float[6, 1, 1] s, float[6, 1, 1] t, float[6, 1, 1] u)
    => (float[2, 6, 6, 6] y) <float four = {{4}}> {{
    a = Sub(x, t)  b = Div(a, four)  r = Relu(b)  c = Mul(r, s)  y = Mul(c, u) }}"""
_CLIPS = f"""{_H} g ({_IMAGE}) => (float[2, 6, 6, 6] y) <float low = {{-1}}, float high = {{0.75}}> {{
    r = Relu(x)  y = Clip(r, low, high) }}"""
_LIMITED = f"""{_H} g (float[2, 3, 4, 4] x, float[2, 3, 4, 4] u, float[6, 1, 1] s, float[6, 1, 1] t,
    float[8, 6, 1, 1] w, float[8] b) => (float[2, 8, 4, 4] y) <float zero = {{0}}, float one = {{1}}> {{
    c = Concat<axis = 1>(x, u)  m = Mul(c, s)  a = Add(m, t)  r = Clip(a, zero, one)
    y = Conv(r, w, b) }}"""
_PRODUCT_POOL = f"""{_H} g ({_IMAGE}, float[4, 6, 1, 1] w, float[4] b) => (float[2, 4, 2, 3] y) {{
    c = Conv(x, w, b)  y = AveragePool<kernel_shape = [3, 2], strides = [3, 2]>(c) }}"""
_POOL_PRODUCT = f"""{_H} g ({_IMAGE}, float[4, 6, 1, 1] w, float[4] b) => (float[2, 4, 6, 6] y) {{
    p = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)  y = Conv(p, w, b) }}"""
_PADDED = f"""{_H} g ({_IMAGE}, float[4, 6, 3, 3] w) => (float[2, 4, 6, 6] y)
    <int64[8] pads = {{0, 0, 2, 0, 0, 0, 0, 2}}, float fill = {{FILL}}> {{
    r = Relu(x)  p = Pad(r, pads, fill)  y = Conv(p, w) }}"""
_PADDED_POOL = f"""{_H} g ({_IMAGE}) => (float[2, 6, 7, 7] y)
    <int64[8] pads = {{0, 0, 1, 1, 0, 0, 1, 1}}, float fill = {{0}}> {{
    t = Tanh(x)  p = Pad(t, pads, fill)  y = POOL<kernel_shape = [2, 2]>(p) }}"""

_CONDITION = f"""{_H} g ({_IMAGE}) => (float[2, 6, 6, 6] y) <int64 a = {{3}}, int64 b = {{4}}> {{
    c = Less(a, b)
    y = If(c) <then_branch = one () => (float[2, 6, 6, 6] t) {{ t = Tanh(x) }},
               else_branch = two () => (float[2, 6, 6, 6] u) {{ u = Neg(x) }}> }}"""

_CHOICE = f"""{_H} g (float[2, 3] x, float s) => (float[2, 3] y) <float zero = {{0.0}}> {{
    c = Greater(s, zero)
    y = If(c) <then_branch = one () => (float[2, 3] t) {{ t = Tanh(x) }},
               else_branch = two () => (float[2, 3] u) {{ u = Neg(x) }}> }}"""

_GROUPS = """<ir_version: 10, opset_import: ["" : 21]> g (float[2, 6, 6, 6] x, float[6] s, float[6] b)
    => (float[2, 6, 6, 6] y) { t = Tanh(x)  y = GroupNormalization <num_groups = 3> (t, s, b) }"""

_NORM = f"""{_H} g ({_IMAGE}) => (float[2, 6, 6, 6] y) {{
    t = Tanh(x)  y = LpNormalization<axis = 1, p = 1>(t) }}"""

_BETA = f"""{_H} g (float[2, 6] a, float[6, 4] b, float[4] c) => (float[2, 4] y) {{
    s = Tanh(a)  y = Gemm<beta = 0.5>(s, b, c) }}"""

_CUBIC = """<ir_version: 10, opset_import: ["" : 20]> g (float[2, 6, 6, 6] x)
    => (float[2, 6, 9, 8] y) <int64[4] sizes = {2, 6, 9, 8}> {
    t = Tanh(x)  y = Resize<mode = "cubic">(t, , , sizes) }"""

_SAMPLED = """<ir_version: 10, opset_import: ["" : 20]> g (float[2, 3, 6, 5] x, float[2, 4, 7, 2] grid)
    => (float[2, 3, 4, 7] y) { t = Tanh(x)  y = GridSample<padding_mode = "border">(t, grid) }"""

_COLUMNS = """<ir_version: 10, opset_import: ["" : 18]> g (float[2, 12, 12] x) => (float[2, 2, 5, 5] y)
    <int64[2] image = {5, 5}, int64[2] block = {3, 2}> { t = Tanh(x)  y = Col2Im(t, image, block) }"""

_DEEP = f"""{_H} g (float[2, 2, 4, 5, 6] x) => (float[2, 2, 4, 5, 6] y) {{
    t = Tanh(x)  y = MaxPool<kernel_shape = [2, 2, 2], pads = [1, 1, 1, 0, 0, 0]>(t) }}"""

_PLACED = f"""{_H} g (float[2, 2, 4, 5, 6] x) => (float[2, 2, 2, 2, 3] y, int64[2, 2, 2, 2, 3] i) {{
    t = Tanh(x)  y, i = MaxPool<kernel_shape = [2, 2, 2], strides = [2, 2, 2], storage_order = 1>(t) }}"""

_VOLUME = f"""{_H} g (float[2, 2, 4, 5, 6] x) => (float[2, 2, 8, 5, 18] y)
    <int64[5] sizes = {{2, 2, 8, 5, 18}}> {{ t = Tanh(x)  y = Resize<mode = "nearest">(t, , , sizes) }}"""

_EINSUM = f"""{_H} g (float[2, 4, 3] x, float[2, 3, 4] w) => (float[2, 4] y) {{
    t = Tanh(x)  y = Einsum<equation = "bij,bji->bi">(t, w) }}"""

_DIAGONAL = f"""{_H} g (float[2, 4, 4] x) => (float[2, 4] y) {{
    t = Tanh(x)  y = Einsum<equation = "...ii->...i">(t) }}"""

_PARTS = f"""{_H} g ({_IMAGE}) => (float[2, 6, 6, 6] y) <int64[3] sizes = {{2, 0, 4}}> {{
    a, b, c = Split<axis = 1>(x, sizes)  y = Concat<axis = 1>(c, b, a) }}"""

_NOTHING = f"""{_H} g (float[2, 0] x, float[2, 3] z) => (float[2, 3] y) {{
    p = ReduceProd<axes = [1]>(x)  y = Mul(p, z) }}"""

FAULTS = (
    BrokenPass(
        "two inputs of a function change places",
        "function-bodies",
        "clean.definitions.function_bodies",
        "zip(body.inputs, node.inputs, strict=True)",
        "zip(body.inputs, [node.inputs[0], *node.inputs[:0:-1]], strict=True)",
        _GROUPS,
    ),
    BrokenPass(
        "another norm",
        "defined-forms",
        "clean.definitions.defined_forms",
        '{1: "ReduceL1", 2: "ReduceL2"}',
        '{1: "ReduceL2", 2: "ReduceL1"}',
        _NORM,
    ),
    BrokenPass(
        "beta is left out",
        "plain-forms",
        "clean.definitions.plain_forms",
        "np.array(beta)",
        "np.array(1.0)",
        _BETA,
    ),
    BrokenPass(
        "weights from back to front",
        "resize-parts",
        "clean.resampling.resize_parts",
        "return _Along(axis, weights, seen == _OUTSIDE)",
        "return _Along(axis, weights[::-1], seen == _OUTSIDE)",
        _CUBIC,
    ),
    BrokenPass(
        "the grid names the first axis first",
        "grid-sample-parts",
        "clean.resampling.grid_sample_parts",
        "number = count - 1 - axis",
        "number = axis",
        _SAMPLED,
    ),
    BrokenPass(
        "blocks begin a pixel later",
        "column-parts",
        "clean.convolution.window_pixels",
        "here = (along >= 0) & (along < size)",
        "here = (along >= 1) & (along < size)",
        _COLUMNS,
    ),
    BrokenPass(
        "padding at the other end",
        "window-parts",
        "clean.convolution.window_parts",
        "for side in (0, 1))",
        "for side in (1, 0))",
        _DEEP,
    ),
    BrokenPass(
        "places of another order of planes",
        "window-parts",
        "clean.convolution.window_parts",
        'arithmetic("Mul", wide, depth * height)',
        'arithmetic("Mul", wide, depth * width)',
        _PLACED,
    ),
    BrokenPass(
        "what lies behind an axis lies in front of it",
        "resize-axes",
        "clean.resampling.resize_axes",
        "is_last = stage.end == len(shape)",
        "is_last = True",
        _VOLUME,
    ),
    BrokenPass(
        "letters stay in their order",
        "einsum-parts",
        "products.einsum",
        'turned = self.ordered(x, letters, "".join(groups))',
        "turned = x",
        _EINSUM,
    ),
    BrokenPass(
        "a diagonal that slips",
        "einsum-parts",
        "products.einsum",
        "[len(rest)], [size + 1]]",
        "[len(rest)], [size]]",
        _DIAGONAL,
    ),
    BrokenPass(
        "a part of some elements is dropped",
        "empty-tensors",
        "fold.empty_tensors",
        "if size]",
        "if size][::-1]",
        _PARTS,
    ),
    BrokenPass(
        "what is empty gets an element",
        "empty-tensors",
        "fold.empty_tensors",
        "np.zeros(static_shape(tensor) or [0]",
        "np.zeros([max(n, 1) for n in static_shape(tensor) or [0]]",
        _NOTHING,
    ),
    BrokenPass(
        "the branch that is not taken",
        "inline-conditionals",
        "clean.control_flow.inline_conditionals",
        '"then_branch" if',
        '"then_branch" if not',
        _CONDITION,
    ),
    BrokenPass(
        "the branches change places",
        "select-conditionals",
        "clean.control_flow.select_conditionals",
        "[condition, one, other]",
        "[condition, other, one]",
        _CHOICE,
    ),
    BrokenPass(
        "what is folded is given out in the wrong order",
        "constant-folding",
        "fold.constant_folding",
        "in zip(list(node.outputs), match.outputs, strict=True)",
        "in zip(list(node.outputs), match.outputs[::-1], strict=True)",
        _SPLIT,
        "w",
    ),
    BrokenPass(
        "what is folded loses its low bits",
        "constant-folding",
        "fold.constant_folding",
        "[(a, b, None) for a, b in zip(results, exact, strict=True)]",
        "[(a.astype(np.float16).astype(a.dtype), b, None) for a, b in zip(results, exact, strict=True)]",
        _SPLIT,
        "w",
    ),
    BrokenPass(
        "a subtrahend is added",
        "constant-forms",
        "fold.constant_chains",
        'op, array = "Add", -constant',
        'op, array = "Add", constant',
        _ARITHMETIC,
        "s t u",
    ),
    BrokenPass(
        "a power of two that divides multiplies",
        "constant-forms",
        "fold.constant_chains",
        'op, array = "Mul", 1.0 / constant',
        'op, array = "Mul", constant',
        _ARITHMETIC,
        "s t u",
    ),
    BrokenPass(
        "factors are added up",
        "constant-chains",
        "fold.constant_chains",
        'a + b if op == "Add" else a * b',
        "a + b",
        _ARITHMETIC,
        "s t u",
    ),
    BrokenPass(
        "the lower of two lower bounds stays",
        "constant-chains",
        "fold.constant_chains",
        "min(max(low_1, low_2), high_2)",
        "min(min(low_1, low_2), high_2)",
        _CLIPS,
    ),
    BrokenPass(
        "the second upper bound is forgotten",
        "constant-chains",
        "fold.constant_chains",
        "max(min(high_1, high_2), low_2)",
        "max(high_1, low_2)",
        _CLIPS,
    ),
    BrokenPass(
        "the limit has the wrong sign",
        "clamp-before-product",
        "products.clamp",
        "-shift / scale",
        "shift / scale",
        _LIMITED,
        "s t w b",
    ),
    BrokenPass(
        "the ceiling is not shifted",
        "clamp-before-product",
        "products.clamp",
        "(found.ceiling - shift) / scale",
        "found.ceiling / scale",
        _LIMITED,
        "s t w b",
    ),
    BrokenPass(
        "negative factors do not swap the limits",
        "clamp-before-product",
        "products.clamp",
        "rises = scale > 0",
        "rises = scale > -9",
        _LIMITED,
        "s t w b",
    ),
    BrokenPass(
        "a window's sum is divided by its height squared",
        "pool-into-product",
        "products.pooling",
        "weight / math.prod(window)",
        "weight / window[0] ** 2",
        _PRODUCT_POOL,
        "w b",
    ),
    BrokenPass(
        "the bias behind the pooling is subtracted",
        "pool-behind-product",
        "products.pooling",
        'pooled = editor.add("Add", [pooled',
        'pooled = editor.add("Sub", [pooled',
        _POOL_PRODUCT,
        "w b",
    ),
    BrokenPass(
        "padding is counted from now on",
        "pool-behind-product",
        "products.pooling",
        '"AveragePool", [mixed], like=output, attrs=dict(pool.attrs)',
        '"AveragePool", [mixed], like=output, attrs={**pool.attrs, "count_include_pad": 1}',
        _POOL_PRODUCT,
        "w b",
    ),
    BrokenPass(
        "padding of begins and ends is exchanged",
        "pad-into-window",
        "fold.pad_into_window",
        "return begins[2:] + ends[2:]",
        "return ends[2:] + begins[2:]",
        _PADDED.replace("FILL", "0"),
        "w",
    ),
    BrokenPass(
        "what is padded with another number is padded with zeros",
        "pad-into-window",
        "fold.pad_into_window",
        "    if value != 0.0:\n        return f\"'{pad.name}' pads with {value}, '{window.name}' with 0\"\n",
        "",
        _PADDED.replace("FILL", "0.5"),
        "w",
    ),
    BrokenPass(
        "zeros beside negative numbers are not seen by a maximum",
        "pad-into-window",
        "fold.pad_into_window",
        'is_op(node, "Relu", "Sigmoid",',
        'is_op(node, "Relu", "Tanh", "Sigmoid",',
        _PADDED_POOL.replace("POOL", "MaxPool"),
    ),
    BrokenPass(
        "padded zeros are not counted any more",
        "pad-into-window",
        "fold.pad_into_window",
        'window.attrs["count_include_pad"] = 1',
        'window.attrs["count_include_pad"] = 0',
        _PADDED_POOL.replace("POOL", "AveragePool"),
    ),
    BrokenPass(
        "a row of one element keeps its scale",
        "single-elements",
        "fold.single_elements",
        "return _Single(node, shape, 0.0 if bias is None else bias)",
        "return _Single(node, shape, node.inputs[1])",
        _SINGLE,
        "s b",
    ),
)
