"""What is computed twice is computed once."""

import pytest

from wpk.graph_passes.clean.elimination.common_subexpression import CommonSubexpressions

H = '<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>'


def test_merges_a_repeated_chain_in_one_run(prove):
    proof = prove(
        f"""{H} g (float[2, 3] x) => (float[2, 3] y) {{
        a = Relu(x)  b = Neg(a)  c = Relu(x)  d = Neg(c)  y = Add(b, d) }}""",
        CommonSubexpressions(),
        rewritten=2,
    )
    assert proof.ops == ["Relu", "Neg", "Add"]


def test_constants_count_by_content(prove):
    prove(
        f"""{H} g (float[2] x) => (float[2] y) <float[2] c = {{1, 2}}, float[2] d = {{1, 2}}> {{
        a = Mul(x, c)  b = Mul(x, d)  y = Add(a, b) }}""",
        CommonSubexpressions(),
    )


@pytest.mark.parametrize(
    "body",
    [
        "a = Transpose <perm = [0, 1]> (x)  b = Transpose <perm = [1, 0]> (x)",
        "a = Mul(x, c)  b = Mul(x, d)",
        "a = Relu(x)  b = wpk.Relu(x)",
        "a = RandomNormalLike(x)  b = RandomNormalLike(x)",
        "a = Dropout(x, r, t)  b = Dropout(x, r, t)",
    ],
)
def test_keeps_what_differs(refusals, body):
    text = f"""{H} g (float[2, 2] x) => (float[2, 2] y)
        <float c = {{1}}, float d = {{2}}, float r = {{0.5}}, bool t = {{1}}> {{
        {body} y = Add(a, b) }}
        <domain: "wpk", opset_import: ["" : 17]> Relu (x) => (y) {{ y = Neg(x) }}"""
    assert refusals(text, CommonSubexpressions()) == []


def test_refuses_to_merge_two_graph_outputs(refusals):
    text = f"{H} g (float[2] x) => (float[2] y, float[2] z) {{ y = Relu(x)  z = Relu(x) }}"
    assert refusals(text, CommonSubexpressions()) == ["'z' and 'y' are both graph outputs"]


def test_calls_of_a_function_are_merged(prove):
    prove(
        f"""{H} g (float[2] x) => (float[2] y) {{ a = wpk.f(x)  b = wpk.f(x)  y = Add(a, b) }}
        <domain: "wpk", opset_import: ["" : 17]> f (x) => (y) {{ y = Neg(x) }}""",
        CommonSubexpressions(),
    )
