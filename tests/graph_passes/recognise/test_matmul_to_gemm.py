"""Two-dimensional products are Gemm, the others MatMul and Add."""

import pytest

from wpk.graph_passes.recognise.matmul_to_gemm import GemmBetweenReshapes, MatMulToGemm

H = '<ir_version: 8, opset_import: ["" : 17]>'


def test_a_matrix_product_becomes_gemm(prove):
    text = f"{H} g (float[n, 5] x, float[5, 4] w) => (float[n, 4] y) {{ y = MatMul(x, w) }}"
    assert prove(text, MatMulToGemm(), constants="w").ops == ["Gemm"]


@pytest.mark.parametrize(
    ("body", "flags"),
    [
        ("a = Transpose(x)  y = Gemm(a, w)", (1, 0)),
        (
            "a = Transpose <perm = [1, 0]> (w)  b = Transpose(x)  y = Gemm <transB = 1> (b, a)",
            (1, 0),
        ),
        ("b = Transpose(z)  y = Gemm <transA = 1> (x, b)", (1, 1)),
    ],
)
def test_gemm_reads_transposed_matrices(prove, body, flags):
    text = (
        f"""{H} g (float[5, 3] x, float[5, 4] w, float[4, 5] z) => (float[3, 4] y) {{ {body} }}"""
    )
    count = body.count("Transpose")
    proof = prove(text, MatMulToGemm(), rewritten=count)
    gemm = proof.node("Gemm")
    assert (gemm.attrs.get("transA", 0), gemm.attrs.get("transB", 0)) == flags


def test_more_dimensions_stay_matmul(refusals):
    text = f"{H} g (float[2, 3, 5] x, float[5, 4] w) => (float[2, 3, 4] y) {{ y = MatMul(x, w) }}"
    assert refusals(text, MatMulToGemm(), "w") == []


def test_refuses_an_unknown_rank(load):
    graph = load(
        f"{H} g (float[2, 5] x, float[5, 4] w) => (float[2, 4] y) {{ a = Relu(x) y = MatMul(a, w) }}"
    )
    graph.nodes[0].outputs[0].shape = None
    result = MatMulToGemm()(graph)
    assert [r.reason for r in result.refusals] == [
        "the rank of an operand of 'MatMul_1' is unknown"
    ]


CONSTANTS = "int64[2] flat = {-1, 5}, int64[3] back = {2, 3, 4}, int64[3] other = {3, 2, 4}"


@pytest.mark.parametrize(
    ("gemm", "weight", "ops"),
    [
        ("Gemm(a, w)", "[5, 4]", ["MatMul"]),
        ("Gemm <transB = 1, alpha = 0.5> (a, w, b)", "[4, 5]", ["MatMul", "Add"]),
    ],
)
def test_a_gemm_between_reshapes_works_in_more_dimensions(prove, gemm, weight, ops):
    text = f"""{H} g (float[2, 3, 5] x, float{weight} w, float[4] b) => (float[2, 3, 4] y)
        <{CONSTANTS}> {{ a = Reshape(x, flat)  c = {gemm}  y = Reshape(c, back) }}"""
    assert prove(text, GemmBetweenReshapes(), constants="w b").ops == ops


def test_heads_are_joined_before_a_gemm_between_reshapes(prove):
    text = f"""{H} g (float[3, n, 2, 4] x, float[8, 5] w) => (float[3, n, 5] y)
        <int64[2] flat = {{-1, 8}}, int64[3] back = {{3, -1, 5}}> {{
        a = Reshape(x, flat)  c = Gemm(a, w)  y = Reshape(c, back) }}"""
    proof = prove(text, GemmBetweenReshapes(), constants="w", batches=(1, 3, 8))
    assert proof.ops == ["Reshape", "MatMul"]


@pytest.mark.parametrize(
    ("body", "constants", "reason"),
    [
        (
            "c = Gemm(a, w)  y = Reshape(c, other)",
            "w",
            "the leading dimensions change from [2, 3] to [3, 2]",
        ),
        (
            "c = Gemm(a, w)  y = Reshape(c, back)",
            "",
            "weight 'w' of 'Gemm_1' is not a constant of floats",
        ),
        (
            "c = Gemm(a, w, b)  y = Reshape(c, back)",
            "w",
            "bias 'b' of 'Gemm_1' is not a constant of floats",
        ),
        (
            "c = Gemm(a, w)  d = Relu(c)  e = Reshape(c, back)  f = Reshape(d, back) y = Add(e, f)",
            "w",
            "'c' has 2 readers",
        ),
    ],
)
def test_between_reshapes_refuses(refusals, body, constants, reason):
    text = f"""{H} g (float[2, 3, 5] x, float[5, 4] w, float[4] b) => (float[p, q, 4] y)
        <{CONSTANTS}> {{ a = Reshape(x, flat)  {body} }}"""
    assert refusals(text, GemmBetweenReshapes(), constants) == [reason]


def test_between_reshapes_refuses_a_split_of_the_last_dimension(refusals):
    text = f"""{H} g (float[2, 2, 5] x, float[10, 4] w) => (float[2, 2, 2] y)
        <int64[2] flat = {{2, 10}}, int64[3] back = {{2, 2, 2}}> {{
        a = Reshape(x, flat)  c = Gemm(a, w)  y = Reshape(c, back) }}"""
    (reason,) = refusals(text, GemmBetweenReshapes(), "w")
    assert reason == "the reshapes take the last dimension apart"


def test_between_reshapes_refuses_a_plain_matrix(refusals):
    text = f"""{H} g (float[10] x, float[5, 4] w) => (float[8] y)
        <int64[2] flat = {{2, 5}}, int64[1] back = {{8}}> {{
        a = Reshape(x, flat)  c = Gemm(a, w)  y = Reshape(c, back) }}"""
    (reason,) = refusals(text, GemmBetweenReshapes(), "w")
    assert reason == "'x' is not known to have more than two dimensions"
