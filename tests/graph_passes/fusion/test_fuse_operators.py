"""Anchors take what follows them; the results are calls of local functions."""

import pytest

from wpk.graph_passes import called
from wpk.graph_passes.fusion.fuse_operators import FuseOperators

H = '<ir_version: 8, opset_import: ["" : 20]>'


def reasons(load, text, constants=""):
    """Fuse, and return why neighbours were left out."""
    graph = load(text, constants)
    return [refusal.reason for refusal in FuseOperators()(graph).refusals]


@pytest.mark.parametrize(
    "tail",
    [
        "y = Relu(c)",
        "y = Sigmoid(c)",
        "y = HardSwish(c)",
        "y = LeakyRelu<alpha = 0.1>(c)",
        "y = Elu(c)",
        "y = Selu(c)",
        "y = Mish(c)",
        "y = Softplus(c)",
        "y = Gelu(c)",
        "y = HardSigmoid(c)",
        "y = PRelu(c, slope)",
        "lo = Constant<value = float {0}>() hi = Constant<value = float {6}>() y = Clip(c, lo, hi)",
    ],
)
def test_a_convolution_takes_every_activation(prove, tail):
    slope = "<float[4, 1, 1] slope = {0.1, 0.2, 0.3, 0.4}>"
    proof = prove(
        f"""{H} g (float[N, 3, 8, 8] x, float[4, 3, 3, 3] w, float[4] b) => (float[N, 4, 6, 6] y)
        {slope} {{ c = Conv(x, w, b) {tail} }}""",
        FuseOperators(),
        constants="w b",
        batches=(1, 3),
    )
    assert [op for op in proof.ops if op != "Constant"] == [proof.graph.functions[0].name]


def test_a_body_keeps_the_names_of_its_nodes_and_weights_are_inputs(prove):
    proof = prove(
        f"""{H} g (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w) => (float[1, 4, 6, 6] y)
        <float two = {{2}}> {{ c = Conv(x, w)  m = Mul(c, two)  y = Relu(m) }}""",
        FuseOperators(),
        constants="w",
    )
    (call,) = proof.graph.nodes
    function = called(proof.graph, call)
    assert [node.name for node in function.nodes] == ["Conv_0", "Mul_1", "Relu_2"]
    assert [tensor.name for tensor in call.inputs] == ["x", "w"]
    assert call.domain == "wpk"
    assert call.op == function.name == "conv_mul_relu_0"


def test_an_activation_of_eight_nodes_that_read_the_sum_three_times_is_taken_whole(prove):
    proof = prove(
        f"""{H} g (float[1, 3, 8, 8] x, float[4, 3, 3, 3] w) => (float[1, 4, 6, 6] y)
        <float half = {{0.5}}, float one = {{1}}, float cubed = {{0.044715}}, float scale = {{0.797885}},
        float three = {{3}}> {{
        c = Conv(x, w)  p = Pow(c, three)  q = Mul(p, cubed)  r = Add(c, q)  s = Mul(r, scale)
        t = Tanh(s)  u = Add(t, one)  v = Mul(c, u)  y = Mul(v, half) }}""",
        FuseOperators(),
        constants="w",
    )
    (function,) = proof.graph.functions
    assert proof.ops == [function.name]
    assert len(function.nodes) == 9


def test_the_later_of_two_convolutions_computes_their_sum(prove):
    proof = prove(
        f"""{H} g (float[1, 4, 6, 6] x, float[4, 4, 1, 1] w, float[4, 4, 1, 1] v)
        => (float[1, 4, 6, 6] y) {{
        a = Conv(x, w)  b = Conv(x, v)  s = Add(a, b)  y = Relu(s) }}""",
        FuseOperators(),
        constants="w v",
        rewritten=2,
    )
    assert proof.ops == ["conv_0", "conv_add_relu_1"]


