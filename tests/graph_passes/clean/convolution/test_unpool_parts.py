"""MaxUnpool is written into zeros, plane by plane where a MaxPool found the places."""

import pytest

from wpk.graph_passes.clean.convolution.unpool_parts import UnpoolParts

H = '<ir_version: 8, opset_import: ["" : 18]>'
WINDOW = "kernel_shape = [3, 2], strides = [2, 2], pads = [1, 0, 1, 0]"
POOLED = f"v, i = MaxPool<{WINDOW}>(x) w = Neg(v)"
RANKS = {
    "images": (f"float[N, 3, 9, 6] x) => (float[N, 3, 9, 6] y) {{ {POOLED}", WINDOW),
    "rows": (
        "float[N, 3, 8] x) => (float[N, 3, 8] y) { v, i = MaxPool<kernel_shape = [2], strides = [2]>(x) w = Neg(v)",
        "kernel_shape = [2], strides = [2]",
    ),
    "volumes": (
        """float[2, 3, 4, 2, 6] x) => (float[2, 3, 4, 2, 6] y) {
            v, i = MaxPool<kernel_shape = [2, 1, 2], strides = [2, 1, 2]>(x)  w = Neg(v)""",
        "kernel_shape = [2, 1, 2], strides = [2, 1, 2]",
    ),
}


@pytest.mark.parametrize("rank", RANKS)
def test_planes_are_written_apart(prove, rank):
    text, window = RANKS[rank]
    proof = prove(f"{H} g ({text} y = MaxUnpool<{window}>(w, i) }}", UnpoolParts(), batches=(1, 3))
    assert "MaxUnpool" not in proof.ops
    assert proof.node("ScatterElements").attrs == {"axis": 2}
    assert "Mod" in proof.ops


@pytest.mark.parametrize(
    ("pool", "asked"),
    [
        ("storage_order = 1, ", ""),
        ("", ", sizes"),
    ],
)
def test_places_of_any_origin_are_those_of_the_whole_tensor(prove, pool, asked):
    text = f"""{H} g (float[2, 3, 9, 6] x) => (float[2, 3, 9, 6] y) <int64[4] sizes = {{2, 3, 9, 6}}> {{
        v, i = MaxPool<{pool}{WINDOW}>(x)  w = Neg(v)  j = Identity(i)
        y = MaxUnpool<{WINDOW}>(w, j{asked}) }}"""
    proof = prove(text, UnpoolParts())
    scatter = proof.node("ScatterElements")
    assert scatter.attrs == {"axis": 0}
    assert scatter.inputs[1].shape == [2 * 3 * 5 * 3]


def refused(inputs: str, attributes: str = WINDOW, more: str = "") -> str:
    return (
        f"{H} g ({inputs}) => (float[a, 3, h, w] y) {{ y = MaxUnpool<{attributes}>(x, i{more}) }}"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            refused("float[N, 3, 5, 3] x, int64[N, 3, 5, 3] i"),
            "its batch 'N' is free, and no MaxPool found its places there",
        ),
        (
            refused("float[2, 3, h, 3] x, int64[2, 3, h, 3] i"),
            "'x' has shape [2, 3, 'h', 3]: all but the batch must be known",
        ),
        (
            refused("float[2, 3, 5, 3] x, int64[2, 3, 5, 3] i, int64[4] s", more=", s"),
            "the shape that is asked for is not constant: ONNX and ONNX Runtime disagree where places lie",
        ),
    ],
)
def test_refuses_in_words(refusals, text, reason):
    assert refusals(text, UnpoolParts()) == [reason]


def test_a_larger_shape_is_refused(refusals):
    text = refused("float[2, 3, 5, 3] x, int64[2, 3, 5, 3] i", more=", s")
    text = text.replace("y) {", "y) <int64[4] s = {2, 3, 10, 8}> {")
    (reason,) = refusals(text, UnpoolParts())
    assert reason.startswith("the shape that is asked for is [2, 3, 10, 8] and not [2, 3, 9, 6]")
