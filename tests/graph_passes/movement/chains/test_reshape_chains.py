"""At most one Reshape and one Transpose is left of a chain."""

import pytest

from wpk.graph_passes.movement.chains.reshape_chains import ReshapeChains

H = '<ir_version: 8, opset_import: ["" : 17]>'


@pytest.mark.parametrize(
    ("body", "inputs", "output", "ops"),
    [
        (
            "a = Flatten(x)  y = Unsqueeze(a, one)",
            "float[2, 3, 4] x",
            "float[2, 1, 12] y",
            ["Reshape"],
        ),
        (
            "a = Flatten(x)  y = Unsqueeze(a, one)",
            "float[n, 3, 4] x",
            "float[n, 1, 12] y",
            ["Reshape"],
        ),
        (
            "a = Transpose <perm = [1, 2, 0]> (x)  y = Transpose <perm = [0, 2, 1]> (a)",
            "float[n, 3, 4] x",
            "float[3, n, 4] y",
            ["Transpose"],
        ),
        (
            "a = Transpose (x)  y = Transpose (a)",
            "float[2, 3, 4] x",
            "float[2, 3, 4] y",
            ["Transpose"],
        ),
        (
            "y = Transpose <perm = [0, 2, 3, 1]> (x)",
            "float[n, 7, 1, 1] x",
            "float[n, 1, 1, 7] y",
            ["Reshape"],
        ),
        (
            "a = Squeeze(x, zero)  b = Transpose <perm = [0, 2, 1]> (a)  y = Unsqueeze(b, zero)",
            "float[1, 3, 4, 5] x",
            "float[1, 3, 5, 4] y",
            ["Transpose"],
        ),
        (
            "a = Reshape(x, merged)  b = Transpose <perm = [1, 0]> (a)  y = Reshape(b, back)",
            "float[2, 3, 4] x",
            "float[4, 2, 3] y",
            ["Transpose"],
        ),
    ],
)
def test_merges(prove, body, inputs, output, ops):
    text = f"""{H} g ({inputs}) => ({output}) <int64[1] one = {{1}}, int64[1] zero = {{0}},
        int64[2] merged = {{6, 4}}, int64[3] back = {{4, 2, 3}}> {{ {body} }}"""
    assert prove(text, ReshapeChains(), batches=(1, 3)).ops == ops


def test_keeps_a_transpose_between_other_groups(refusals):
    text = f"""{H} g (float[2, 3, 4] x) => (float[4, 3, 2] y)
        <int64[2] merged = {{6, 4}}, int64[3] back = {{4, 3, 2}}> {{
        a = Reshape(x, merged)  b = Transpose <perm = [1, 0]> (a)  y = Reshape(b, back) }}"""
    assert refusals(text, ReshapeChains()) == []


def test_keeps_a_split_that_is_no_merge(refusals):
    text = f"""{H} g (float[6, 4] x) => (float[4, 6] y)
        <int64[3] parts = {{2, 3, 4}}, int64[2] back = {{4, 6}}> {{
        a = Reshape(x, parts)  b = Transpose <perm = [2, 0, 1]> (a)  y = Reshape(b, back) }}"""
    assert refusals(text, ReshapeChains()) == []


def test_refuses_two_free_dimensions_that_move(refusals):
    text = f"""{H} g (float[n, m, 4] x) => (float[1, n, 1, m, 4] y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}> {{
        a = Unsqueeze(x, one)  y = Unsqueeze(a, zero) }}"""
    (reason,) = refusals(text, ReshapeChains())
    assert "no constant target reshapes ['n', 'm', 4] to" in reason


def test_heads_are_turned_in_one_transpose_at_every_batch(prove):
    text = f"""{H} g (float[n, 2, 3, 4] x) => (float[n, 2, 4, 3] y)
        <int64[3] merged = {{-1, 3, 4}}, int64[4] back = {{-1, 2, 4, 3}}> {{
        a = Reshape(x, merged)  b = Transpose <perm = [0, 2, 1]> (a)  y = Reshape(b, back) }}"""
    assert prove(text, ReshapeChains(), batches=(1, 3, 8)).ops == ["Transpose"]


@pytest.mark.parametrize("back", ["3, 4, -1", "-1, 6, 4, 1"])
def test_keeps_another_split_of_a_free_batch(refusals, back):
    rank = len(back.split(","))
    text = f"""{H} g (float[n, 2, 3, 4] x) => (float[{", ".join("pqrs"[:rank])}] y)
        <int64[3] merged = {{-1, 3, 4}}, int64[{rank}] back = {{{back}}}> {{
        a = Reshape(x, merged)  b = Transpose <perm = [0, 2, 1]> (a)  y = Reshape(b, back) }}"""
    assert refusals(text, ReshapeChains()) == []