@pytest.mark.parametrize("first", ["block", "shortcut"])
def test_the_convolution_behind_the_longer_chain_computes_the_sum(prove, first):
    block = "a = Conv<pads = [1, 1, 1, 1]>(x, w)  r = Relu(a)  b = Conv<pads = [1, 1, 1, 1]>(r, v)"
    shortcut = "c = Conv(x, u)"
    body = f"{block} {shortcut}" if first == "block" else f"{shortcut} {block}"
    proof = prove(
        f"""{H} g (float[1, 2, 6, 6] x, float[4, 2, 3, 3] w, float[4, 4, 3, 3] v, float[4, 2, 1, 1] u)
        => (float[1, 4, 6, 6] y) {{ {body} s = Add(b, c)  y = Relu(s) }}""",
        FuseOperators(),
        constants="w v u",
        rewritten=3,
    )
    (last,) = [call for call in proof.graph.nodes if call.outputs[0].name == "y"]
    assert [node.op for node in called(proof.graph, last).nodes] == ["Conv", "Add", "Relu"]
    assert {tensor.name for tensor in last.inputs} == {"r", "v", "c"}


def test_a_decomposed_activation_that_reads_its_input_twice_is_taken(prove):
    proof = prove(
        f"""{H} g (float[1, 3, 6, 6] x, float[4, 3, 1, 1] w) => (float[1, 4, 6, 6] y) {{
        c = Conv(x, w)  s = Softplus(c)  t = Tanh(s)  y = Mul(c, t) }}""",
        FuseOperators(),
        constants="w",
    )
    assert proof.ops == ["conv_softplus_tanh_mul_0"]


@pytest.mark.parametrize(
    ("anchor", "shape"),
    [
        ("MaxPool<kernel_shape = [2, 2]>", "[1, 3, 5, 5]"),
        ("AveragePool<kernel_shape = [2, 2]>", "[1, 3, 5, 5]"),
        ("GlobalAveragePool", "[1, 3, 1, 1]"),
        ("GlobalMaxPool", "[1, 3, 1, 1]"),
        ("ReduceMax<keepdims = 1, noop_with_empty_axes = 0>", "[1, 1, 1, 1]"),
        ("InstanceNormalization", "[1, 3, 6, 6]"),
    ],
)
def test_pools_reductions_and_norms_take_what_follows(prove, anchor, shape):
    extra = ", s, b" if anchor.startswith("Instance") else ""
    proof = prove(
        f"""{H} g (float[1, 3, 6, 6] x) => (float{shape} y)
        <float[3] s = {{1, 2, 3}}, float[3] b = {{3, 2, 1}}> {{
        p = {anchor}(x{extra})  y = Tanh(p) }}""",
        FuseOperators(),
    )
    assert len(proof.ops) == 1


def test_a_gemm_with_transposes_and_factors_takes_its_tail(prove):
    proof = prove(
        f"""{H} g (float[8, N] x, float[5, 8] w, float[5] b, float[N, 5] r) => (float[N, 5] y) {{
        m = Gemm<transA = 1, transB = 1, alpha = 0.5>(x, w, b)
        s = Add(r, m)  y = Gelu(s) }}""",
        FuseOperators(),
        constants="w b",
        batches=(1, 4),
    )
    assert proof.ops == ["gemm_add_gelu_0"]


def test_two_operators_never_wait_for_each_other(prove):
    # Whichever sum each convolution takes, the other operand comes from the other convolution.
    proof = prove(
        f"""{H} g (float[1, 4, 6, 6] x, float[4, 4, 1, 1] w, float[4, 4, 1, 1] v)
        => (float[1, 4, 6, 6] y) {{
        a = Conv(x, w)  b = Conv(x, v)  p = Relu(a)  q = Tanh(b)
        s = Add(p, q)  d = Sub(p, q)  y = Mul(s, d) }}""",
        FuseOperators(),
        constants="w v",
        rewritten=2,
    )
    assert proof.ops == ["conv_relu_0", "conv_tanh_add_sub_1"]


