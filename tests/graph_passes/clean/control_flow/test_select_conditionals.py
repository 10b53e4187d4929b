"""Small Ifs become a choice between both branches, as torch's exporter writes ``and`` and ``or``."""

import pytest

from wpk.graph_passes.clean.control_flow.select_conditionals import SelectConditionals

H = '<ir_version: 8, opset_import: ["" : 17]>'


def conditional(then: str, other: str, result: str = "bool") -> str:
    return f"""{H} g (float[4] x, int64[3] t, float s) => ({result} y, float[4] v)
        <int64 one = {{1}}, int64[2] far = {{0, 1}}> {{
        zero = Constant<value = float {{0.0}}>()  c = Greater(s, zero)  k = Exp(x)
        y, v = If(c) <then_branch = a () => ({result} p, float[4] m) {{ {then}  m = Add(x, k) }},
                      else_branch = b () => ({result} q, float[4] n) {{ {other}  n = Neg(k) }}> }}"""


TOKEN = "i = Constant<value = int64 {2}>()  u = Gather(t, i)  e = Equal(u, one)  p = Not(e)"


@pytest.mark.parametrize(
    ("then", "other", "result"),
    [
        (TOKEN, "q = Constant<value = bool {0}>()", "bool"),
        ("p = Identity(t)", "q = Add(t, t)", "int64[3]"),
        ("p = Tanh(s)", "q = Constant<value = float {2.5}>()", "float"),
    ],
)
def test_both_branches_are_computed(prove, then, other, result):
    proof = prove(conditional(then, other, result), SelectConditionals())
    assert "If" not in proof.ops
    assert proof.ops.count("Where") == (1 if result == "bool" else 2)


@pytest.mark.parametrize(
    ("then", "other", "result"),
    [
        ("p = Gather(t, one)", "q = Identity(one)", "int64"),  # not at a constant place
        ("p = Div(t, t)", "q = Add(t, t)", "int64[3]"),
        ("p = Identity(t)", "q = Gather(t, far)", "int64[k]"),
        ("p = MatMul(x, k)", "q = Neg(s)", "float"),
    ],
)
def test_other_branches_stay(load, then, other, result):
    text = conditional(then, other, result)
    text = text.replace("int64 one = {1}, ", "").replace("int64[3] t", "int64[3] t, int64 one")
    assert SelectConditionals()(load(text)).rewritten == 0


def test_long_branches_and_large_results_stay(load):
    chain = " ".join(f"a{i + 1} = Tanh(a{i})" for i in range(8))
    assert (
        SelectConditionals()(
            load(conditional(f"a0 = Neg(s) {chain} p = Neg(a8)", "q = Neg(s)", "float"))
        ).rewritten
        == 0
    )
    large = conditional("p = Tanh(s)", "q = Neg(s)", "float").replace("float[4]", "float[5000]")
    assert SelectConditionals()(load(large)).rewritten == 0
