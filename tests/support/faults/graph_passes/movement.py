"""Faults in what moves, names, shares or removes values without computing on them."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass
from support.networks import windows
from wpk.dtypes import Precision

_H = '<ir_version: 8, opset_import: ["" : 17]>'
_BLOCKS = f"""{_H} g (float[2, 8, 4, 4] x) => (float[2, c, h, w] y) {{
    r = Relu(x)  m = MOVE<blocksize = 2>(r)  y = Sigmoid(m) }}"""
_DEAD = f"""{_H} g (float[2, 6, 6, 6] x, float[6, 6, 1, 1] w, float[6] b) => (float[2, 6, 6, 6] y) {{
    dead = Exp(x)  c = Conv(x, w, b)  y, mask = Dropout(c) }}"""
_IDENTITY = f"""{_H} g (float[2, 6, 6] x) => (float[2, 6, 6] y)
    <float top = {{0.5}}, float small = {{0.0005}}> {{ r = Relu(x)  m = REST  y = Sigmoid(m) }}"""
_CAST = f"""{_H} g (float[2, 6, 6] x) => (float[2, 6, 6] y) <float many = {{9}}> {{
    t = Mul(x, many)  c = Cast<to = 6>(t)  d = Cast<to = 1>(c)  y = Sigmoid(d) }}"""
_POOLED = f"""{_H} g (float[2, 6, 6, 6] x) => (float[2, 6, 6, 6] y) {{
    i = Identity(x)  p = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(i)  y = Sigmoid(p) }}"""
_TURNED = f"""{_H} g (float[4, 4, 4] x) => (float[4, 4, 4] y) {{
    a = Transpose<perm = [0, 2, 1]>(x)  b = Transpose<perm = [2, 1, 0]>(a)  y = Relu(b) }}"""
_MERGED = f"""{_H} g (float[2, 6, 4] x) => (float[2, 24] y) <int64[2] flat = {{2, 24}}> {{
    s = Softmax(x)  t = Transpose<perm = [0, 2, 1]>(s)  y = Reshape(t, flat) }}"""
_TWICE = f"""{_H} g (float[2, 6, 6] x, float[6] a, float[6] b) => (float[2, 6, 6] y) {{
    e = Exp(x)  f = Exp(x)  p = LeakyRelu<alpha = 0.1>(x)  q = LeakyRelu<alpha = 0.2>(x)
    r = Mul(e, a)  s = Mul(f, b)  t = Sub(r, s)  u = Sub(p, q)  y = Add(t, u) }}"""
_FRONT = f"""{_H} g (float[n, 5, 5] x) => (float[n, 5, 5] y) <float half = {{0.5}}> {{
    t = Transpose<perm = [1, 0, 2]>(x)  m = REST  u = Mul(m, half)
    y = Transpose<perm = [1, 0, 2]>(u) }}"""
_CYCLE = f"""{_H} g (float[4, 4, 4] x) => (float[4, 4, 4] y) <float half = {{0.5}}> {{
    t = Transpose<perm = [1, 2, 0]>(x)  m = Mul(t, half)  y = Softmax(m) }}"""
_JOINED = f"""{_H} g (float[2, 4, 6] x, float[2, 4, 6] z) => (float[2, 4, 6] y, float[2, 8, 6] v)
    <int64[1] four = {{4}}, int64[1] eight = {{8}}, int64[1] one = {{1}}, bool[1, 1, 6] no = {{0, 0, 0, 0, 0, 0}}> {{
    a = Sigmoid(x)  b = Tanh(z)  c = Exp(z)  REST }}"""
_MIXED = f"""{_H} g (float[2, 6, 6] x, float[6, 6] v, float[6] b) => (float[2, 6, 6] y) {{
    t = Transpose<perm = [0, 2, 1]>(x)  p = MatMul(t, v)  a = Add(p, b)
    r = Transpose<perm = [0, 2, 1]>(a)  y = Sigmoid(r) }}"""
_MATRICES = f"""{_H} g (float[6, 6] a, float[6, 6] b) => (float[6, 6] y) {{
    p = MatMul(a, b)  t = Transpose<perm = [1, 0]>(b)  y = Gemm<transB = 1>(p, t) }}"""

_RANKED = f"""{_H} g (float[3, 6, 6] x) => (float[3, 2, 6] y) <int64[1] k = {{2}}> {{
    r = Sigmoid(x)  v, i = TopK<axis = 1>(r, k)  y = Neg(v) }}"""
_PARTED = f"""{_H} g (float[3, 6, 6] x) => (float[3, 6, 1] y) {{
    r = Sigmoid(x)  v, i = MaxPool<kernel_shape = [2], strides = [5], dilations = [2]>(r)
    c = Cast<to = 1>(i)  y = Sub(v, c) }}"""
_UNPOOLED = f"""{_H} g (float[3, 6, 6] x) => (float[3, 6, 6] y) {{
    r = Sigmoid(x)  v, i = MaxPool<kernel_shape = [2], strides = [2]>(r)  w = Sigmoid(v)
    u = MaxUnpool<kernel_shape = [2], strides = [2]>(w, i)  y = Neg(u) }}"""
_REVERSED = f"""{_H} g (float[6, 4] x) => (float[6, 4] y) <int64[4] n = {{2, 6, 4, 5}}> {{
    r = Sigmoid(x)  s = ReverseSequence(r, n)  y = Neg(s) }}"""
_SELECTED = f"""{_H} g (float[1, 24, 4] x, float[1, 2, 24] s) => (int64[k, 3] y)
    <int64[1] m = {{4}}, float[1] o = {{0.3}}, float[1] t = {{0.0}}> {{
    p = Tanh(s)  y = NonMaxSuppression(x, p, m, o, t) }}"""
_TILED = f"""{_H} g (float[2, 6] x) => (float[2, 12] y) <int64[2] r = {{1, 2}}> {{
    s = Sigmoid(x)  y = Tile(s, r) }}"""
_GRID = f"""{_H} g (float[2, 3] x) => (float[2, 3] y)
    <int64[2, 3, 2] i = {{1, 0, 1, 1, 1, 2, 0, 0, 0, 1, 0, 2}}> {{ r = Sigmoid(x)  y = GatherND(r, i) }}"""
_TRIANGLE = f"""{_H} g (float[2, 6, 6] x) => (float[2, 6, 6] y) <int64 k = {{1}}> {{
    s = Sigmoid(x)  y = Trilu<upper = 0>(s, k) }}"""
_UNFOLDED = f"""{_H} g (float[2, 5, 6, 6] x) => (float[2, 5, 2, 4, 2, 4] y)
    <int64[2, 4] places = {{0, 1, 2, 3, 2, 3, 4, 5}}> {{
    a = Gather<axis = 2>(x, places)  b = Gather<axis = 4>(a, places)  y = Relu(b) }}"""
_REPEATED = f"""{_H} g (float[3, 3, 1] x) => (float[3, 3, 4] y) <int64[3] sizes = {{3, 3, 4}}> {{
    e = Expand(x, sizes)  t = Transpose<perm = [1, 0, 2]>(e)  y = Relu(t) }}"""
_SHIFTED = f"""{_H} g (float[3, 4, 6] x, float[6, 7] w) => (float[3, 4, 4] y)
    <int64[6] one = {{0, 0, 0, 0, 0, 1}}, int64[2] flat = {{3, 32}}, int64[4] more = {{0, 0, 0, 3}},
    int64[3] apart = {{3, 5, 7}}, int64[2] begin = {{0, 3}}, int64[2] end = {{4, 7}}, int64[2] axes = {{1, 2}}> {{
    m = MatMul(x, w)  p = Pad(m, one)  f = Reshape(p, flat)  o = Pad(f, more)  a = Reshape(o, apart)
    s = Slice(a, begin, end, axes)  y = Relu(s) }}"""
_BLOCKED = f"""{_H} g (float[1, 5, 6, 4] x, float[8, 5, 1, 1] w, float[3, 8, 1, 1] v) => (float[1, 3, 6, 4] y)
    <int64[6] apart = {{1, 8, 2, 3, 2, 2}}, int64[3] blocks = {{8, 4, 6}}, int64[6] joined = {{1, 8, 2, 2, 3, 2}},
    int64[4] image = {{1, 8, 6, 4}}> {{
    c = Conv(x, w)  r = Reshape(c, apart)  t = Transpose<perm = [0, 1, 2, 4, 3, 5]>(r)  b = Reshape(t, blocks)
    s = Softmax<axis = -1>(b)  j = Reshape(s, joined)  u = Transpose<perm = [0, 1, 2, 4, 3, 5]>(j)
    i = Reshape(u, image)  y = Conv(i, v) }}"""
_GROUPS_OF_TWO = f"""{_H} g (float[2, 8, 5, 5] x, float[8, 2, 3, 3] w) => (float[2, 8, 3, 3] y) {{
    c = Conv<group = 4>(x, w)  y = Relu(c) }}"""
_POSITIONS = f"""{_H} g (float[2, 6, 9] q, float[2, 9, 6] k, float[2, 2, 3, 3, 2] a, float[2, 2, 3, 1, 2] b)
    => (float[2, 6, 6] y) <int64[5] parts = {{2, 2, 3, 3, 2}}, int64[3] rows = {{2, 6, 6}}> {{
    s = MatMul(q, k)  p = Reshape(s, parts)  t = Add(p, a)  u = Add(t, b)  r = Reshape(u, rows)
    y = Softmax<axis = -1>(r) }}"""
_WRITTEN_BACK = f"""{_H} g (float[5, 4] x, float[3, 4] t) => (float[5, 4] y)
    <int64[1] from = {{2}}, int64[1] to = {{5}}, int64[1] rows = {{0}}, int64[3, 1] places = {{2, 3, 4}}> {{
    p = Slice(x, from, to, rows)  u = Add(p, t)  s = ScatterND(x, places, u)  y = Relu(s) }}"""
_WEIGHTED = f"""{_H} g (float[2, 5, 5] s, float[2, 5, 5] v) => (float[2, 5, 5] y) {{
    p = Softmax<axis = -1>(s)  t = Transpose<perm = [0, 2, 1]>(p)  m = MatMul(v, t)  y = Relu(m) }}"""
_HOT = f"""{_H} g (float[6] x) => (float[6, 4] y) <float d = {{4}}, float[2] v = {{0, 1}}> {{
    s = Mul(x, x)  y = OneHot(s, d, v) }}"""
_EYE = f"""{_H} g (float[6, 6] x) => (float[6, 6] y, int64[1] s) {{
    e = EyeLike<k = 1>(x)  y = Mul(x, e)  s = Shape<start = 1>(x) }}"""
_BEHIND = f"""{_H} g (float[2, 4, 4, 4] x, float[4, 4, 4] c, float[4, 4] w) => (float[2, 4, 4, 4] y) {{
    p = MatMul(x, w)  t = Transpose<perm = [0, 3, 1, 2]>(p)  y = Mul(t, c) }}"""
_ROLLED = f"""{_H} g (float[2, 6, 4] x) => (float[2, 6, 4] y)
    <int64[1] none = {{0}}, int64[1] two = {{2}}, int64[1] six = {{6}}, int64[1] one = {{1}}> {{
    s = Sigmoid(x)  a = Slice(s, two, six, one)  b = Slice(s, none, two, one)
    r = Concat<axis = 1>(a, b)  y = Neg(r) }}"""
_FLAT = f"""{_H} g (float[2, 3, 6] x, float[6, 6] w, float[6] s) => (float[6, 6] y) <int64[2] flat = {{6, 6}}> {{
    p = MatMul(x, w)  r = Reshape(p, flat)  y = Sub(s, r) }}"""
_PLACES = f"""{_H} g (float[2, 4, 2, 2] x, float[4, 4, 1, 1] w) => (float[2, 2, 2, 4] y) <int64[4] to = {{2, 2, 2, 4}}> {{
    c = Conv(x, w)  r = Reshape(c, to)  y = Neg(r) }}"""
_GROUPS = f"""{_H} g (float[2, 6, 5, 7] x) => (float[2, 6, 5, 7] y)
    <int64[3] rows = {{2, 3, 70}}, int64[4] back = {{2, 6, 5, 7}}, float[3] s = {{2, 1, 3}}, float[3] b = {{1, 0, 2}}> {{
    r = Reshape(x, rows)  i = InstanceNormalization<epsilon = 0.1>(r, s, b)  y = Reshape(i, back) }}"""
_WIDENED = f"""{_H} g (int64[2, 8, 5] x, int64[2, 8, 5] z) => (float[2, 8, 10] y) {{
    f = Cast<to = 1>(x)  n = Neg(f)  h = Cast<to = 1>(z)  r = Relu(h)  y = Concat<axis = 2>(n, r) }}"""

FAULTS = (
    BrokenPass(
        "parts are joined in the reverse order",
        "casts-before-joins",
        "fusion.casts_before_joins",
        "inputs = [*wide, *move.inputs[count:]]",
        "inputs = [*wide[::-1], *move.inputs[count:]]",
        _WIDENED,
        precision=Precision.FP16,
    ),
    BrokenPass(
        "what is normalised is computed with once more",
        "norms-of-groups",
        "movement.reshapes.norms_of_groups",
        'rows = editor.add("Reshape", [source, sizes]',
        'rows = editor.add("Reshape", [editor.add("Sigmoid", [source], like=source), sizes]',
        _GROUPS,
    ),
    BrokenPass(
        "channels take the place of heads",
        "places-first",
        "movement.transposes.places_first",
        "back = _TO_LAST if match.merges else _TO_FIRST",
        "back = [0, 3, 2, 1]",
        _PLACES,
        constants="w",
    ),
    BrokenPass(
        "the constant is read first",
        "rows-before-reshapes",
        "movement.reshapes.rows_before_reshapes",
        "computed = editor.add(node.op, inputs,",
        "computed = editor.add(node.op, sorted(inputs, key=lambda t: not t.inputs),",
        _FLAT,
        constants="w s",
    ),
    BrokenPass(
        "a map is rolled the other way",
        "moved-rows",
        "movement.windows.moved_rows",
        'editor.constant(f"{name}_rows", match.rows)',
        'editor.constant(f"{name}_rows", np.argsort(match.rows))',
        _ROLLED,
    ),
    BrokenPass(
        "a constant is turned the way of the tensor beside it",
        "transposes-behind",
        "movement.transposes.transposes_behind",
        "tensor, order = self._tensor, [int(axis) for axis in np.argsort(self._perm)]",
        "tensor, order = self._tensor, list(self._perm)",
        _BEHIND,
        constants="c w",
    ),
    BrokenPass(
        "values are pooled without their dilations",
        "pooled-places",
        "movement.selections.pooled_places",
        'if name != "storage_order"',
        'if name not in ("storage_order", "dilations")',
        _PARTED,
    ),
    BrokenPass(
        "planes lack an element",
        "unpool-parts",
        "clean.convolution.unpool_parts",
        "to.ints(row)",
        "to.ints(row - 1)",
        _UNPOOLED,
    ),
    BrokenPass(
        "sequences are turned a step too early",
        "reversed-sequences",
        "movement.gathers.reversed_sequences",
        "self.ints(walk + 1)",
        "self.ints(walk + 2)",
        _REVERSED,
    ),
    BrokenPass(
        "classes have a place less",
        "placed-selections",
        "movement.selections.placed_selections",
        "self.ints(match.most), shape=[None])",
        "self.ints(match.most - 1), shape=[None])",
        _SELECTED,
    ),
    BrokenPass(
        "values are gathered along the last axis",
        "ranked-values",
        "movement.selections.ranked_values",
        'int(match.attrs.get("axis", -1))',
        "-1",
        _RANKED,
    ),
    BrokenPass(
        "an axis is repeated element by element",
        "tile-views",
        "movement.repeats.tile_views",
        "            apart.append(1)\n            grown.append(count)\n"
        "        apart.append(size)\n        grown.append(count if size == 1 else size)\n",
        "            apart.append(size)\n            grown.append(size)\n"
        "        apart.append(1 if count != 1 else size)\n        grown.append(count if count != 1 else size)\n",
        _TILED,
    ),
    BrokenPass(
        "a permuted axis is taken for the whole one",
        "grid-gather",
        "movement.gathers.grid_gather",
        "(places == np.arange(places.size)).all()",
        "(np.sort(places) == np.arange(places.size)).all()",
        _GRID,
    ),
    BrokenPass(
        "a triangle ends a diagonal too early",
        "triangle-mask",
        "movement.selections.triangle_mask",
        "distance <= places[0]",
        "distance < places[0]",
        _TRIANGLE,
    ),
    BrokenPass(
        "indices are rounded up",
        "whole-indices",
        "movement.selections.whole_indices",
        'editor.add("Cast", [given]',
        'editor.add("Cast", [editor.add("Ceil", [given], like=given)]',
        _HOT,
    ),
    BrokenPass(
        "the diagonal is always the main one",
        "known-results",
        "fold.known_results",
        'k=int(node.attrs.get("k", 0))',
        "k=0",
        _EYE,
    ),
    BrokenPass(
        "channels in columns are taken for channels in depth",
        "block-movement",
        "movement.transposes.block_movement",
        'node.attrs.get("mode", "DCR") == "DCR"',
        'node.attrs.get("mode", "DCR") != "CDR"',
        _BLOCKS.replace("MOVE<", 'DepthToSpace<mode = "CRD", '),
    ),
    BrokenPass(
        "rows and columns of a block are exchanged",
        "block-movement",
        "movement.transposes.block_movement",
        "[0, 3, 5, 1, 2, 4]",
        "[0, 5, 3, 1, 2, 4]",
        _BLOCKS.replace("MOVE", "SpaceToDepth"),
    ),
    BrokenPass(
        "optional inputs go like optional outputs",
        "dead-code",
        "clean.elimination.dead_code",
        "    dropped = len(node.outputs) - len(outputs)\n",
        "    node.inputs = list(node.inputs)[: schema.min_input]\n"
        "    dropped = len(node.outputs) - len(outputs)\n",
        _DEAD,
        "w b",
    ),
    BrokenPass(
        "a transpose that keeps the shape is taken for nothing",
        "identity-elimination",
        "clean.elimination.identity_elimination",
        "list(perm) == list(range(len(perm)))",
        "sorted(perm) == list(range(len(perm)))",
        _IDENTITY.replace("REST", "Transpose<perm = [0, 2, 1]>(r)"),
    ),
    BrokenPass(
        "a cast that truncates is left out of a chain",
        "cast-chains",
        "clean.elimination.cast_chains",
        'np.can_cast(narrow, wide, "safe")',
        'np.can_cast(narrow, wide, "unsafe")',
        _CAST,
    ),
    BrokenPass(
        "a cast that truncates is taken for nothing",
        "identity-elimination",
        "clean.elimination.identity_elimination",
        "before is not None and bool(before == after)",
        "before is not None",
        _IDENTITY.replace("REST", "Cast<to = 1>(i)").replace("m =", "i = Cast<to = 6>(r)  m ="),
    ),
    BrokenPass(
        "a clip with one bound is taken for one without bounds",
        "identity-elimination",
        "clean.elimination.identity_elimination",
        "given(node, 1) is None and given(node, 2) is None",
        "given(node, 1) is None or given(node, 2) is None",
        _IDENTITY.replace("REST", 'Clip(r, "", top)'),
    ),
    BrokenPass(
        "a small number is taken for zero",
        "identity-elimination",
        "clean.elimination.identity_elimination",
        "uniform(node.inputs[1 - index]) == _NEUTRAL[node.op]",
        "abs((uniform(node.inputs[1 - index]) or 9) - _NEUTRAL[node.op]) < 1e-3",
        _IDENTITY.replace("REST", "Add(r, small)"),
    ),
    BrokenPass(
        "a pooling that keeps the shape is taken for nothing",
        "identity-elimination",
        "clean.elimination.identity_elimination",
        "(window, strides, pads) == ({1}, {1}, {0}) and _same_shape(node)",
        "strides == {1} and _same_shape(node)",
        _POOLED,
    ),
    BrokenPass(
        "two permutations are merged in the wrong order",
        "reshape-chains",
        "movement.chains.reshape_chains",
        "[inner[axis] for axis in outer]",
        "[outer[axis] for axis in inner]",
        _TURNED,
    ),
    BrokenPass(
        "a transpose that moves elements becomes a reshape",
        "reshape-chains",
        "movement.chains.reshape_chains",
        "if moved != sorted(moved) or target is None:",
        "if target is None:",
        _MERGED,
    ),
    BrokenPass(
        "nodes that differ in an attribute are one",
        "common-subexpressions",
        "clean.elimination.common_subexpression",
        "        attributes.append((name, described))\n",
        "",
        _TWICE,
        "a b",
    ),
    BrokenPass(
        "constants of one shape are one",
        "common-subexpressions",
        "clean.elimination.common_subexpression",
        "return (str(array.dtype), array.shape, digest)",
        "return (str(array.dtype), array.shape, digest[:0])",
        _TWICE,
        "a b",
    ),
    BrokenPass(
        "a softmax over rows that were turned keeps its axis",
        "batch-in-front",
        "movement.transposes.batch_in_front",
        'int(node.attrs.get("axis", -1)) % rank not in along',
        'int(node.attrs.get("axis", -1)) % rank not in range(rank)',
        _FRONT.replace("REST", "Softmax<axis = 0>(t)").replace("float[n,", "float[5,"),
    ),
    BrokenPass(
        "a transpose is moved as its inverse",
        "batch-in-front",
        "movement.transposes.batch_in_front",
        'attrs = match.output, {"perm": match.perm}',
        'attrs = match.output, {"perm": [match.perm.index(i) for i in range(len(match.perm))]}',
        _CYCLE,
    ),
    BrokenPass(
        "of two choices the other is taken",
        "redundant-movement",
        "movement.chains.redundant_movement",
        "1 if bool(condition.any()) else 2",
        "2 if bool(condition.any()) else 1",
        _JOINED.replace("REST", "y = Where(no, a, b)  v = Concat<axis = 1>(a, b)"),
    ),
    BrokenPass(
        "a slice of the right size is taken from the wrong place",
        "redundant-movement",
        "movement.chains.redundant_movement",
        "if (low, high) == (start, end):",
        "if high - low == end - start:",
        _JOINED.replace("REST", "v = Concat<axis = 1>(a, b)  y = Slice(v, four, eight, one)"),
    ),
    BrokenPass(
        "parts of a concatenation are joined in the wrong order",
        "redundant-movement",
        "movement.chains.redundant_movement",
        "parts.extend(inner.inputs)",
        "parts[:0] = inner.inputs",
        _JOINED.replace("[2, 8, 6] v", "[2, 12, 6] v").replace(
            "REST", "d = Concat<axis = 1>(b, c)  v = Concat<axis = 1>(a, d)  y = Exp(x)"
        ),
    ),
    BrokenPass(
        "parts of a split are given out backwards",
        "redundant-movement",
        "movement.chains.redundant_movement",
        "zip(node.outputs, concat.inputs, strict=True)",
        "zip(node.outputs, list(concat.inputs)[::-1], strict=True)",
        _JOINED.replace(
            "REST",
            "d = Concat<axis = 1>(a, b)  y, f = Split<axis = 1>(d)  v = Concat<axis = 1>(f, c)",
        ),
    ),
    BrokenPass(
        "the operands of a product are exchanged",
        "matmul-to-gemm",
        "recognise.matmul_to_gemm",
        '"Gemm", list(node.inputs)',
        '"Gemm", list(node.inputs)[::-1]',
        _MATRICES,
    ),
    BrokenPass(
        "a matrix that is transposed twice stays transposed",
        "matmul-to-gemm",
        "recognise.matmul_to_gemm",
        "node.attrs[flag] = 1 - int(node.attrs.get(flag, 0))",
        "node.attrs[flag] = 1",
        _MATRICES,
    ),
    BrokenPass(
        "what attention gives lies where windows do, not where their image does",
        "windows-in-attention",
        "movement.windows.windows_in_attention",
        "np.argsort(attending.rows)",
        "attending.rows",
        windows.swin(shift=1, mask=False),
        windows.WEIGHTS,
    ),
    BrokenPass(
        "a residual in another order than what it is added to is taken for one in the same",
        "windows-in-attention",
        "movement.windows.row_orders",
        "same = all(_equal(rows, orders[0]) for rows in orders)",
        "same = any(_equal(rows, orders[0]) for rows in orders)",
        windows.swin().replace(
            "y = Add(x, r)", "z = Reshape(x, s1)  q = Add(o, z)  y = Reshape(q, s2)"
        ),
        windows.WEIGHTS,
    ),
    BrokenPass(
        "a row is added as if its matrix still was turned",
        "turned-products",
        "products.turned_products",
        "array.reshape(-1, 1)",
        "array.reshape(1, -1)",
        _MIXED,
        "v b",
    ),
    BrokenPass(
        "values are not turned where their weights come first",
        "turned-weights",
        "products.turned_weights",
        "turned = product.transposed(match.product.inputs[0], perm)",
        "turned = match.product.inputs[0]",
        _WEIGHTED,
    ),
    BrokenPass(
        "pixels of an image lie as those of its transpose",
        "unfolded-pixels",
        "movement.windows.unfolded_pixels",
        "_LAST = [0, 2, 3, 1]",
        "_LAST = [0, 3, 2, 1]",
        _UNFOLDED,
    ),
    BrokenPass(
        "what is repeated is turned where it is not",
        "turned-expands",
        "movement.repeats.turned_expands",
        "turned, shape = parts.transposed(match.source, match.perm),",
        "turned, shape = match.source,",
        _REPEATED,
    ),
    BrokenPass(
        "columns are chosen for the wrong place in a row",
        "skewed-products",
        "products.skewed_products",
        "array[:, match.columns]",
        "array[:, match.columns[::-1]]",
        _SHIFTED,
        "w",
    ),
    BrokenPass(
        "pixels are put back as they were taken",
        "blocked-pixels",
        "movement.windows.blocked_pixels",
        "reshape(_sizes(lying)).transpose(_turned(lying, places))\n    whole",
        "reshape(_sizes(places)).transpose(_turned(places, lying))\n    whole",
        _BLOCKED,
        "w v",
    ),
    BrokenPass(
        "outputs of one group read the channels of its neighbour",
        "merged-groups",
        "products.merged_groups",
        "begin = row // outputs % together * depth",
        "begin = row % together * depth",
        _GROUPS_OF_TWO,
        "w",
    ),
    BrokenPass(
        "the first term alone is added to a product",
        "sums-around",
        "products.sums_around",
        "for term in match.terms[1:]:",
        "for term in match.terms[2:]:",
        _POSITIONS,
    ),
    BrokenPass(
        "a part is added to rows that begin with the first",
        "added-parts",
        "products.added_parts",
        "before[axis] += match.start\n        after[axis] += shape[axis] - match.start - count",
        "after[axis] += shape[axis] - count",
        _WRITTEN_BACK,
    ),
)
