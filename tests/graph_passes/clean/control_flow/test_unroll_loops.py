"""A loop of a known number of steps becomes that many copies of its body."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes import run_passes
from wpk.graph_passes.catalogue import simplifying_passes
from wpk.graph_passes.clean.control_flow import unroll_loops
from wpk.graph_passes.clean.control_flow.unroll_loops import UnrollLoops
from wpk.graph_passes.clean.definitions.function_bodies import FunctionBodies

H = '<ir_version: 8, opset_import: ["" : 17]>'
OLD = '<ir_version: 8, opset_import: ["" : 11]>'
NEW = '<ir_version: 13, opset_import: ["" : 27]>'
SUM = "b (float[2, 3] p, float[2, 3] t) => (float[2, 3] q, float[2, 3] u) { q = Sub(t, p) u = Mul(q, k) }"

SCANS = {
    "a state and an output": f"""g (float[2, 3] s, float[5, 2, 3] x) => (float[2, 3] y, float[5, 2, 3] z) {{
        k = Tanh(s) y, z = Scan <num_scan_inputs = 1, body = {SUM}> (s, x) }}""",
    "backwards in, forward out": f"""g (float[2, 3] s, float[5, 2, 3] x) => (float[2, 3] y, float[5, 2, 3] z) {{
        k = Tanh(s) y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = {SUM}> (s, x) }}""",
    "forward in, backwards out": f"""g (float[2, 3] s, float[5, 2, 3] x) => (float[2, 3] y, float[5, 2, 3] z) {{
        k = Tanh(s) y, z = Scan <num_scan_inputs = 1, scan_output_directions = [1], body = {SUM}> (s, x) }}""",
    "other axes": f"""g (float[2, 3] s, float[2, 5, 3] x) => (float[2, 3] y, float[2, 3, 5] z) {{ k = Tanh(s)
        y, z = Scan <num_scan_inputs = 1, scan_input_axes = [-2], scan_output_axes = [-1], body = {SUM}> (s, x) }}""",
    "a free batch": """g (float[N, 3] s, float[N, 4, 3] x) => (float[N, 3] y, float[N, 4, 3] z) {
        y, z = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
            body = b (float[M, 3] p, float[M, 3] t) => (float[M, 3] q, float[M, 3] u) {
            q = Sub(t, p) u = Tanh(q) }> (s, x) }""",
    "states that change places": """g (float[3] s, float[3] r, float[4, 3] x, float[3, 4] w)
        => (float[3] y, float[3] v, float[4, 3] z, float[3, 4] a, float[4] n) {
        y, v, z, a, n = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
            scan_output_axes = [0, 1, 0], scan_output_directions = [1, 0, 0],
            body = b (float[3] p, float[3] o, float[3] t, float[3] m)
            => (float[3] q, float[3] i, float[3] u, float[3] e, float c) {
            q = Mul(o, t) i = Sub(p, m) u = Identity(q) e = Tanh(i)
            c = ReduceSum<keepdims = 0>(u) }> (s, r, x, w) }""",
    "no state": """g (float[4, 3] x) => (float[4, 3] z) {
        z = Scan <num_scan_inputs = 1, body = b (float[3] t) => (float[3] u) { u = Exp(t) }> (x) }""",
    "a state that is passed on": """g (float[3] s, float[4, 3] x) => (float[3] y, float[4, 3] z) {
        y, z = Scan <num_scan_inputs = 1, body = b (float[3] p, float[3] t) => (float[3] q, float[3] u) {
        q = Identity(p) u = Mul(t, p) }> (s, x) }""",
    "a state that nobody reads": """g (float[3] s, float[4, 3] x) => (float[4, 3] z) {
        y, z = Scan <num_scan_inputs = 1, body = b (float[3] p, float[3] t) => (float[3] q, float[3] u) {
        q = Sub(t, p) u = Neg(q) }> (s, x) }""",
    "one step": f"""g (float[2, 3] s, float[1, 2, 3] x) => (float[2, 3] y, float[1, 2, 3] z) {{
        k = Tanh(s) y, z = Scan <num_scan_inputs = 1, body = {SUM}> (s, x) }}""",
}

COUNTED = """body = b (int64 i, bool c, float[2, 3] p) => (bool d, float[2, 3] q, float[2, 3] u) {
    COND f = Cast<to = 1>(i) g = Add(p, x) q = Mul(g, f) u = Sub(q, k) }"""
LOOPS = {
    "its condition is passed on": "d = Identity(c)",
    "its condition is passed on as torch does": "d = Cast<to = 9>(c)",
    "its condition is constant": "d = Constant<value = bool {1}>()",
    "its condition is a constant's": "e = Constant<value = bool {1}>() d = Identity(e)",
}


def loop(condition: str, runs: str = "t") -> str:
    return f"""g (float[2, 3] s, float[2, 3] x) => (float[2, 3] y, float[4, 2, 3] z)
        <int64 n = {{4}}, bool t = {{1}}> {{
        k = Tanh(x) y, z = Loop <{COUNTED.replace("COND", condition)}> (n, {runs}, s) }}"""


@pytest.mark.parametrize("header", [H, OLD], ids=["new", "old"])
@pytest.mark.parametrize("case", SCANS)
def test_a_scan_becomes_its_steps(prove, case, header):
    text = SCANS[case]
    if header is OLD:
        text = text.replace("ReduceSum<keepdims = 0>", "ReduceSum<keepdims = 0, axes = [0]>")
    proof = prove(f"{header} {text}", UnrollLoops(), batches=(1, 3))
    assert "Scan" not in proof.ops
    steps = 1 if case == "one step" else 5 if "5, " in text or ", 5" in text else 4
    assert proof.ops.count("Squeeze") == steps * (2 if "change places" in case else 1)


@pytest.mark.parametrize("runs", ["t", ""], ids=["given", "left out"])
@pytest.mark.parametrize("case", LOOPS)
def test_a_loop_becomes_its_steps(prove, case, runs):
    proof = prove(f"{H} {loop(LOOPS[case], runs)}", UnrollLoops())
    assert "Loop" not in proof.ops
    assert proof.ops.count("Sub") == 4


@pytest.mark.parametrize(("count", "runs"), [(0, 1), (-1, 1), (3, 0)])
def test_a_loop_that_never_runs_gives_its_states(prove, count, runs):
    proof = prove(
        f"""{H} g (float[2, 3] s) => (float[2, 3] y) <int64 n = {{{count}}}, bool t = {{{runs}}}> {{
        y = Loop <body = b (int64 i, bool c, float[2, 3] p) => (bool d, float[2, 3] q) {{
        d = Identity(c) q = Neg(p) }}> (n, t, s) }}""",
        UnrollLoops(),
    )
    assert proof.ops == ["Identity"]


def test_an_output_may_be_left_out(load):
    graph = load(f"{H} {SCANS['a state that nobody reads'].replace('y, z', ', z')}")
    assert UnrollLoops()(graph).rewritten == 1
    assert [node.op for node in graph.nodes].count("Neg") == 4
    assert graph.nodes[-1].op == "Concat"


def test_what_a_body_holds_is_copied_with_it(prove):
    proof = prove(
        f"""{H} g (float[3] s) => (float[3] y, float[4, 3] z) <int64 n = {{4}}> {{
        k = Tanh(s)
        y, z = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q, float[3] u)
            <float two = {{2.0}}, int64 late = {{2}}> {{
            d = Identity(c) w = Less(i, late) h = Mul(p, two)
            q = If (w) <then_branch = a () => (float[3] m) {{ v = Sub(h, k) m = Mul(v, k) }},
                        else_branch = e () => (float[3] o) {{ o = Add(h, k) }}>
            u = Sub(q, two) }}> (n, , s) }}""",
        UnrollLoops(),
    )
    assert proof.ops.count("If") == 4
    branches = [g for node in proof.graph.nodes for g in node.subgraphs()]
    assert len({id(branch) for branch in branches}) == 8
    assert len({t.name for branch in branches for n in branch.nodes for t in n.outputs}) == 12


def test_a_loop_in_a_body_is_unrolled_in_the_next_round(prove):
    proof = prove(
        f"""{H} g (float[3] s, float[4, 3] x) => (float[3] y, float[4, 2, 3] z)
        <int64 n = {{2}}, bool c = {{1}}> {{
        y, z = Scan <num_scan_inputs = 1, body = b (float[3] p, float[3] t) => (float[3] q, float[2, 3] u) {{
            q, u = Loop <body = l (int64 i, bool d, float[3] m) => (bool e, float[3] o, float[3] r) {{
                e = Identity(d) o = Sub(t, m) r = Mul(o, p) }}> (n, c, p) }}> (s, x) }}""",
        UnrollLoops(),
        settle=True,
    )
    assert {"Scan", "Loop"}.isdisjoint(proof.ops)
    assert proof.ops.count("Sub") == 8


def test_two_loops_may_use_the_same_names(prove):
    scan = f"Scan <num_scan_inputs = 1, body = {SUM}>"
    proof = prove(
        f"""{H} g (float[2, 3] s, float[5, 2, 3] x, float[2, 3] k) => (float[2, 3] y, float[5, 2, 3] z) {{
        r, m = {scan} (s, x)  y, z = {scan} (r, m) }}""",
        UnrollLoops(),
        rewritten=2,
        settle=True,
    )
    assert proof.ops.count("Sub") == 10


def test_nobody_reads_for_the_body_any_more(load):
    graph = load(f"{H} {SCANS['a state and an output']}")
    UnrollLoops()(graph)
    assert [reader.op for reader in graph.tensors()["k"].outputs] == ["Mul"] * 5
    assert all(any(r is node for node in graph.nodes) for r in graph.tensors()["k"].outputs)


def test_steps_become_known_through_folding(load):
    graph = load(f"""{OLD} g (float[2, 3] x) => (float[2, 3] y) <float m = {{1.5}}> {{
        h = Shape(x) o = Constant<value = int64 {{1}}>() n = Gather(h, o) t = Cast<to = 9>(n)
        y = Loop <body = b (int64 i, bool c, float[2, 3] p) => (bool d, float[2, 3] q) {{
            d = Identity(c) f = Cast<to = 1>(i) g = Mul(m, f) q = Sub(g, p) }}> (n, t, x) }}""")
    run_passes(graph, simplifying_passes())
    assert "Loop" not in [node.op for node in graph.nodes]
    assert graph.opset > 11  # no loop stands in the way of the newer forms


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention_comes_down_to_its_steps(load, export, rule):
    decay, beta = "gated" in rule, "delta" in rule
    text = f"""{NEW} g (float[2, 5, 24] q, float[2, 5, 12] k, float[2, 5, 15] v, float[2, 5, 12] d,
        float[2, 5, 3] b) => (float[2, 5, 30] y, float[2, 3, 4, 5] s) {{ y, s = LinearAttention
        <q_num_heads = 6, kv_num_heads = 3, update_rule = "{rule}">
        (q, k, v, , {"d" if decay else ""}, {"b" if beta else ""}) }}"""
    graph = load(text)
    run_passes(graph, [UnrollLoops(), FunctionBodies()])
    assert {"LinearAttention", "Scan", "CastLike"}.isdisjoint(node.op for node in graph.nodes)
    model = gs.export_onnx(graph)
    onnx.checker.check_model(model, full_check=True)
    rng = np.random.default_rng(0)
    feeds = {t.name: rng.standard_normal(t.shape).astype(np.float32) / 2 for t in graph.inputs}
    before, after = (
        ReferenceEvaluator(each).run(None, feeds) for each in (onnx.parser.parse_model(text), model)
    )
    for old, new in zip(before, after, strict=True):
        np.testing.assert_allclose(new, old, rtol=0, atol=64 * 2.0**-24 * float(np.abs(old).max()))


REFUSED = {
    "its number of steps, dimension 0 of 'x', is not known": """g (float[3] s, float[N, 3] x)
        => (float[3] y, float[N, 3] z) { y, z = Scan <num_scan_inputs = 1,
        body = b (float[3] p, float[3] t) => (float[3] q, float[3] u) { q = Sub(t, p) u = Neg(q) }> (s, x) }""",
    "its number of steps 'n' is not constant": """g (float[3] x, int64 n) => (float[3] y) <bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q) {
        d = Identity(c) q = Neg(p) }> (n, t, x) }""",
    "its condition 't' is not constant": """g (float[3] x, bool t) => (float[3] y) <int64 n = {3}> {
        y = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q) {
        d = Identity(c) q = Neg(p) }> (n, t, x) }""",
    "its condition 'd' may end it after any step": """g (float x) => (float y)
        <int64 n = {3}, bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float p) => (bool d, float q) {
        d = Greater(p, x) q = Neg(p) }> (n, t, x) }""",
    "its condition 'e' may end it after any step": """g (float[3] x) => (float[3] y)
        <int64 n = {3}, bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[3] p) => (bool e, float[3] q) {
        e = Constant<value = bool {0}>() q = Neg(p) }> (n, t, x) }""",
    "it has no number of steps, and ends never": """g (float[3] x) => (float[3] y) <bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q) {
        d = Identity(c) q = Neg(p) }> (, t, x) }""",
    "its state 'p' is no tensor": """g (float[2, 3] x) => (float[N, 3] y) <int64 n = {3}, bool t = {1}> {
        s = SequenceEmpty <dtype = 1> ()
        r = Loop <body = b (int64 i, bool c, seq(float[2, 3]) p) => (bool d, seq(float[2, 3]) q) {
        d = Identity(c) q = SequenceInsert(p, x) }> (n, t, s)
        y = ConcatFromSequence <axis = 0> (r) }""",
    "its body has NonZero, which is not supported": """g (float[3] x) => (float[3] y, int64[N, 1, M] z)
        <int64 n = {3}, bool t = {1}> {
        y, z = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q, int64[1, M] u) {
        d = Identity(c) q = Neg(p) u = NonZero(p) }> (n, t, x) }""",
    "its body has If, and 'w', which decides it, is computed": """g (float[3] x) => (float[3] y)
        <int64 n = {2}, float one = {1.0}> {
        y = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q) {
            d = Identity(c) m = ReduceMax<keepdims = 0>(p) w = Less(m, one)
            q = If (w) <then_branch = a () => (float[3] t) { t = Neg(p) },
                        else_branch = e () => (float[3] o) { o = Abs(p) }> }> (n, , x) }""",
    "its body has Loop, and 'm', which decides it, is computed": """g (float[3] x, int64 m) => (float[3] y)
        <int64 n = {2}> {
        y = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q) {
            d = Identity(c) q = Loop <body = l (int64 j, bool e, float[3] r) => (bool f, float[3] o) {
                f = Identity(e) o = Neg(r) }> (m, , p) }> (n, , x) }""",
    "4 copies of its 2 nodes would be 8 nodes, more than 7": """g (float[3] x) => (float[3] y)
        <int64 n = {4}, bool t = {1}> {
        y = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q) {
        d = Identity(c) q = Neg(p) }> (n, t, x) }""",
    "it has no steps, and 'z' is empty": """g (float[3] x) => (float[3] y, float[N, 3] z)
        <int64 n = {0}, bool t = {1}> {
        y, z = Loop <body = b (int64 i, bool c, float[3] p) => (bool d, float[3] q, float[3] u) {
        d = Identity(c) q = Neg(p) u = Abs(p) }> (n, t, x) }""",
}


@pytest.mark.parametrize("reason", REFUSED)
def test_what_cannot_be_unrolled_stays(refusals, monkeypatch, reason):
    monkeypatch.setattr(unroll_loops, "MAX_NODES", 7)
    assert refusals(f"{H} {REFUSED[reason]}", UnrollLoops()) == [reason]


def test_a_scan_with_lengths_of_sequences_stays(load):
    graph = load(f"{H} {SCANS['no state']}")
    graph.opset = 8
    (refusal,) = UnrollLoops()(graph).refusals
    assert refusal.reason == "a Scan of opset 8 has a batch and lengths of sequences"
