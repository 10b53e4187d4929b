"""A branch that is known to be taken stands in place of its If."""

import pytest

from wpk.graph_passes.clean.control_flow.inline_conditionals import InlineConditionals
from wpk.graph_passes.fold.constant_folding import ConstantFolding

H = '<ir_version: 8, opset_import: ["" : 17]>'

TWO = """
  y = If(c) <
    then_branch = a () => (float[2,3] t) { w = Constant<value=float {2.0}>() q = Mul(x, w) t = Add(q, k) },
    else_branch = b () => (float[2,3] u) { q = Neg(k) u = Sub(q, x) }>"""


@pytest.mark.parametrize(
    ("condition", "ops"), [(1, ["Constant", "Mul", "Add"]), (0, ["Neg", "Sub"])]
)
def test_takes_the_branch_with_what_it_reads_outside(prove, condition, ops):
    proof = prove(
        f"""{H} g (float[2,3] x) => (float[2,3] y) <bool c = {{{condition}}}> {{ k = Abs(x) {TWO} }}""",
        InlineConditionals(),
    )
    assert proof.ops == ["Abs", *ops, "Identity"]


def test_two_conditionals_may_use_the_same_names(prove):
    second = TWO.replace("y = If", "z = If")
    proof = prove(
        f"""{H} g (float[2,3] x) => (float[2,3] y, float[2,3] z) <bool c = {{1}}> {{
        k = Abs(x) {TWO} {second} }}""",
        InlineConditionals(),
        rewritten=2,
    )
    assert proof.ops.count("Mul") == 2


def test_a_branch_may_pass_on_what_it_is_given(prove):
    proof = prove(
        f"""{H} g (float[2,3] x) => (float[2,3] y) <bool c = {{1}}> {{
        k = Abs(x)
        y = If(c) <then_branch = a () => (float[2,3] t) {{ t = Identity(k) }},
                   else_branch = b () => (float[2,3] u) {{ u = Neg(k) }}> }}""",
        InlineConditionals(),
    )
    assert proof.ops == ["Abs", "Identity", "Identity"]


def test_a_branch_may_be_the_only_reader_of_an_input(prove):
    proof = prove(
        f"""{H} g (float[2,3] x) => (float[2,3] y) <bool c = {{0}}> {{
        y = If(c) <then_branch = a () => (float[2,3] t) {{ t = Tanh(x) }},
                   else_branch = b () => (float[2,3] u) {{ u = Neg(x) }}> }}""",
        InlineConditionals(),
    )
    assert proof.ops == ["Neg", "Identity"]


def test_nested_conditionals_are_taken_one_after_the_other(prove):
    inner = """t = If(c) <then_branch = d () => (float[2,3] r) { r = Mul(k, n) },
                       else_branch = e () => (float[2,3] s) { s = Neg(n) }>"""
    proof = prove(
        f"""{H} g (float[2,3] x) => (float[2,3] y) <bool c = {{1}}> {{
        k = Abs(x)
        y = If(c) <then_branch = a () => (float[2,3] t) {{ n = Exp(k) {inner} }},
                   else_branch = b () => (float[2,3] u) {{ u = Neg(k) }}> }}""",
        InlineConditionals(),
        settle=True,
    )
    assert proof.ops == ["Abs", "Exp", "Mul", "Identity", "Identity"]


def test_nobody_reads_for_the_branch_that_is_not_taken(load):
    graph = load(
        f"""{H} g (float[2,3] x) => (float[2,3] y) <bool c = {{1}}> {{ k = Abs(x) {TWO} }}"""
    )
    InlineConditionals()(graph)
    assert [reader.op for reader in graph.tensors()["k"].outputs] == ["Add"]


def test_refuses_a_condition_that_is_not_known(refusals):
    text = f"{H} g (float[2,3] x, bool c) => (float[2,3] y) {{ k = Abs(x) {TWO} }}"
    assert refusals(text, InlineConditionals()) == ["its condition 'c' is not constant"]


def test_a_condition_is_folded_first(load):
    graph = load(f"""{H} g (float[2,3] x) => (float[2,3] y) <int64 a = {{3}}, int64 b = {{4}}> {{
        c = Less(a, b) k = Abs(x) {TWO} }}""")
    ConstantFolding()(graph)
    assert InlineConditionals()(graph).rewritten == 1
