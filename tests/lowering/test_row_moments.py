"""Moments of rows as they are lowered: beside the rows that they are of, whatever lies between norm and product."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.drawn_weights import parse_model

from wpk.dtypes import Precision
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.problems import MomentsMatmul, NormedMatmul, NormKind

HEAD = '<ir_version: 10, opset_import: ["" : 23]>'
GIVEN = "float[16,32] w, float[32] g, float[32] b, float[32,8] u"
MAKES = "p = MatMul(x, w)  a = Add(p, b)"
LAYER = "n = LayerNormalization(a, g, b)"
MODELS = {
    "a free batch": f"""{HEAD} g (float[N,24,16] x, {GIVEN}) => (float[N,24,8] y) {{
        {MAKES}  {LAYER}  y = MatMul(n, u) }}""",
    "turned rows": f"""{HEAD} g (float[2,3,24,16] x, {GIVEN}) => (float[24,6,8] y)
        <int64[3] rows = {{6, 24, 32}}> {{ {MAKES}  {LAYER}  r = Reshape(n, rows)
        t = Transpose<perm = [1, 0, 2]>(r)  y = MatMul(t, u) }}""",
    "rms": f"""{HEAD} g (float[2,24,16] x, {GIVEN}) => (float[2,24,8] y) {{
        {MAKES}  n = RMSNormalization(a, g)  y = MatMul(n, u) }}""",
    "rows that are given": f"""{HEAD} g (float[2,24,16] x, {GIVEN}) => (float[2,24,32] a, float[2,24,8] y) {{
        {MAKES}  {LAYER}  y = MatMul(n, u) }}""",
    "rows in a larger tensor": f"""{HEAD} g (float[2,24,16] x, {GIVEN}) => (float[2,24,64] z, float[2,24,8] y) {{
        {MAKES}  {LAYER}  y = MatMul(n, u)  s = Sigmoid(a)  z = Concat<axis = 2>(a, s) }}""",
}


def lowered(folder: Path, text: str) -> tuple[LoweredModel, onnx.ModelProto]:
    model = parse_model(text, "w g b u")
    onnx.save(model, folder / "model.onnx")
    return lower_model(folder / "model.onnx", {}, Precision.FP16), model


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_they_compute_what_the_model_does(
    name: str, batch: int, tmp_path: Path, execute: Callable[..., Any]
) -> None:
    model, source = lowered(tmp_path, MODELS[name])
    problems = [each.problem for each in model.program.operators]
    (maker,) = [each for each in problems if isinstance(each, MomentsMatmul)]
    (reader,) = [each for each in problems if isinstance(each, NormedMatmul)]
    kind = NormKind.RMS if name == "rms" else NormKind.LAYER
    assert maker.kind is reader.kind is kind
    assert reader.moments is not None
    assert not list(maker.contradictions())
    assert not list(reader.contradictions())
    shape = [batch if isinstance(d, str) else d for d in model.graph.inputs[0].shape]
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32) + 3
    session = onnxruntime.InferenceSession(source.SerializeToString())
    expected = session.run(None, {"x": x})
    for result, right in zip(execute(model.program, {"x": x}).values(), expected, strict=True):
        assert np.abs(result - right).max() < 1e-2 * np.sqrt(np.mean(right**2))


def test_moments_have_a_place_of_their_own(tmp_path: Path) -> None:
    program = lowered(tmp_path, MODELS["a free batch"])[0].program
    (maker,) = [each for each in program.operators if isinstance(each.problem, MomentsMatmul)]
    rows, moments = (program.values[name] for name in maker.outputs)
    assert rows.buffer != moments.buffer
    assert moments.shape[1:] == (24, 1, 2)
    assert moments.leading == rows.leading
