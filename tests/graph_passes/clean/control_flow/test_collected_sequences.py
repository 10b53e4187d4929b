"""What a Loop appends to a list becomes what it collects, as torch's exporter writes lists of scripted loops."""

import numpy as np
import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.clean.control_flow.collected_sequences import CollectedSequences

H = '<ir_version: 8, opset_import: ["" : 17]>'


def loop(joined: str, join: str, ports: str = "float[2, 3] x, int64 n") -> str:
    return f"""{H} g ({ports}) => (float[2, 3] y, float[{joined}] z) <bool t = {{1}}> {{
        e = SequenceEmpty<dtype = 1>()
        y, s = Loop <body = b (int64 i, bool c, float[2, 3] p, seq(float[2, 3]) q)
            => (bool d, float[2, 3] o, seq(float[2, 3]) r) {{
            d = Identity(c)  o = Add(p, x)  u = Tanh(o)  r = SequenceInsert(q, u) }}> (n, t, x, e)
        z = ConcatFromSequence<{join}>(s) }}"""


@pytest.mark.parametrize(
    ("joined", "join", "moved"),
    [
        ("k, 2, 3", "axis = 0, new_axis = 1", "Identity"),
        ("2, k, 3", "axis = 1, new_axis = 1", "Transpose"),
        ("2, 3, k", "axis = -1, new_axis = 1", "Transpose"),
        ("k, 3", "axis = 0", "Reshape"),
        ("k, 3", "axis = -2, new_axis = 0", "Reshape"),
    ],
)
def test_a_list_that_is_joined(prove, joined, join, moved):
    proof = prove(loop(joined, join), CollectedSequences(), batches=(2,))
    assert moved in proof.ops
    assert not [op for op in proof.ops if "Sequence" in op]


def test_two_lists_of_which_one_is_joined_twice(load, run_model, export):
    text = f"""{H} g (float[3] x, int64 n) => (float[k, 3] y, float[3, k] z, float[k] w) {{
        e = SequenceEmpty<dtype = 1>()  f = SequenceEmpty<dtype = 1>()
        v, s, r = Loop <body = b (int64 i, bool c, float[3] p, seq(float[3]) q, seq(float[3]) h)
            => (bool d, float[3] o, seq(float[3]) t, seq(float[3]) m) {{
            d = Identity(c)  o = Mul(p, x)  a = Sub(o, x)  t = SequenceInsert(q, o)
            m = SequenceInsert(h, a) }}> (n, , x, e, f)
        y = ConcatFromSequence<axis = 0, new_axis = 1>(s)  z = ConcatFromSequence<axis = 1, new_axis = 1>(s)
        w = ConcatFromSequence<axis = 0>(r) }}"""
    before, after = load(text), load(text)
    run_passes(after, [CollectedSequences()])
    assert not [node.op for node in after.nodes if "Sequence" in node.op]
    feeds = {"x": np.array([0.5, -1.25, 2.0], np.float32), "n": np.array(4)}
    for old, new in zip(
        run_model(export(before), feeds), run_model(export(after), feeds), strict=True
    ):
        assert old.shape == new.shape
        assert (old == new).all()


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (
            "r = SequenceInsert(q, u)",
            "w = Constant<value_int = 0>()  r = SequenceInsert(q, u, w)",
            "append",
        ),
        ("r = SequenceInsert(q, u)", "r = Identity(q)", "append"),
        (
            "r = SequenceInsert(q, u)",
            "m = SequenceLength(q)  f = Cast<to = 1>(m)  v = Add(u, f)  r = SequenceInsert(q, v)",
            "more with the sequence",
        ),
        ("z = Concat", "l = SequenceLength(s)  z = Concat", "'s' is not only joined"),
        ("axis = 0", "axis = 1", "along another axis than the first"),
    ],
)
def test_a_list_that_is_used_otherwise_stays(load, old, new, why):
    graph = load(loop("k, 3", "axis = 0").replace(old, new))
    result = CollectedSequences()(graph)
    assert result.rewritten == 0
    assert why in result.refusals[0].reason
