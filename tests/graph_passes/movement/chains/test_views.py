"""Views become strides of the operators around them."""

import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes import called, run_passes
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.fusion.hoist import HoistOverViews
from wpk.graph_passes.fusion.split import SplitBeforeViews
from wpk.graph_passes.movement.chains.views import trace

H = '<ir_version: 8, opset_import: ["" : 20]>'

ATTENTION = f"""{H} g (float[N, 5, 24] x, float[24, 24] wq, float[24, 24] wk, float[24, 24] wv)
    => (float[N, 5, 24] y) <int64[4] heads = {{0, 5, 3, 8}}, int64[3] merged = {{0, 5, 24}}> {{
    q = MatMul(x, wq)  qh = Reshape(q, heads)  qt = Transpose<perm = [0, 2, 1, 3]>(qh)
    k = MatMul(x, wk)  kh = Reshape(k, heads)  kt = Transpose<perm = [0, 2, 3, 1]>(kh)
    v = MatMul(x, wv)  vh = Reshape(v, heads)  vt = Transpose<perm = [0, 2, 1, 3]>(vh)
    s = MatMul(qt, kt)  p = Softmax(s)  o = MatMul(p, vt)
    ot = Transpose<perm = [0, 2, 1, 3]>(o)  y = Reshape(ot, merged) }}"""


def test_attention_has_no_transposes_of_its_own(prove):
    proof = prove(ATTENTION, FuseOperators(), constants="wq wk wv", rewritten=4, batches=(1, 2))
    assert [op.split("_")[0] for op in proof.ops] == ["matmul"] * 3 + ["attention"]
    attention = called(proof.graph, proof.graph.nodes[3])
    assert [tensor.shape for tensor in attention.inputs] == [["N", 5, 24]] * 3
    output = attention.outputs[0]
    assert output.shape == ["N", 5, 24]


def test_views_that_several_products_read_are_copied_into_each(prove):
    proof = prove(
        f"""{H} g (float[2, 5, 24] x, float[2, 3, 5, 8] a, float[2, 3, 5, 8] b)
        => (float[2, 3, 5, 5] y, float[2, 3, 5, 5] z) <int64[4] heads = {{2, 5, 3, 8}}> {{
        r = Reshape(x, heads)  t = Transpose<perm = [0, 2, 3, 1]>(r)
        y = MatMul(a, t)  z = MatMul(b, t) }}""",
        FuseOperators(),
        rewritten=2,
    )
    assert proof.ops == ["matmul_0", "matmul_1"]


def test_a_transpose_before_an_element_wise_graph_becomes_its_strides(prove):
    proof = prove(
        f"""{H} g (float[2, 5, 6] x, float[2, 6, 5] z) => (float[2, 6, 5] y) {{
        t = Transpose<perm = [0, 2, 1]>(x)  s = Add(t, z)  y = Relu(s) }}""",
        FuseOperators(),
    )
    assert proof.ops == ["add_relu_0"]


def test_a_patch_embedding_writes_its_tokens(prove):
    proof = prove(
        f"""{H} g (float[N, 3, 8, 8] x, float[16, 3, 4, 4] w) => (float[N, 4, 16] y)
        <int64[3] flat = {{0, 16, 4}}> {{
        c = Conv<strides = [4, 4]>(x, w)  r = Reshape(c, flat)
        y = Transpose<perm = [0, 2, 1]>(r) }}""",
        FuseOperators(),
        constants="w",
        batches=(1, 2),
    )
    assert proof.ops == ["conv_0"]


def test_says_which_views_have_no_single_stride(load):
    graph = load(
        f"""{H} g (float[2, 3, 5, 8] x, float[24, 7] w) => (float[2, 5, 7] y)
        <int64[3] merged = {{2, 5, 24}}> {{
        t = Transpose<perm = [0, 2, 1, 3]>(x)  r = Reshape(t, merged)  y = MatMul(r, w) }}""",
        "w",
    )
    result = FuseOperators()(graph)
    assert [r.reason for r in result.refusals] == [
        "'r' cannot be read in place from 'x': a dimension would have no single stride"
    ]
    assert [node.op for node in graph.nodes] == ["Transpose", "Reshape", "matmul_0"]


def test_says_which_views_cannot_be_written(load):
    graph = load(
        f"""{H} g (float[1, 4, 2, 2] x, float[6, 4, 1, 1] w) => (float[1, 6, 2, 2] y)
        <int64[5] split = {{1, 2, 3, 2, 2}}, int64[4] merged = {{1, 6, 2, 2}}> {{
        c = Conv(x, w)  r = Reshape(c, split)  t = Transpose<perm = [0, 2, 1, 3, 4]>(r)
        y = Reshape(t, merged) }}""",
        "w",
    )
    result = FuseOperators()(graph)
    assert ["cannot be written in place" in r.reason for r in result.refusals] == [True]


