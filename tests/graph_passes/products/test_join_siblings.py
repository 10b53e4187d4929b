"""Products that read one tensor become one, whose channels are split among their readers."""

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.graph_passes.products.join_siblings import JoinSiblings

H = '<ir_version: 8, opset_import: ["" : 17]>'
IMAGE = """float[n, 6, 5, 5] x, float[8, 6, 1, 1] wa, float[4, 6, 1, 1] wb, float[12, 6, 1, 1] wc,
    float[8] ba, float[4] bb, float[4, 6, 3, 3] wd, float[4, 3, 1, 1] wg, float[6, 6, 1, 1] we,
    float[8, 8, 1, 1] wz"""
CONSTANTS = "wa wb wc ba bb wd wg we wz"


def _image(body: str, *outputs: str) -> str:
    given = ", ".join(f"float[n, c{name}, 5, 5] {name}" for name in outputs)
    return f"{H} g ({IMAGE}) => ({given}) {{ {body} }}"


def test_three_branches_of_a_block_become_one_product(prove):
    body = """a = Conv(x, wa, ba)  ra = Relu(a)  b = Conv(x, wb, bb)  rb = Relu(b)
        c = Conv(x, wc)  rc = Relu(c)
        y = MaxPool<kernel_shape = [1, 1]>(ra)  z = MaxPool<kernel_shape = [1, 1]>(rb)
        w = MaxPool<kernel_shape = [1, 1]>(rc)"""
    proof = prove(_image(body, "y", "z", "w"), JoinSiblings(), constants=CONSTANTS, batches=(1, 3))
    assert proof.ops == ["Conv", "Relu", "Split", "MaxPool", "MaxPool", "MaxPool"]
    assert proof.node("Conv").inputs[1].shape == (24, 6, 1, 1)
    bias = proof.node("Conv").inputs[2].values
    assert not bias[12:].any()  # wc had none
    assert bias[:12].all()


def test_a_branch_without_activation_has_no_lower_limit(prove):
    body = """a = Conv(x, wa, ba)  ra = Relu(a)  b = Conv(x, wb)
        y = MaxPool<kernel_shape = [1, 1]>(ra)  z = MaxPool<kernel_shape = [1, 1]>(b)"""
    proof = prove(_image(body, "y", "z"), JoinSiblings(), constants=CONSTANTS)
    assert proof.ops == ["Conv", "Max", "Split", "MaxPool", "MaxPool"]
    limits = proof.node("Max").inputs[1].values.reshape(-1)
    np.testing.assert_array_equal(limits, [0.0] * 8 + [-np.inf] * 4)


def test_what_begins_a_concatenation_is_the_last_part(prove):
    body = """a = Conv(x, wa, ba)  b = Conv(x, wb)  d = MaxPool<kernel_shape = [1, 1]>(b)
        y = Concat<axis = 1>(a, d)"""
    proof = prove(_image(body, "y"), JoinSiblings(), constants=CONSTANTS)
    sizes = proof.node("Split").inputs[1].values
    np.testing.assert_array_equal(sizes, [4, 8])


def test_query_key_and_value_become_one_product(prove):
    text = f"""{H} g (float[n, 5, 8] x, float[8, 8] wq, float[8, 8] wk, float[8, 8] wv,
        float[8] bq, float[8] bk) => (float[n, 2, 5, 4] q, float[n, 2, 4, 5] k, float[n, 5, 8] v)
        <int64[4] heads = {{0, 5, 2, 4}}> {{
        q0 = MatMul(x, wq)  q1 = Add(bq, q0)  q2 = Reshape(q1, heads)
        q = Transpose<perm = [0, 2, 1, 3]>(q2)
        k0 = MatMul(x, wk)  k1 = Add(k0, bk)  k2 = Reshape(k1, heads)
        k = Transpose<perm = [0, 2, 3, 1]>(k2)
        v0 = MatMul(x, wv)  v = Softmax(v0) }}"""
    proof = prove(text, JoinSiblings(), constants="wq wk wv bq bk", batches=(1, 3))
    assert proof.ops[:3] == ["MatMul", "Add", "Split"]
    assert proof.node("MatMul").inputs[1].shape == (8, 24)


