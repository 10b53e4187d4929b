"""Lowered products of normalised rows, executed in NumPy, compute what ONNX Runtime computes on the model."""

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
from wpk.problems import NormedMatmul, NormKind

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
PAIR = f"""{HEAD} g (float[N,24,16] x, float[16,16] w, float[16] g, float[16] b, float[16,8] u, float[8] c)
    => (float[N,24,8] y) {{
    a = MatMul(x, w)  r = Relu(a)  n = LayerNormalization(r, g, b)  m = MatMul(n, u)  s = Add(m, c)  y = Relu(s) }}"""
LANES = f"""{HEAD} g (float[2,3,24,16] x, float[16,16] w, float[16] g, float[16] b, float[16,8] u)
    => (float[24,6,8] y) <int64[3] rows = {{6, 24, 16}}> {{
    a = MatMul(x, w)  n = LayerNormalization(a, g, b)  r = Reshape(n, rows)
    t = Transpose<perm = [1, 0, 2]>(r)  y = MatMul(t, u) }}"""


def lowered(tmp_path: Path, text: str) -> tuple[LoweredModel, onnx.ModelProto]:
    model = parse_model(text, "w g b u c" if " c)" in text else "w g b u")
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return lower_model(path, {}, Precision.FP16), model


@pytest.mark.parametrize(("text", "batch"), [(PAIR, 1), (PAIR, 3), (LANES, 2)])
def test_they_compute_what_the_model_does(
    text: str, batch: int, tmp_path: Path, execute: Callable[..., Any]
) -> None:
    model, source = lowered(tmp_path, text)
    (problem,) = [
        each.problem for each in model.program.operators if isinstance(each.problem, NormedMatmul)
    ]
    assert (problem.kind, problem.k, problem.n) == (NormKind.LAYER, 16, 8)
    shape = [batch if isinstance(d, str) else d for d in model.graph.inputs[0].shape]
    x = np.random.default_rng(7).standard_normal(shape).astype(np.float32) + 3
    session = onnxruntime.InferenceSession(source.SerializeToString())
    (expected,) = session.run(None, {"x": x})
    (result,) = execute(model.program, {"x": x}).values()
    rms = np.sqrt(np.mean(expected**2))
    assert np.abs(result - expected).max() < 1e-2 * rms


def test_sums_are_those_of_the_matrix_in_memory(tmp_path: Path) -> None:
    program = lowered(tmp_path, PAIR)[0].program
    (operator,) = [each for each in program.operators if isinstance(each.problem, NormedMatmul)]
    matrix, sums = (program.constants[operator.inputs[index]] for index in (1, -1))
    assert matrix.dtype == np.float16
    np.testing.assert_array_equal(sums, matrix.astype(np.float64).sum(axis=0).astype(np.float32))
