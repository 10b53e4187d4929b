"""A Loop that takes a turn for each row of a tensor becomes a Scan, as torch's exporter writes ``for`` loops."""

import pytest

from wpk.graph_passes.clean.control_flow.loops_to_scans import LoopsToScans

H = '<ir_version: 8, opset_import: ["" : 17]>'

ROWS = f"""{H} g (float[N, 2, 3] x, float[N, 3] w, float[2, 3] s) => (float[2, 3] y, float[N, 2, 3] z)
    <int64 zero = {{0}}, bool t = {{1}}> {{
    k = Tanh(s)  l = Shape(x)  n = Gather(l, zero)
    y, z = Loop <body = b (int64 i, bool c, float[2, 3] p) => (bool d, float[2, 3] o, float[2, 3] u) {{
        d = Cast<to = 9>(c)  r = Gather<axis = 0>(x, i)  v = Gather(w, i)  q = Gather(x, i)
        a = Add(r, p)  h = Mul(a, v)  o = Sub(h, k)  u = Mul(o, q) }}> (n, t, s) }}"""


@pytest.mark.parametrize("size", ["N", "4"])
def test_a_turn_for_each_row(prove, size):
    text = ROWS.replace("N,", f"{size},")
    proof = prove(text, LoopsToScans(), batches=(1, 5))
    (node,) = [each for each in proof.graph.nodes if each.op in ("Scan", "Loop")]
    assert node.op == "Scan"
    assert [t.name for t in node.inputs] == ["s", "x", "w"]
    assert "Gather" not in [each.op for each in node.attrs["body"].nodes]
    (z,) = [t for t in proof.graph.outputs if t.name == "z"]
    assert z.shape[0] in ("N", 4)


def test_a_row_that_is_given_back_and_an_if_inside(prove):
    text = f"""{H} g (float[N, 3] x, float[3] s) => (float[3] y, float[N, 3] z) <int64 zero = {{0}}> {{
        l = Shape(x)  n = Gather(l, zero)
        y, z = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] o, float[3] r) {{
            d = Identity(c)  r = Gather(x, i)  m = ReduceSum<keepdims = 0>(p)  f = Cast<to = 9>(m)
            o = If(f) <then_branch = a () => (float[3] e) {{ e = Sub(r, p) }},
                       else_branch = w () => (float[3] g) {{ g = Neg(r) }}> }}> (n, , s) }}"""
    assert "Scan" in prove(text, LoopsToScans(), batches=(1, 4)).ops


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("h = Mul(a, v)", "f = Cast<to = 1>(i)  h = Mul(a, f)", "the turn's number in Cast"),
        ("v = Gather(w, i)", "v = Gather<axis = 1>(w, i)", "the turn's number in Gather"),
        ("v = Gather(w, i)", "v = Gather(p, i)", "the turn's number in Gather"),
        ("n = Gather(l, zero)", "m = Gather(l, zero)  n = Add(m, m)", None),
        ("d = Cast<to = 9>(c)", "d = Cast<to = 9>(i)", None),
        ("float[N, 3] w", "float[M, 3] w", "the turn's number in Gather"),
    ],
)
def test_other_loops_stay(load, old, new, why):
    assert old in ROWS
    result = LoopsToScans()(load(ROWS.replace(old, new)))
    assert result.rewritten == 0
    assert why is None or why in result.refusals[0].reason
