"""Outputs are widened by those who make their parts."""

import pytest

from wpk.graph_passes.fusion.casts_before_joins import CastsBeforeJoins

H = '<ir_version: 8, opset_import: ["" : 17]>'
NEAREST = 'Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'


def _joined(end: str = "y = Cast<to = 1>(c)", more: str = "", dtype: str = "float16") -> str:
    return f"""{H} g ({dtype}[n, 3, 5] a, {dtype}[n, 4, 5] b) => (float[n, 7, 5] y{more}) {{
        s = Neg(a)  t = Relu(b)  c = Concat<axis = 1>(s, t)  {end} }}"""


def _enlarged(scale: float, size: str, mode: str = NEAREST) -> str:
    return f"""{H} g (float16[n, 3, 4, 6] x) => (float[n, 3, {size}] y) <float[4] k = {{1, 1, {scale}, {scale}}}> {{
        s = Neg(x)  r = {mode}(s, , k)  y = Cast<to = 1>(r) }}"""


def test_the_parts_of_a_join_are_widened(prove):
    proof = prove(_joined(), CastsBeforeJoins(), batches=(1, 3))
    assert proof.ops == ["Neg", "Relu", "Cast", "Cast", "Concat"]


def test_joins_of_joins_are_widened_one_after_the_other(prove):
    text = _joined("d = Concat<axis = 1>(c, b)  y = Cast<to = 1>(d)").replace("7, 5] y", "11, 5] y")
    proof = prove(text, CastsBeforeJoins(), settle=True)
    assert proof.ops.count("Cast") == 3


def test_what_is_enlarged_is_widened_first(prove):
    proof = prove(_enlarged(2, "8, 12"), CastsBeforeJoins(), batches=(1, 3))
    assert proof.ops == ["Neg", "Cast", "Resize"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_enlarged(0.5, "2, 3"), "smaller"),
        (_joined(more=", float16[n, 7, 5] z", end="y = Cast<to = 1>(c)  z = Neg(c)"), "2 readers"),
    ],
    ids=["a smaller one", "another reader"],
)
def test_refuses_in_words(load, text, reason):
    (refusal,) = CastsBeforeJoins()(load(text)).refusals
    assert reason in refusal.reason


@pytest.mark.parametrize(
    "text",
    [
        _joined("d = Cast<to = 1>(c)  y = Exp(d)"),
        _joined("y = Cast<to = 1>(c)", dtype="double"),
    ],
    ids=["computed with afterwards", "a narrowing cast"],
)
def test_others_stay(load, text):
    assert CastsBeforeJoins()(load(text)).rewritten == 0