@pytest.mark.parametrize("transposed", [0, 1])
def test_two_dimensional_products_join_along_their_outputs(prove, transposed):
    shapes = ("[8, 6]", "[4, 6]") if transposed else ("[6, 8]", "[6, 4]")
    text = f"""{H} g (float[n, 6] x, float{shapes[0]} wa, float{shapes[1]} wb, float[8] ba)
        => (float[n, 8] y, float[n, 4] z) {{
        a = Gemm<transB = {transposed}>(x, wa, ba)  y = Softmax(a)
        b = Gemm<transB = {transposed}>(x, wb)  z = Softmax(b) }}"""
    proof = prove(text, JoinSiblings(), constants="wa wb ba", batches=(1, 3))
    assert proof.ops == ["Gemm", "Split", "Softmax", "Softmax"]


def test_only_equal_activations_with_operands_join(prove):
    body = """a = Conv(x, wa)  la = LeakyRelu<alpha = 0.1>(a)  b = Conv(x, wb)
        lb = LeakyRelu<alpha = 0.1>(b)  c = Conv(x, wc)  lc = LeakyRelu<alpha = 0.2>(c)
        y = MaxPool<kernel_shape = [1, 1]>(la)  z = MaxPool<kernel_shape = [1, 1]>(lb)
        w = MaxPool<kernel_shape = [1, 1]>(lc)"""
    proof = prove(_image(body, "y", "z", "w"), JoinSiblings(), constants=CONSTANTS)
    assert sorted(proof.ops) == ["Conv"] * 2 + ["LeakyRelu"] * 2 + ["MaxPool"] * 3 + ["Split"]
    assert proof.result.refusals[0].reason == "no product beside it has its window and activation"


def test_an_addition_that_a_later_product_computes_is_no_obstacle(prove):
    body = """a = Conv(x, wa)  ra = Relu(a)  s = Conv(x, wa, ba)
        m = Conv(ra, wz)  y = Add(m, s)"""
    proof = prove(_image(body, "y"), JoinSiblings(), constants=CONSTANTS)
    assert proof.ops == ["Conv", "Max", "Split", "Conv", "Add"]


@pytest.mark.parametrize(
    ("body", "outputs", "reason"),
    [
        ("y = Conv(x, wa)  b = Conv(x, wb)  z = Relu(b)", "y z", "'y' is a graph output"),
        (
            "a = Conv(x, wa)  sa = Sin(a)  y = MaxPool<kernel_shape = [1, 1]>(sa)  z = Conv(x, wb)",
            "y z",
            "behind it would need a kernel of its own",
        ),
        (
            "a = Conv(x, wa)  b = Conv(x, wa, ba)  y = Add(a, b)",
            "y",
            "behind it would need a kernel of its own",
        ),
        (
            "u = Conv(x, we)  a = Conv(u, we)  y = Add(a, u)  b = Conv(u, wb)  z = Softmax(b)",
            "y z",
            "behind it would need a kernel of its own",
        ),
        ("y = Conv<group = 2>(x, wg)  z = Conv(x, wb)", "y z", "it has 2 groups of channels"),
        (
            "a = Conv(x, wa)  f = Flatten(a)  y = Softmax(f)  b = Conv(x, wb)  z = Softmax(b)",
            "y z",
            "'Flatten_1' makes one dimension of its channels and others",
        ),
        (
            "a = Conv(x, wb)  d = Conv<pads = [1, 1, 1, 1]>(x, wd)  y = Softmax(a)  z = Softmax(d)",
            "y z",
            "no product beside it has its window and activation",
        ),
    ],
)
def test_refuses(refusals, body, outputs, reason):
    text = _image(body, *outputs.split())
    text = text.replace("float[n, cy, 5, 5] y", "float[n, cy] y") if "Flatten" in body else text
    reasons = refusals(text, JoinSiblings(), constants=CONSTANTS)
    assert any(reason in given for given in reasons)


def test_refuses_channels_that_leave_the_next_part_unaligned(refusals):
    body = "a = Conv(x, wa)  b = Conv(x, wb)  y = Softmax(a)  z = Softmax(b)"
    (reason,) = refusals(_image(body, "y", "z"), JoinSiblings(DType.FP16), constants=CONSTANTS)
    assert (
        reason == "its 4 channels are no multiple of 8, so that the part after them would not align"
    )


def test_refuses_weights_that_are_not_constant(refusals):
    body = "a = Conv(x, wa)  b = Conv(x, wb)  y = Softmax(a)  z = Softmax(b)"
    (first, _) = refusals(_image(body, "y", "z"), JoinSiblings(), constants="wb")
    assert first == "weight 'wa' of 'Conv_0' is not a constant of floats"