@pytest.mark.parametrize(
    ("source", "steps", "reads", "writes", "moves"),
    [
        ([2, 5, 24], [("Reshape", [2, 5, 3, 8])], True, True, False),
        ([2, 5, 24], [("Reshape", [2, 5, 3, 8]), ("T", [0, 2, 1, 3])], True, False, True),
        ([2, 3, 5, 8], [("T", [0, 2, 1, 3]), ("Reshape", [2, 5, 24])], False, True, True),
        (["N", 6, 4], [("T", [0, 2, 1])], True, True, True),
        (["N", 6, 4], [("Reshape", ["N", 24])], True, True, False),
        ([1, 6, 4], [("T", [1, 0, 2])], True, True, False),
        ([4, 6], [("Reshape", [3, 8])], None, None, None),
        ([6, 4], [("Reshape", [2, 12]), ("T", [1, 0])], True, False, True),
    ],
)
def test_factors_say_what_views_do_to_memory(source, steps, reads, writes, moves):
    tensor = gs.Variable("x", None, source)
    chain = []
    for number, (op, detail) in enumerate(steps):
        before = chain[-1].outputs[0] if chain else tensor
        shape = [before.shape[axis] for axis in detail] if op == "T" else detail
        after = gs.Variable(f"t{number}", None, shape)
        if op == "T":
            chain.append(gs.Node("Transpose", f"n{number}", {"perm": detail}, [before], [after]))
        else:
            chain.append(gs.Node("Reshape", f"n{number}", {}, [before], [after]))
    views = trace(tensor, chain)
    if reads is None:
        assert views is None
        return
    assert views is not None
    assert (views.reads_strided(), views.writes_strided(), views.moves()) == (reads, writes, moves)


def test_a_scale_is_hoisted_over_the_views_before_it(prove):
    proof = prove(
        f"""{H} g (float[N, 5, 24] x, float[24, 24] w) => (float[N, 3, 5, 8] y)
        <int64[4] heads = {{0, 5, 3, 8}}, float s = {{0.35}}> {{
        q = MatMul(x, w)  r = Reshape(q, heads)  t = Transpose<perm = [0, 2, 1, 3]>(r)
        y = Mul(t, s) }}""",
        HoistOverViews(),
        constants="w",
        batches=(1, 2),
    )
    assert proof.ops == ["MatMul", "Mul", "Reshape", "Transpose"]


@pytest.mark.parametrize(
    ("reader", "behind"),
    [("y = Exp(c)", "Cast"), ("y = Mul(c, v)", "Reshape"), ("y = Softmax(c)", "Reshape")],
    ids=["follows it", "has a tensor of its own", "is no element-wise node"],
)
def test_a_widening_cast_is_hoisted_where_its_reader_may_follow(load, reader, behind):
    graph = load(
        f"""{H} g (float16[4, 6] x, float16[6, 6] w, float[2, 2, 6] v) => (float[2, 2, 6] y)
        <int64[3] s = {{2, 2, 6}}> {{ a = MatMul(x, w)  r = Reshape(a, s)  c = Cast<to = 1>(r)  {reader} }}"""
    )
    HoistOverViews()(graph)
    assert [node.op for node in graph.nodes][:2] == ["MatMul", behind]


def test_what_lies_between_hoisted_views_gets_a_new_name(prove):
    proof = prove(
        f"""{H} g (float[4, 6] x) => (float[2, 2, 6] y) <int64[3] s = {{2, 2, 6}}> {{
        q = Neg(x)  t = Transpose(q)  u = Transpose(t)  r = Reshape(u, s)  y = Relu(r) }}""",
        HoistOverViews(),
    )
    names = {tensor.name for node in proof.graph.nodes for tensor in node.outputs}
    assert names.isdisjoint({"t", "u"})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("t = Transpose(x)  y = Relu(t)  z = Neg(x)", "'x' is not made by an operator"),
        ("q = Neg(x)  t = Transpose(q)  y = Relu(t)  z = Abs(q)", "'q' has 2 readers"),
        ("z = Neg(x)  t = Transpose(z)  y = Relu(t)", "'z' is a graph output"),
    ],
)
def test_says_why_nothing_is_hoisted(refusals, body, reason):
    text = f"{H} g (float[4, 4] x) => (float[4, 4] y, float[4, 4] z) {{ {body} }}"
    assert any(reason in given for given in refusals(text, HoistOverViews()))


