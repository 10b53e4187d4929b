"""What is repeated is turned first, and repeated by what reads it."""

import pytest

from wpk.graph_passes.movement.repeats.turned_expands import TurnedExpands

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'


def _text(body: str, x: str = "3, 1, 5", output: str = "4, 3, 5") -> str:
    return f"{HEAD} g (float[{x}] x) => (float[{output}] y) <int64[3] sizes = {{3, 4, 5}}> {{ {body} }}"


def test_turns_what_is_repeated(prove):
    body = "e = Expand(x, sizes)  y = Transpose<perm = [1, 0, 2]>(e)"
    proof = prove(_text(body), TurnedExpands())
    assert proof.ops == ["Transpose", "Expand"]
    assert list(proof.node("Transpose").outputs[0].shape) == [1, 3, 5]


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (_text("e = Expand(x, sizes)  y = Transpose<perm = [1, 0, 2]>(e)", "4, 5"), []),
        (
            _text("e = Expand(x, sizes)  t = Transpose<perm = [1, 0, 2]>(e)  u = Transpose(e)  y = Add(t, t)")
            .replace("y = Add(t, t)", "v = Transpose(u)  w = Transpose<perm = [1, 0, 2]>(v)  y = Add(t, w)"),
            ["'e' has 2 readers"] * 2,
        ),
    ],
)  # fmt: skip
def test_leaves_others(refusals, text, reasons):
    assert refusals(text, TurnedExpands()) == reasons
