"""Rows that are divided by their length are RMS normalisations where fp16 cannot tell them apart."""

import numpy as np
import onnx_graphsurgeon as gs
import pytest

from wpk.dtypes import DType
from wpk.graph_passes.recognise.unit_rows import RecognizeUnitRows

LENGTH = "l = ReduceL2(x, axis)  m = Clip(l, eps)"


def _text(body: str, axis: str = "-1", eps: str = "1e-12", output: str = "float[n, 5, 8] y") -> str:
    return f"""<ir_version: 8, opset_import: ["" : 20]>
        g (float[n, 5, 8] x) => ({output})
        <float eps = {{{eps}}}, int64[1] axis = {{{axis}}}, int64[3] whole = {{1, 1, 8}}> {{
        {body} }}"""


@pytest.mark.parametrize(
    "body",
    [
        LENGTH + "  y = Div(x, m)",
        LENGTH + "  e = Expand(m, whole)  y = Div(x, e)",
        "l = ReduceL2(x, axis)  m = Max(eps, l)  y = Div(x, m)",
    ],
)
def test_recognises(prove, body):
    proof = prove(_text(body), RecognizeUnitRows(DType.FP16), batches=(1, 3))
    norm = proof.node("RMSNormalization")
    assert proof.ops == ["RMSNormalization"]
    assert norm.attrs["axis"] == 2
    assert norm.attrs["epsilon"] == pytest.approx(1e-24 / 8)
    assert norm.inputs[1].exact.tolist() == [8**-0.5] * 8, "float64 sees what fp32 rounds"


def test_what_fp16_holds_shows_no_difference():
    shortest = 2.0**-24
    for length in (0.0, shortest, 3 * shortest, 1.0):
        limited = max(length, 2.0**-36)
        assert length / np.sqrt(length**2 + 2.0**-72) == pytest.approx(
            length / limited, rel=2.0**-24, abs=0
        )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            _text(LENGTH + "  y = Div(x, m)", axis="1"),
            "it normalises axes [1] of 3, which are not the last ones",
        ),
        (
            _text(LENGTH + "  y = Div(x, m)", eps="1e-6"),
            "rows of 'x' may be as short as their limit 1e-06 is, which is more than 1.45519e-11",
        ),
        (
            _text(LENGTH + "  y = Div(x, m)", output="float[n, 5, 8] y, float[n, 5, 1] m"),
            "'m' inside the pattern is read elsewhere",
        ),
        (
            _text(
                "t = Transpose<perm = [0, 2, 1]>(x)  l = ReduceL2(t, axis)  m = Clip(l, eps)"
                "  y = Div(t, m)",
                output="float[n, 8, 5] y",
            ),
            "the elements of a row of 't' are not side by side",
        ),
    ],
)
def test_refuses(refusals, text, reason):
    assert refusals(text, RecognizeUnitRows(DType.FP16)) == [reason]


@pytest.mark.parametrize(
    "body",
    [
        LENGTH + "  y = Div(m, x)",
        LENGTH + "  r = Relu(x)  y = Div(r, m)",
        "l = ReduceL1(x, axis)  m = Clip(l, eps)  y = Div(x, m)",
        "l = ReduceL2(x, axis)  m = Clip(l, eps, eps)  y = Div(x, m)",
        "l = ReduceL2(x, axis)  m = Min(l, eps)  y = Div(x, m)",
        "l = ReduceL2(x, axis)  y = Div(x, l)",
    ],
)
def test_other_arithmetic_stays(refusals, body):
    assert refusals(_text(body), RecognizeUnitRows(DType.FP16)) == []


@pytest.mark.parametrize("storage", [DType.FP32, DType.BF16])
def test_shorter_rows_than_the_limit_stay(refusals, storage):
    assert refusals(_text(LENGTH + "  y = Div(x, m)"), RecognizeUnitRows(storage)) == []


def test_a_graph_that_is_rewritten_has_the_opset_of_what_it_holds(load):
    graph: gs.Graph = load(_text(LENGTH + "  y = Div(x, m)"))
    RecognizeUnitRows(DType.FP16)(graph)
    assert graph.opset == 23
