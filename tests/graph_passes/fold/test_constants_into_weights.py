"""Element-wise constants beside linear operators go into weights and biases."""

import pytest

from wpk.graph_passes import run_passes
from wpk.graph_passes.fold.constants_into_weights import (
    ConstantsBeforeWeights,
    ConstantsIntoWeights,
    ScaleThroughBias,
)

H = '<ir_version: 8, opset_import: ["" : 17]>'
CONV = "float[n, 3, 5, 5] x, float[4, 3, 3, 3] w"


@pytest.mark.parametrize(
    "after",
    [
        "Add(a, c)",
        "Sub(a, c)",
        "Sub(c, a)",
        "Mul(c, a)",
        "Div(a, v)",
        "Mul(a, two)",
        "Add(a, twos)",
    ],
)
def test_absorbs_behind_a_convolution(prove, after):
    text = f"""{H} g ({CONV}, float[4, 1, 1] c, float[1, 4, 1, 1] v) => (float[n, 4, 3, 3] y)
        <float two = {{2}}, float[1, 1, 1, 1] twos = {{2}}> {{ a = Conv(x, w)  y = {after} }}"""
    assert prove(text, ConstantsIntoWeights(), constants="w c v").ops == ["Conv"]


@pytest.mark.parametrize(
    ("inputs", "linear", "output"),
    [
        ("float[n, 5] x, float[5, 4] w", "Gemm(x, w)", "float[n, 4] y"),
        ("float[n, 5] x, float[4, 5] w", "Gemm <transB = 1, alpha = 2.0> (x, w)", "float[n, 4] y"),
        ("float[n, 7, 5] x, float[5, 4] w", "MatMul(x, w)", "float[n, 7, 4] y"),
        ("float[n, 3, 7, 5] x, float[3, 5, 4] w", "MatMul(x, w)", "float[n, 3, 7, 4] y"),
    ],
)
def test_absorbs_factors_behind_matrix_products(prove, inputs, linear, output):
    text = f"{H} g ({inputs}, float[4] c) => ({output}) {{ a = {linear}  y = Mul(a, c) }}"
    assert len(prove(text, ConstantsIntoWeights(), constants="w c").ops) == 1


def test_the_bias_of_a_gemm_is_absorbed_and_that_of_a_matmul_stays(prove, refusals):
    gemm = f"{H} g (float[2, 5] x, float[5, 4] w, float[4] c) => (float[2, 4] y) {{ a = Gemm(x, w)  y = Add(a, c) }}"
    assert prove(gemm, ConstantsIntoWeights(), constants="w c").ops == ["Gemm"]
    matmul = f"{H} g (float[1, 2, 5] x, float[5, 4] w, float[4] c) => (float[1, 2, 4] y) {{ a = MatMul(x, w)  y = Add(a, c) }}"
    assert refusals(matmul, ConstantsIntoWeights(), "w c") == []


@pytest.mark.parametrize(
    ("after", "constants", "reason"),
    [
        ("y = Mul(a, c)", "c", "weight 'w' of 'Conv_0' is not a constant of floats"),
        ("y = Mul(a, row)", "w row", "'row' of shape [1, 3] is not one number per channel (4)"),
        ("b = Relu(a)  d = Mul(a, c)  y = Add(b, d)", "w c", "'a' has 2 readers"),
        ("y = Div(c, a)", "w c", "'c' is divided by 'a', which is not linear"),
        ("y = Div(a, zero)", "w", "'zero' divides by zero"),
        (
            "b = Mul(a, deep)  y = Squeeze(b)",
            "w deep",
            "'deep' has more dimensions than what it is applied to",
        ),
    ],
)
def test_refuses_behind(refusals, after, constants, reason):
    output = "float[n, 4, 3, 3] y" if "Squeeze" not in after else "float y"
    text = f"""{H} g ({CONV}, float[4, 1, 1] c, float[1, 3] row, float[2, 1, 1, 1, 1] deep)
        => ({output}) <float zero = {{0}}> {{ a = Conv(x, w)  {after} }}"""
    if "Squeeze" in after:
        text = text.replace("float y", "float[p, q, r, s, t] y")
    assert refusals(text, ConstantsIntoWeights(), constants) == [reason]


def test_refuses_an_addition_behind_a_matmul_that_is_subtracted_from(refusals):
    text = f"{H} g (float[1, 2, 5] x, float[5, 4] w, float[4] c) => (float[1, 2, 4] y) {{ a = MatMul(x, w)  y = Sub(c, a) }}"
    (reason,) = refusals(text, ConstantsIntoWeights(), "w c")
    assert reason == "'MatMul_0' is a MatMul, which has no bias to take the addition"


