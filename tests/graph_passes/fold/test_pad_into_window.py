"""Zeros in front of a window become its own padding, where it would see the same."""

import pytest

from wpk.graph_passes.fold.pad_into_window import PadIntoWindow

H = '<ir_version: 8, opset_import: ["" : 18]>'
INPUTS = "float[n, 2, 6, 6] x, float[3, 2, 3, 3] w, float low"
CONSTANTS = """int64[8] p = {0, 0, 1, 0, 0, 0, 2, 1}, int64[4] q = {1, 0, 0, 1}, int64[2] axes = {2, 3},
    int64[8] deep = {0, 1, 0, 0, 0, 0, 0, 0}, int64[8] crop = {0, 0, -1, 0, 0, 0, 0, 0},
    float one = {1}, int64[8] wide = {0, 0, 3, 0, 0, 0, 0, 0}"""


@pytest.mark.parametrize(
    ("body", "pads"),
    [
        ("a = Pad(x, p)  y = Conv(a, w)", [1, 0, 2, 1]),
        ("a = Pad(x, p)  y = Conv <pads = [0, 1, 1, 0], strides = [2, 1]> (a, w)", [1, 1, 3, 1]),
        ('a = Pad(x, q, , axes)  y = Conv <auto_pad = "VALID"> (a, w)', [1, 0, 0, 1]),
        ("a = Pad(x, p)  y = AveragePool <kernel_shape = [3, 3]> (a)", [1, 0, 2, 1]),
        ("a = Pad(x, p, low)  y = MaxPool <kernel_shape = [3, 3]> (a)", [1, 0, 2, 1]),
        ("r = Relu(x)  a = Pad(r, p)  y = MaxPool <kernel_shape = [3, 3]> (a)", [1, 0, 2, 1]),
    ],
)
def test_moves_the_padding(prove, body, pads):
    text = f"{H} g ({INPUTS}) => (float[n, m, r, s] y) <{CONSTANTS}> {{ {body} }}"
    proof = prove(text, PadIntoWindow(), constants="w low=-inf")
    assert proof.graph.nodes[-1].attrs["pads"] == pads
    assert "Pad" not in proof.ops


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('a = Pad <mode = "reflect"> (x, p)  y = Conv(a, w)', "'Pad_0' pads in mode reflect"),
        ("a = Pad(x, p, one)  y = Conv(a, w)", "'Pad_0' pads with 1.0, 'Conv_1' with 0"),
        ("a = Pad(x, crop)  y = Conv(a, w)", "'Pad_0' crops"),
        (
            'a = Pad(x, p)  y = Conv <auto_pad = "SAME_LOWER"> (a, w)',
            "'Conv_1' computes its own padding (auto_pad)",
        ),
        (
            "a = Pad(x, p)  y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (a)",
            "'AveragePool_1' does not count its own padding",
        ),
        (
            "a = Pad(x, p)  y = AveragePool <kernel_shape = [3, 3], ceil_mode = 1> (a)",
            "'AveragePool_1' rounds its size up, and would count other places",
        ),
        (
            "a = Pad(x, p)  y = MaxPool <kernel_shape = [3, 3]> (a)",
            "'x' may be negative, so the zeros around it matter",
        ),
        (
            "a = Pad(x, p, one)  y = MaxPool <kernel_shape = [3, 3]> (a)",
            "'Pad_0' pads with 1.0, 'MaxPool_1' with -inf",
        ),
        (
            "a = Pad(x, p)  y, i = MaxPool <kernel_shape = [3, 3]> (a)",
            "'MaxPool_1' gives indices, which count the padding",
        ),
        (
            "a = Pad(x, p)  y = MaxPool <kernel_shape = [3, 3], ceil_mode = 1> (a)",
            "'MaxPool_1' rounds its size up, and could see padding only",
        ),
        (
            "r = Relu(x)  a = Pad(r, wide)  y = MaxPool <kernel_shape = [3, 3]> (a)",
            "a window of 'MaxPool_2' could see padding only",
        ),
    ],
)
def test_refuses(refusals, body, reason):
    text = f"{H} g ({INPUTS}) => (float[n, m, r, s] y) <{CONSTANTS}> {{ {body} }}"
    assert refusals(text, PadIntoWindow(), "w low=-inf") == [reason]


def test_refuses_padded_channels(refusals):
    text = f"""{H} g ({INPUTS}) => (float[n, m, r, s] y) <{CONSTANTS}> {{
        a = Pad(x, deep)  y = MaxPool <kernel_shape = [3, 3]> (a) }}"""
    (reason,) = refusals(text, PadIntoWindow(), "w low=-inf")
    assert reason == "'Pad_0' pads the batch or the channels"


def test_refuses_computed_padding(refusals):
    text = f"""{H} g ({INPUTS}, int64[8] pads) => (float[n, m, r, s] y) {{
        a = Pad(x, pads)  y = Conv(a, w) }}"""
    assert refusals(text, PadIntoWindow(), "w low=-inf") == ["the padding 'pads' is not constant"]


@pytest.mark.parametrize("size", ["3", "n"])
def test_refuses_windows_with_gaps_that_may_jump_over_the_image(refusals, size):
    """Taps 4 apart around 3 places, with a zero on either side: the first window reads the two zeros."""
    text = f"""{H} g (float[1, 2, {size}, 6] x) => (float[1, 2, m, r] y) <int64[8] p = {{0, 0, 1, 0, 0, 0, 1, 0}}> {{
        r = Relu(x)  a = Pad(r, p)  y = MaxPool <kernel_shape = [2, 2], dilations = [4, 1]> (a) }}"""
    assert refusals(text, PadIntoWindow()) == ["a window of 'MaxPool_2' could see padding only"]


def test_windows_with_gaps_no_wider_than_the_image_take_the_padding(prove):
    text = f"""{H} g (float[1, 2, 4, 6] x) => (float[1, 2, m, r] y) <int64[8] p = {{0, 0, 1, 0, 0, 0, 1, 0}}> {{
        r = Relu(x)  a = Pad(r, p)  y = MaxPool <kernel_shape = [2, 2], dilations = [4, 1]> (a) }}"""
    assert prove(text, PadIntoWindow()).ops == ["Relu", "MaxPool"]


@pytest.mark.parametrize(
    ("high", "kept"), [(", one", False), (", minus", True), ("", False), (", x0", True)]
)
def test_a_clip_below_zero_is_negative_whatever_its_lower_limit(load, high, kept):
    text = f"""{H} g (float[1, 2, 6, 6] x, float x0) => (float[1, 2, m, r] y)
        <int64[8] p = {{0, 0, 1, 0, 0, 0, 1, 0}}, float zero = {{0}}, float one = {{1}}, float minus = {{-1}}> {{
        c = Clip(x, zero{high})  a = Pad(c, p)  y = MaxPool <kernel_shape = [3, 3]> (a) }}"""
    graph = load(text)
    PadIntoWindow()(graph)
    assert ("Pad" in [node.op for node in graph.nodes]) == kept