def test_says_that_shapes_are_not_known(load):
    graph = load(
        f"""{H} g (float[N, M, 8] x, float[8, 8] w) => (float[K, 8] y)
        <int64[2] flat = {{-1, 8}}> {{ r = Reshape(x, flat)  y = MatMul(r, w) }}""",
        "w",
    )
    result = FuseOperators()(graph)
    assert [r.reason for r in result.refusals] == []
    graph = load(
        f"""{H} g (float[N, 8] x, float[4, 8] w, int64[2] s) => (float[K, 8] y) {{
        r = Reshape(x, s)  y = MatMul(r, w) }}""",
        "w",
    )
    result = FuseOperators()(graph)
    assert [r.reason for r in result.refusals] == ["the shapes between 'x' and 'r' are not known"]


TAKEN_APART = {
    "Gather": """q = Gather<axis = 0>(t, i0)  k = Gather<axis = 0>(t, i1)
        v = Gather<axis = 0>(t, i2)""",
    "Split": """qs, ks, vs = Split<axis = 0, num_outputs = 3>(t)  q = Squeeze(qs, first)
        k = Squeeze(ks, first)  v = Squeeze(vs, first)""",
}


@pytest.mark.parametrize("op", TAKEN_APART)
def test_query_key_and_value_of_one_product_need_no_transpose(prove, op):
    text = f"""{H} g (float[N, 5, 24] x, float[24, 72] w) => (float[N, 3, 5, 8] y)
        <int64[5] heads = {{0, 5, 3, 3, 8}}, int64 i0 = {{0}}, int64 i1 = {{1}}, int64 i2 = {{-1}},
        int64[1] first = {{0}}> {{
        p = MatMul(x, w)  r = Reshape(p, heads)  t = Transpose<perm = [2, 0, 3, 1, 4]>(r)
        {TAKEN_APART[op]}  kt = Transpose<perm = [0, 1, 3, 2]>(k)
        s = MatMul(q, kt)  a = Softmax(s)  y = MatMul(a, v) }}"""
    proof = prove(
        text,
        SplitBeforeViews(),
        constants="w",
        rewritten=3 if op == "Gather" else 1,
        batches=(1, 2),
    )
    run_passes(proof.graph, [FuseOperators()])
    kinds = sorted(node.op.rsplit("_", 1)[0] for node in proof.graph.nodes)
    assert kinds == ["Slice"] * 3 + ["attention", "matmul"]


@pytest.mark.parametrize("batches", [(1, 2), (3,)])
def test_halves_of_heads_are_sliced_before_their_transpose(prove, batches):
    text = f"""{H} g (float[N, 5, 24] x, float[24, 48] w, float[5, 2, 8] a, float[5, 2, 8] b)
        => (float[N, 3, 5, 2, 8] y)
        <int64[4] heads = {{0, 5, 3, 16}}, int64[5] pairs = {{0, 3, 5, 2, 8}}> {{
        m = MatMul(x, w)  r = Reshape(m, heads)  t = Transpose<perm = [0, 2, 1, 3]>(r)
        h = Reshape(t, pairs)  u, v = Split<axis = 3, num_outputs = 2>(h)
        c = Mul(u, a)  d = Mul(v, b)  y = Add(c, d) }}"""
    proof = prove(text, SplitBeforeViews(), constants="w a b", batches=batches)
    (apart,) = [n for n in proof.graph.nodes if n.op == "Reshape" and "_apart" in n.name]
    assert apart.outputs[0].shape == ["N", 5, 3, 16]
    run_passes(proof.graph, [FuseOperators()])
    kinds = sorted(node.op.rsplit("_", 1)[0] for node in proof.graph.nodes)
    assert kinds == ["Reshape", "Slice", "Slice", "matmul", "mul_mul_add"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("t = Transpose<perm = [1, 0, 2]>(x)  y = Gather<axis = 1>(t, i)", "not constant"),
        (
            "t = Transpose(x)  a, b = Split<axis = 0, num_outputs = 2>(t)  y = Concat<axis = 0>(b, a)",
            "Concat 'Concat_2' could not read the views in place",
        ),
        (
            (
                "r = Reshape(x, pairs)  t = Transpose<perm = [3, 0, 1, 2]>(r)"
                "  y = Gather<axis = 0>(t, one)"
            ),
            "axis 0 is no range of one dimension of 'x'",
        ),
    ],
)
def test_says_why_views_are_not_taken_apart(refusals, body, reason):
    text = f"""{H} g (float[4, 5, 6] x, int64 i) => (float[a, b, c] y)
        <int64[4] pairs = {{4, 5, 3, 2}}, int64 one = {{1}}> {{ {body} }}"""
    assert any(reason in given for given in refusals(text, SplitBeforeViews()))


def test_views_of_nothing_are_not_described(load):
    text = f"""{H} g (float[0, 4] x) => (float[4, 0] y) <int64[2] s = {{4, 0}}> {{
        y = Reshape<allowzero = 1>(x, s) }}"""
    graph = load(text)
    assert trace(graph.inputs[0], graph.nodes) is None