@pytest.mark.parametrize(
    ("before", "linear", "inputs", "output"),
    [
        (
            "Mul(x, c)",
            "Conv <pads = [1, 1, 1, 1]> (a, w)",
            "float[n, 3, 5, 5] x, float[3, 1, 1] c, float[4, 3, 3, 3] w",
            "float[n, 4, 5, 5] y",
        ),
        (
            "Add(x, c)",
            "Conv(a, w)",
            "float[n, 3, 5, 5] x, float[3, 1, 1] c, float[4, 3, 3, 3] w",
            "float[n, 4, 3, 3] y",
        ),
        (
            "Sub(x, c)",
            "Conv <group = 2, strides = [2, 2]> (a, w)",
            "float[n, 4, 5, 5] x, float[4, 1, 1] c, float[6, 2, 3, 3] w",
            "float[n, 6, 2, 2] y",
        ),
        (
            "Mul(x, c)",
            "ConvTranspose(a, w)",
            "float[n, 3, 5, 5] x, float[3, 1, 1] c, float[3, 2, 3, 3] w",
            "float[n, 2, 7, 7] y",
        ),
        (
            "Mul(x, c)",
            "MatMul(a, w)",
            "float[n, 2, 3] x, float[3] c, float[3, 4] w",
            "float[n, 2, 4] y",
        ),
        (
            "Add(x, c)",
            "Gemm <transB = 1> (a, w)",
            "float[n, 3] x, float[3] c, float[4, 3] w",
            "float[n, 4] y",
        ),
    ],
)
def test_absorbs_before_a_linear_operator(prove, before, linear, inputs, output):
    text = f"{H} g ({inputs}) => ({output}) {{ a = {before}  y = {linear} }}"
    assert len(prove(text, ConstantsBeforeWeights(), constants="w c").ops) == 1


@pytest.mark.parametrize(
    ("before", "linear", "reason"),
    [
        (
            "Add(x, c)",
            "Conv <pads = [1, 0, 0, 0]> (a, w)",
            "'Conv_1' pads with zeros, where the shift before it would be missing",
        ),
        (
            "Add(x, c)",
            "ConvTranspose(a, w)",
            "'ConvTranspose_1' sums fewer terms at its border, so a shift before it is no bias",
        ),
    ],
)
def test_refuses_before(refusals, before, linear, reason):
    text = f"""{H} g (float[1, 3, 5, 5] x, float[3, 1, 1] c, float[3, 3, 3, 3] w)
        => (float[p, q, r, s] y) {{ a = {before}  y = {linear} }}"""
    assert refusals(text, ConstantsBeforeWeights(), "w c") == [reason]


def test_refuses_an_addition_before_a_matmul(refusals):
    text = f"{H} g (float[1, 2, 3] x, float[3] c, float[3, 4] w) => (float[1, 2, 4] y) {{ a = Add(x, c)  y = MatMul(a, w) }}"
    (reason,) = refusals(text, ConstantsBeforeWeights(), "w c")
    assert reason == "'MatMul_1' is a MatMul, which has no bias to take the addition"


def test_refuses_transposed_rows(refusals):
    text = f"{H} g (float[3, 2] x, float[2] c, float[3, 4] w) => (float[2, 4] y) {{ a = Mul(x, c)  y = Gemm <transA = 1> (a, w) }}"
    (reason,) = refusals(text, ConstantsBeforeWeights(), "w c")
    assert reason == "'Gemm_1' reads its input transposed: its channels are the rows"


PROJECTION = "float[1, 2, 5] x, float[5, 4] w, float[4] b"


def test_a_scale_goes_through_the_bias_of_a_matmul(prove, load):
    text = f"{H} g ({PROJECTION}) => (float[1, 2, 4] y) <float s = {{3}}> {{ m = MatMul(x, w)  a = Add(b, m)  y = Mul(a, s) }}"
    assert prove(text, ScaleThroughBias(), constants="w b").ops == ["MatMul", "Mul", "Add"]
    graph = load(text, "w b")
    run_passes(graph, [ScaleThroughBias(), ConstantsIntoWeights()])
    assert [node.op for node in graph.nodes] == ["MatMul", "Add"]


@pytest.mark.parametrize(
    ("body", "constants", "reason"),
    [
        (
            "a = Add(m, b)  y = Mul(a, s)",
            "b",
            "weight 'w' of 'MatMul_0' is not a constant of floats",
        ),
        ("a = Add(m, b)  c = Mul(a, s)  y = Add(a, c)", "w b", "'a' has 2 readers"),
        (
            "a = Add(m, b)  y = Mul(a, q)",
            "w b",
            "'q' of shape [2, 1] is not one number per channel (4)",
        ),
    ],
)
def test_scale_through_bias_refuses(refusals, body, constants, reason):
    text = f"""{H} g ({PROJECTION}) => (float[1, 2, 4] y) <float s = {{3}}, float[2, 1] q = {{1, 2}}>
        {{ m = MatMul(x, w)  {body} }}"""
    assert refusals(text, ScaleThroughBias(), constants) == [reason]
