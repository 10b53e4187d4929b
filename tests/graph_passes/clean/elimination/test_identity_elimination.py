"""Nodes that give back their input go; those that only look like it stay."""

import pytest

from wpk.graph_passes.clean.elimination.identity_elimination import IdentityElimination

H = '<ir_version: 8, opset_import: ["" : 17]>'
CONSTANTS = """<float zero = {0}, float one = {1}, float[3] ones = {1, 1, 1}, float two = {2},
  int64[2] same = {2, 3}, int64[2] back = {-1, -1}, int64[4] none = {0, 0, 0, 0},
  int64[2] from = {0, 0}, int64[2] to = {9, 9}, int64[2] axes = {0, 1}, int64[2] once = {1, 1},
  int64[2] least = {-9, -9}, bool no = {0}, float half = {0.5}>"""


def _text(body: str) -> str:
    return f"{H} g (float[2, 3] x) => (float[2, 3] y) {CONSTANTS} {{ a = {body}  y = Relu(a) }}"


@pytest.mark.parametrize(
    "body",
    [
        "Identity(x)",
        "Dropout(x)",
        "Dropout(x, half, no)",
        "Cast <to = 1> (x)",
        "Reshape(x, same)",
        "Flatten <axis = 1> (x)",
        "Expand(x, once)",
        "Tile(x, once)",
        "Slice(x, from, to, axes)",
        "Transpose <perm = [0, 1]> (x)",
        "Pad(x, none)",
        "Concat <axis = 0> (x)",
        "Sum(x)",
        "Max(x)",
        "Min(x)",
        "Mean(x)",
        "Add(x, zero)",
        "Add(zero, x)",
        "Sub(x, zero)",
        "Mul(ones, x)",
        "Div(x, one)",
        "Pow(x, one)",
        "Clip(x)",
    ],
)
def test_removes(prove, body):
    proof = prove(_text(body), IdentityElimination())
    assert proof.ops == ["Relu"]


@pytest.mark.parametrize(
    "body",
    [
        "Cast <to = 10> (x)  c = Neg(b)  a = Cast <to = 1> (c)",
        "Slice(x, back, least, axes, back)",
        "Transpose <perm = [1, 0]> (x)  a = Transpose <perm = [1, 0]> (b)",
        "Sub(zero, x)  a = Neg(b)",
        "Div(one, x)  a = Neg(b)",
        "Mul(x, two)  a = Neg(b)",
        "Clip(x, zero)  a = Neg(b)",
    ],
)
def test_keeps_what_changes_something(refusals, body):
    first, _, rest = body.partition("  ")
    name = "b" if rest else "a"
    text = f"{H} g (float[2, 3] x) => (float[2, 3] y) {CONSTANTS} {{ {name} = {first} {rest} y = Relu(a) }}"
    assert refusals(text, IdentityElimination()) == []


def test_keeps_broadcasting_additions(refusals):
    text = f"""{H} g (float[3] x, float[2, 3] z) => (float[2, 3] y) <float[2, 3] zeros = {{0, 0, 0, 0, 0, 0}}>
        {{ y = Add(x, zeros) }}"""
    assert refusals(text, IdentityElimination()) == []


def test_pooling_of_one_place_goes(prove):
    prove(
        f"""{H} g (float[1, 2, 3, 3] x) => (float[1, 2, 3, 3] y) {{
        a = MaxPool <kernel_shape = [1, 1]> (x)  y = Relu(a) }}""",
        IdentityElimination(),
    )


def test_keeps_the_name_of_a_graph_output(prove):
    text = f"{H} g (float[2, 3] x) => (float[2, 3] y) {{ a = Relu(x)  y = Identity(a) }}"
    assert prove(text, IdentityElimination()).ops == ["Relu"]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("y = Identity(x)  z = Relu(x)", "'y' is a graph output and 'x' is an input or a constant"),
        ("z = Relu(x)  y = Identity(z)", "'y' and 'z' are both graph outputs"),
    ],
)
def test_refuses_to_lose_an_output(refusals, body, reason):
    text = f"{H} g (float[2] x) => (float[2] y, float[2] z) {{ {body} }}"
    assert refusals(text, IdentityElimination()) == [reason]


def test_refuses_a_dropout_whose_mask_is_read(refusals):
    text = f"{H} g (float[2] x) => (float[2] y, bool[2] z) {{ a, m = Dropout(x)  y = Relu(a)  z = Not(m) }}"
    assert refusals(text, IdentityElimination()) == ["'m' is read too"]


def test_a_training_dropout_stays(refusals):
    text = f"""{H} g (float[2] x) => (float[2] y) <float r = {{0.5}}, bool t = {{1}}> {{
        a = Dropout(x, r, t)  y = Relu(a) }}"""
    assert refusals(text, IdentityElimination()) == []


@pytest.mark.parametrize(("scale", "goes"), [("1.0", True), ("1.1", False)])
def test_a_resize_to_its_own_size_goes_only_with_a_scale_of_one(load, scale, goes):
    graph = load(f"""{H} g (float[1, 1, 4, 4] x) => (float[1, 1, 4, 4] y)
        <float[4] s = {{1.0, 1.0, {scale}, 1.0}}> {{ a = Resize(x, , s)  y = Relu(a) }}""")
    assert IdentityElimination()(graph).rewritten == int(goes)


def test_a_dropout_whose_mask_leaves_the_graph_stays(refusals):
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] x) => (float[2] y, bool[2] m) {
        d, m = Dropout(x)  y = Neg(d) }"""
    assert refusals(text, IdentityElimination()) == ["'m' is read too"]
