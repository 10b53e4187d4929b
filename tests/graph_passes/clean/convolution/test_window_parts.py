"""Windows over three axes become windows over two with the same numbers."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime
import pytest

from wpk.graph_passes.clean.convolution.window_parts import WindowParts

H = '<ir_version: 10, opset_import: ["" : 20]>'
WINDOW = "kernel_shape = [2, 3, 2], strides = [1, 2, 2], pads = [1, 1, 0, 0, 1, 1]"
CASES = {
    "largest": f"""{H} g (float[N, 3, 5, 7, 6] x) => (float[N, 3, 5, 4, 3] y)
        {{ y = MaxPool<{WINDOW}>(x) }}""",
    "average": f"""{H} g (float[N, 3, 5, 7, 6] x) => (float[N, 3, 5, 4, 3] y)
        {{ y = AveragePool<{WINDOW}>(x) }}""",
    "average with what is padded": f"""{H} g (float[2, 3, 5, 7, 6] x) => (float[2, 3, 5, 4, 3] y)
        {{ y = AveragePool<{WINDOW}, count_include_pad = 1>(x) }}""",
    "largest of dilated windows that are cut off": f"""{H} g (float[2, 3, 6, 7, 8] x)
        => (float[2, 3, 2, 3, 3] y) {{ y = MaxPool<kernel_shape = [2, 2, 2], strides = [3, 2, 3],
        dilations = [2, 2, 1], ceil_mode = 1>(x) }}""",
    "the same size": f"""{H} g (float[2, 3, 5, 7, 6] x) => (float[2, 3, 3, 4, 3] y)
        {{ y = MaxPool<kernel_shape = [3, 3, 3], strides = [2, 2, 2], auto_pad = "SAME_LOWER">(x) }}""",
    "convolution": f"""{H} g (float[2, 4, 6, 7, 5] x, float[6, 4, 3, 2, 3] w, float[6] b)
        => (float[2, 6, 3, 6, 3] y) {{ y = Conv<strides = [2, 1, 2], pads = [1, 0, 1, 0, 0, 1]>(x, w, b) }}""",
    "dilated groups": f"""{H} g (float[3, 4, 6, 5, 5] x, float[6, 2, 2, 3, 3] w)
        => (float[3, 6, 4, 3, 3] y) {{ y = Conv<group = 2, dilations = [2, 1, 1]>(x, w) }}""",
    "convolution of a free batch": f"""{H} g (float[N, 4, 6, 7, 5] x, float[6, 4, 3, 2, 3] w, float[6] b)
        => (float[N, 6, 3, 6, 3] y) {{ y = Conv<strides = [2, 1, 2], pads = [1, 0, 1, 0, 0, 1]>(x, w, b) }}""",
}


@pytest.mark.parametrize("case", CASES)
def test_two_axes_give_the_same_numbers(prove, case):
    proof = prove(
        CASES[case],
        WindowParts(),
        constants=" ".join(n for n in "wb" if f"] {n}" in CASES[case]),
        batches=(1, 3),
        terms=256,
    )
    (window,) = {op for op in proof.ops if op in ("Conv", "MaxPool", "AveragePool")}
    assert all(len(n.inputs[0].shape) == 4 for n in proof.graph.nodes if n.op == window)


PLACES = {
    "by rows": (WINDOW, "5, 4, 3"),
    "by columns": (f"{WINDOW}, storage_order = 1", "5, 4, 3"),
    "of windows that are cut off": (
        "kernel_shape = [2, 2, 2], strides = [2, 2, 2], dilations = [1, 2, 1], ceil_mode = 1",
        "3, 3, 3",
    ),
}


@pytest.mark.parametrize("case", PLACES)
@pytest.mark.parametrize("equal", [False, True])
def test_places_are_those_of_three_axes(case, equal, load):
    """Those of ONNX Runtime; of equal elements the first's."""
    window, shape = PLACES[case]
    text = f"""{H} g (float[2, 3, 5, 7, 6] x) => (float[2, 3, {shape}] y, int64[2, 3, {shape}] i)
        {{ y, i = MaxPool<{window}>(x) }}"""
    model, graph = onnx.parser.parse_model(text), load(text)
    assert WindowParts()(graph).rewritten == 1
    x = np.random.default_rng(0).normal(size=(2, 3, 5, 7, 6)).astype(np.float32)
    x = np.round(x) if equal else x
    found, right = (
        onnxruntime.InferenceSession(each.SerializeToString()).run(None, {"x": x})
        for each in (gs.export_onnx(graph, ir_version=model.ir_version), model)
    )
    for mine, its in zip(found, right, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(
    ("given", "attributes", "reason"),
    [
        ("N", "kernel_shape = [2, 2, 2]", "it gives indices, too, of a free batch"),
        (
            "2",
            "kernel_shape = [2, 2, 2], dilations = [5, 1, 1], pads = [4, 0, 0, 4, 0, 0]",
            "it gives indices, too, and a window lies all in its padding",
        ),
        (
            "2",
            'kernel_shape = [2, 2, 2], auto_pad = "SAME_UPPER"',
            "it computes how much it pads",
        ),
    ],
)
def test_places_that_are_not_known_are_refused(refusals, given, attributes, reason):
    text = f"""{H} g (float[{given}, 3, 1, 7, 6] x) => (float[{given}, 3, a, b, c] y, int64[{given}, 3, a, b, c] i)
        {{ y, i = MaxPool<{attributes}>(x) }}"""
    if "dilations" not in attributes:
        text = text.replace("3, 1, 7", "3, 5, 7")
    assert refusals(text, WindowParts()) == [reason]


def test_two_axes_stay(load):
    graph = load(
        f"{H} g (float[2, 3, 5, 7] x) => (float[2, 3, 4, 6] y) {{ y = MaxPool<kernel_shape = [2, 2]>(x) }}"
    )
    assert WindowParts()(graph).rewritten == 0


def test_computed_padding_of_a_convolution_is_refused(refusals):
    text = f"""{H} g (float[2, 4, 6, 7, 5] x, float[6, 4, 3, 2, 3] w) => (float[2, 6, 6, 7, 5] y)
        {{ y = Conv<auto_pad = "SAME_UPPER">(x, w) }}"""
    assert refusals(text, WindowParts()) == ["it computes how much it pads"]
