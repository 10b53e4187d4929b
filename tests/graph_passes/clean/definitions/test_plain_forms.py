"""Rare forms of operators become usual ones with the same numbers."""

import pytest

from wpk.graph_passes.clean.definitions.plain_forms import PlainForms

H = '<ir_version: 10, opset_import: ["" : 20]>'

CASES = {
    "a vector times a matrix": (
        f"{H} g (float[5] v, float[2, 5, 3] b) => (float[2, 3] y) {{ y = MatMul(v, b) }}",
        ["Unsqueeze", "MatMul", "Squeeze"],
    ),
    "a matrix times a vector": (
        f"{H} g (float[N, 4, 5] a, float[5] v) => (float[N, 4] y) {{ y = MatMul(a, v) }}",
        ["Unsqueeze", "MatMul", "Squeeze"],
    ),
    "two vectors": (
        f"{H} g (float[5] a, float[5] b) => (float y) {{ y = MatMul(a, b) }}",
        ["Unsqueeze", "Unsqueeze", "MatMul", "Squeeze"],
    ),
    "beta": (
        f"""{H} g (float[3, 5] a, float[5, 4] b, float[4] c) => (float[3, 4] y)
        {{ y = Gemm<alpha = 0.5, beta = -0.3>(a, b, c) }}""",
        ["Mul", "Gemm"],
    ),
    "no beta": (
        f"""{H} g (float[3, 5] a, float[5, 4] b, float[4] c) => (float[3, 4] y)
        {{ y = Gemm<beta = 0.0>(a, b, c) }}""",
        ["Gemm"],
    ),
    "a sum over no axes": (
        f"""{H} g (float[3, 5] x) => (float[3, 5] y) <int64[0] axes = {{}}>
        {{ t = Neg(x)  y = ReduceSum<noop_with_empty_axes = 1>(t, axes) }}""",
        ["Neg", "Identity"],
    ),
    "squares over no axes": (
        f"""{H} g (float[3, 5] x) => (float[3, 5] y)
        {{ y = ReduceSumSquare<noop_with_empty_axes = 1>(x) }}""",
        ["Mul"],
    ),
    "backwards": (
        f"""{H} g (float[N, 7, 5] x) => (float[N, 3, 3] y)
        <int64[2] a = {{5, -1}}, int64[2] b = {{-100, 0}}, int64[2] axes = {{1, 2}}, int64[2] s = {{-2, -2}}>
        {{ y = Slice(x, a, b, axes, s) }}""",
        ["Gather", "Gather"],
    ),
    "backwards and forwards": (
        f"""{H} g (float[6, 5] x) => (float[6, 2] y)
        <int64[2] a = {{-1, 1}}, int64[2] b = {{-100, 4}}, int64[2] axes = {{0, 1}}, int64[2] s = {{-1, 2}}>
        {{ y = Slice(x, a, b, axes, s) }}""",
        ["Slice", "Gather"],
    ),
    "a padded leading axis": (
        f"""{H} g (float[3, 4, 5] x) => (float[6, 4, 7] y) <int64[6] pads = {{1, 0, 0, 2, 0, 2}}>
        {{ y = Pad(x, pads) }}""",
        ["Reshape", "Pad", "Reshape"],
    ),
    "a reflected fifth axis": (
        f"""{H} g (float[2, 3, 2, 4, 5] x) => (float[2, 3, 2, 6, 7] y)
        <int64[4] pads = {{1, 1, 1, 1}}, int64[2] axes = {{3, 4}}>
        {{ y = Pad<mode = "reflect">(x, pads, , axes) }}""",
        ["Reshape", "Pad", "Reshape"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_usual_form_gives_the_same_numbers(prove, case):
    text, ops = CASES[case]
    assert prove(text, PlainForms(), batches=(1, 3)).ops == ops


@pytest.mark.parametrize(
    "text",
    [
        "g (float[2, 5] a, float[5, 3] b) => (float[2, 3] y) { y = MatMul(a, b) }",
        "g (float[3, 5] a, float[5, 4] b, float[4] c) => (float[3, 4] y) { y = Gemm(a, b, c) }",
        "g (float[3, 5] x) => (float[1, 1] y) { y = ReduceSum(x) }",
    ],
)
def test_usual_forms_stay(load, text):
    assert PlainForms()(load(f"{H} {text}")).rewritten == 0
