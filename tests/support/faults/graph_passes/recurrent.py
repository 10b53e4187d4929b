"""Faults in what brings recurrent operators to one form and parts them, and in unrolled loops."""

from __future__ import annotations

from support.faults.graph_passes.broken_pass import BrokenPass

_PARTS = "float[D, 16, 3] w, float[D, 16, 4] r, float[D, 32] b"
_CONSTANTS = "w r b"


def _model(ways: int, ports: str, nodes: str) -> str:
    head = '<ir_version: 8, opset_import: ["" : 17]> g '
    return head + ports.replace("PARTS", _PARTS.replace("D", str(ways))) + f" {{ {nodes} }}"


_BATCH_FIRST = _model(
    1,
    "(float[2, 5, 3] x, PARTS) => (float[5, 1, 2, 4] y)",
    "t = Transpose<perm = [1, 0, 2]>(x)  y = LSTM<hidden_size = 4>(t, w, r, b)",
)
_BOTH = _model(
    2,
    "(float[5, 2, 3] x, PARTS) => (float[5, 2, 2, 4] y)",
    'y = LSTM<hidden_size = 4, direction = "bidirectional">(x, w, r, b)',
)
_LAST = _model(
    1,
    "(float[5, 2, 3] x, PARTS) => (float[1, 2, 4] h)",
    "y, h = LSTM<hidden_size = 4>(x, w, r, b)",
)
_CELLS = _model(
    1,
    "(float[5, 2, 3] x, PARTS) => (float[5, 1, 2, 4] y, float[1, 2, 4] c)",
    "y, h, c = LSTM<hidden_size = 4>(x, w, r, b)",
)
_SCAN = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] s, float[4, 2, 3] x)
    => (float[2, 3] y, float[4, 2, 3] z) {
    y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = b (float[2, 3] p, float[2, 3] t)
        => (float[2, 3] q, float[2, 3] u) { q = Sub(t, p)  u = Tanh(q) }> (s, x) }"""
_STAYING_SCAN = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 4] s, float[4, 4, 4] x)
    => (float[4, 4] y, float[4, 4, 4] z) {
    y, z = Scan <num_scan_inputs = 1, scan_output_axes = [-1], body = b (float[4, 4] p, float[4, 4] t)
        => (float[4, 4] q, float[4, 4] v) {
        u = LpNormalization<axis = 0>(t)  q = Sub(u, p)  v = Tanh(q) }> (s, x) }"""
_LOOP = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y)
    <int64 n = {3}, bool t = {1}> {
    y = Loop <body = b (int64 i, bool c, float[2, 3] p) => (bool d, float[2, 3] q) {
        d = Identity(c)  f = Cast<to = 1>(i)  e = Mul(f, x)  q = Add(e, p) }> (n, t, x) }"""

_ROWS = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 4] s, float[4, 4, 4] x, float[4, 4, 4] w)
    => (float[4, 4] y, float[4, 4, 4] z) <int64 m = {4}> {
    y, z = Loop <body = b (int64 i, bool c, float[4, 4] p) => (bool d, float[4, 4] q, float[4, 4] v) {
        d = Identity(c)  t = Gather(x, i)  h = Gather(w, i)  k = Sub(t, h)
        u = LpNormalization<axis = 0>(k)  q = Sub(u, p)  v = Tanh(q) }> (m, , s) }"""
_LIST = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x)
    => (float[2, 3] y, float[k, 2, 3] z) <int64 n = {4}> {
    e = SequenceEmpty<dtype = 1>()
    y, s = Loop <body = b (int64 i, bool c, float[2, 3] p, seq(float[2, 3]) q)
        => (bool d, float[2, 3] o, seq(float[2, 3]) r) {
        d = Identity(c)  o = Sub(x, p)  u = Tanh(o)  r = SequenceInsert(q, u) }> (n, , x, e)
    z = ConcatFromSequence<axis = 0, new_axis = 1>(s) }"""

FAULTS = (
    BrokenPass(
        "all rows are those of the first tensor",
        "loops-to-scans",
        "clean.control_flow.loops_to_scans",
        "parts[list(rows).index(id(whole))]",
        "parts[0]",
        _ROWS,
    ),
    BrokenPass(
        "a list holds what the state was before",
        "collected-sequences",
        "clean.control_flow.collected_sequences",
        "name, {}, [match.part], [part]",
        "name, {}, [body.inputs[2]], [part]",
        _LIST,
    ),
    BrokenPass(
        "a scan backwards begins at the front",
        "unroll-loops",
        "clean.control_flow.unroll_loops",
        "loop.steps - 1 - step if along.backwards else step",
        "step if along.backwards else loop.steps - 1 - step",
        _SCAN,
    ),
    BrokenPass(
        "a scan's parts are put together along the other axis",
        "scan-axes",
        "clean.control_flow.scan_axes",
        "[order.index(axis) for axis in range(len(order))]",
        "list(range(len(order)))",
        _STAYING_SCAN,
    ),
    BrokenPass(
        "steps are counted from one",
        "unroll-loops",
        "clean.control_flow.unroll_loops",
        "np.int64(step)",
        "np.int64(step + 1)",
        _LOOP,
    ),
    BrokenPass(
        "steps go backwards where the batch is in front",
        "recurrent-batch-first",
        "recurrent.batch_first",
        '{**node.attrs, "layout": 1}',
        '{**node.attrs, "layout": 1, "direction": "reverse"}',
        _BATCH_FIRST,
        _CONSTANTS,
    ),
    BrokenPass(
        "both directions have the weights of the first",
        "recurrent-directions",
        "recurrent.directions",
        "cut(editor, tensor, axis, number, 1, name)",
        "cut(editor, tensor, axis, 0, 1, name)",
        _BOTH,
        _CONSTANTS,
    ),
    BrokenPass(
        "the last state is that of the first step",
        "recurrent-states",
        "recurrent.states",
        'match.directions == ("reverse",)',
        'match.directions == ("forward",)',
        _LAST,
        _CONSTANTS,
    ),
    BrokenPass(
        "the last c is the last h",
        "recurrent-operators",
        "recurrent.operators",
        "steps + place - 1",
        "steps",
        _CELLS,
        _CONSTANTS,
    ),
)