def test_a_residual_from_behind_the_convolution_is_no_cycle(prove):
    proof = prove(
        f"""{H} g (float[1, 4, 6, 6] x, float[4, 4, 1, 1] w, float[4, 4, 1, 1] v)
        => (float[1, 4, 6, 6] y) {{
        a = Conv(x, w)  b = Conv(a, v)  y = Add(a, b) }}""",
        FuseOperators(),
        constants="w v",
        rewritten=2,
    )
    assert proof.ops == ["conv_0", "conv_add_1"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("c = Conv(x, w)  z = Relu(c)  y = Neg(z)", "'z' is a graph output"),
        ("c = Conv(x, w)  y = Relu(c)  z = MaxPool<kernel_shape = [1, 1]>(c)", "'c' has 2 readers"),
        ("c = Conv(x, w)  y = Add(c, wide)  z = Neg(x)", "of the operator's"),
        ("c, y = MaxPool<kernel_shape = [1, 1]>(x)  z = Relu(c)", "MaxPool gives 2 outputs"),
    ],
)
def test_says_why_a_neighbour_stays_outside(load, body, reason):
    kind = "int64" if "c, y" in body else "float"
    size = "[5, 4, 6, 6]" if "wide" in body else "[1, 4, 6, 6]"
    text = f"""{H} g (float[1, 4, 6, 6] x, float[4, 4, 1, 1] w, float[5, 4, 6, 6] wide)
        => ({kind}{size} y, float[1, 4, 6, 6] z) {{ {body} }}"""
    assert any(reason in given for given in reasons(load, text, "w wide"))


def test_refuses_views_of_more_axes_than_a_kernel_has(load):
    graph = load(
        f"""{H} g (float[2,3,2,3,2,3] x) => (float[2,3,3,3,2,2] y)
        {{ r = Sigmoid(x)  t = Transpose<perm = [0,3,1,5,2,4]>(r)  y = Exp(t) }}"""
    )
    result = FuseOperators()(graph)
    assert [node.op.rpartition("_")[0] or node.op for node in graph.nodes] == [
        "sigmoid",
        "Transpose",
        "exp",
    ]
    reasons = {refusal.reason for refusal in result.refusals}
    assert "6 blocks change places, kernels have 5 axes" in reasons


def test_refuses_more_tensors_than_a_kernel_takes(load):
    names = [f"r{i}" for i in range(12)]
    inputs = ", ".join(f"float[2, 3] {name}" for name in names)
    sums = " ".join(f"s{i + 1} = Add(s{i}, r{i})" for i in range(12))
    text = f"""{H} g (float[2, 4] x, float[4, 3] w, {inputs}) => (float[2, 3] s12)
        {{ s0 = MatMul(x, w) {sums} }}"""
    graph = load(text, "w")
    result = FuseOperators()(graph)
    assert any("more than 8 tensors" in refusal.reason for refusal in result.refusals)
    assert [node.op for node in graph.nodes] == [
        "matmul_add_add_add_0",
        "add_add_add_add_1",
    ]


def test_says_that_an_anchor_has_no_known_rank(load):
    graph = load(f"{H} g (float[2, 3] x) => (float[2, 3] y) {{ h = Neg(x)  y = Softmax(h) }}")
    graph.nodes[1].outputs[0].shape = None
    result = FuseOperators()(graph)
    assert [r.reason for r in result.refusals] == ["the rank of 'y' is unknown"]


def test_subgraphs_are_left_alone(prove):
    proof = prove(
        f"""{H} g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y)
        <bool c = {{1}}> {{
        h = MatMul(x, w)
        y = If<then_branch = t () => (float[2, 3] a) {{ a = Neg(h) }},
               else_branch = e () => (float[2, 3] b) {{ b = Abs(h) }}>(c) }}""",
        FuseOperators(),
        constants="w",
    )
    assert proof.ops == ["matmul_0", "If"]
