"""Arithmetic with constants has one form and one node."""

import pytest

from wpk.graph_passes.fold.constant_chains import ConstantChains, ConstantForms

HEAD = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y)
  <float a = {0.3}, float[3] b = {1, 2, 3}, float[2, 1] c = {4, 5}, float four = {4},
   float half = {0.5}, float two = {2}, float minus = {-1}, float zero = {0}, float six = {6},
   float three = {3}>"""


@pytest.mark.parametrize(
    ("body", "ops"),
    [
        ("y = Sub(x, b)", ["Add"]),
        ("y = Div(x, four)", ["Mul"]),
        ("y = Pow(x, two)", ["Mul"]),
        ("p = Abs(x)  y = Pow(p, half)", ["Abs", "Sqrt"]),
        ("s = Mul(x, x)  e = Add(s, a)  y = Pow(e, half)", ["Mul", "Add", "Sqrt"]),
        ("y = Pow(x, minus)", ["Reciprocal"]),
    ],
)
def test_rewrites_forms(prove, body, ops):
    assert prove(f"{HEAD} {{ {body} }}", ConstantForms()).ops == ops


def test_refuses_a_division_that_would_round_twice(refusals):
    assert refusals(f"{HEAD} {{ y = Div(x, b) }}", ConstantForms()) == ["1 / 'b' is not exact"]


@pytest.mark.parametrize(
    "body", ["y = Pow(x, three)", "y = Pow(x, half)", "y = Div(b, x)", "y = Sub(b, x)"]
)
def test_leaves_other_forms_alone(refusals, body):
    assert refusals(f"{HEAD} {{ {body} }}", ConstantForms()) == []


@pytest.mark.parametrize(
    ("body", "op"),
    [
        ("p = Add(x, a)  y = Add(b, p)", "Add"),
        ("p = Mul(b, x)  y = Mul(p, a)", "Mul"),
        ("p = Mul(b, x)  y = Mul(p, b)", "Mul"),
        ("p = Relu(x)  y = Relu(p)", "Relu"),
        ("p = Relu(x)  y = Clip(p, minus, six)", "Clip"),
        ("p = Clip(x, minus, two)  y = Relu(p)", "Clip"),
        ("p = Clip(x, minus, two)  y = Clip(p, zero)", "Clip"),
        ("p = Clip(x, two, six)  y = Clip(p, minus, zero)", "Clip"),
    ],
)
def test_merges_chains(prove, body, op):
    assert prove(f"{HEAD} {{ {body} }}", ConstantChains()).ops == [op]


def test_keeps_constants_that_would_grow_into_a_matrix(refusals):
    text = f"{HEAD} {{ p = Add(x, b)  y = Add(p, c) }}"
    assert refusals(text, ConstantChains()) == []


def test_refuses_a_value_that_is_read_in_between(refusals):
    text = f"{HEAD} {{ p = Add(x, a)  q = Add(p, b)  y = Div(q, p) }}"
    assert refusals(text, ConstantChains()) == ["'p' has 2 readers"]


def test_refuses_computed_bounds(refusals):
    text = f"{HEAD} {{ m = ReduceMax <keepdims = 0> (x)  p = Clip(x, m)  y = Relu(p) }}"
    assert refusals(text, ConstantChains()) == ["the bounds of a Clip are not constant"]
