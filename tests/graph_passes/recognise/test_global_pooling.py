"""Reductions and poolings over the whole plane are global poolings."""

import pytest

from wpk.graph_passes.recognise.global_pooling import GlobalPooling


def _text(body: str, output: str, opset: int = 18) -> str:
    return f"""<ir_version: 8, opset_import: ["" : {opset}]> g (float[n, 3, 4, 4] x) => ({output})
        <int64[2] hw = {{2, 3}}, int64[2] back = {{-1, -2}}, int64[1] h = {{2}}> {{ {body} }}"""


@pytest.mark.parametrize(
    ("body", "output", "ops", "opset"),
    [
        ("y = ReduceMean(x, hw)", "float[n, 3, 1, 1] y", ["GlobalAveragePool"], 18),
        (
            "y = ReduceMean <keepdims = 0> (x, back)",
            "float[n, 3] y",
            ["GlobalAveragePool", "Flatten"],
            18,
        ),
        ("y = ReduceMean <axes = [2, 3]> (x)", "float[n, 3, 1, 1] y", ["GlobalAveragePool"], 13),
        (
            "y = ReduceMax <axes = [-2, -1], keepdims = 0> (x)",
            "float[n, 3] y",
            ["GlobalMaxPool", "Flatten"],
            13,
        ),
        (
            "y = AveragePool <kernel_shape = [4, 4]> (x)",
            "float[n, 3, 1, 1] y",
            ["GlobalAveragePool"],
            13,
        ),
        (
            "y = MaxPool <kernel_shape = [4, 4], strides = [4, 4]> (x)",
            "float[n, 3, 1, 1] y",
            ["GlobalMaxPool"],
            13,
        ),
    ],
)
def test_recognises(prove, body, output, ops, opset):
    assert prove(_text(body, output, opset), GlobalPooling(), batches=(1, 3)).ops == ops


@pytest.mark.parametrize(
    ("body", "output", "reason"),
    [
        ("y = ReduceMean(x, h)", "float[n, 3, 1, 4] y", "it reduces axes [2] of 4, not all places"),
        (
            "y = AveragePool <kernel_shape = [4, 4], pads = [1, 1, 1, 1]> (x)",
            "float[n, 3, 3, 3] y",
            "the window of 'AveragePool_0' has the size of the plane, but it pads",
        ),
        (
            "y, i = MaxPool <kernel_shape = [4, 4]> (x)",
            "float[n, 3, 1, 1] y",
            "'MaxPool_0' gives indices too",
        ),
    ],
)
def test_refuses(refusals, body, output, reason):
    assert refusals(_text(body, output), GlobalPooling()) == [reason]


def test_refuses_computed_axes(refusals):
    text = """<ir_version: 8, opset_import: ["" : 18]> g (float[n, 3, 4, 4] x, int64[2] axes)
        => (float[n, 3, 1, 1] y) { y = ReduceMean(x, axes) }"""
    (reason,) = refusals(text, GlobalPooling())
    assert reason == "the axes of 'ReduceMean_0' or the rank of its input are not known"


@pytest.mark.parametrize(
    "body", ["y = MaxPool <kernel_shape = [2, 2]> (x)", "y = ReduceMean <axes = [1]> (x)"]
)
def test_leaves_other_windows_and_axes_alone(refusals, body):
    assert refusals(_text(body, "float[n, m, p, q] y", 13), GlobalPooling()) == []
