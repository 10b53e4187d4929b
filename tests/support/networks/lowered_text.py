"""Models written as ONNX text, lowered, and held to what ONNX Runtime computes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from wpk.dtypes import Precision
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model

Execute = Callable[..., Any]
"""Executes a program in NumPy: the fixture ``execute`` of tests of lowering."""


def lowered(
    tmp_path: Path,
    text: str,
    shapes: dict[str, tuple[int, ...]] | None = None,
    precision: Precision = Precision.FP32,
    weights: int = 0,
) -> tuple[LoweredModel, onnx.ModelProto]:
    """A model written as ONNX text, weights drawn for its extra inputs named ``w...``."""
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')
    rng = np.random.default_rng(weights)
    for info in [i for i in model.graph.input if i.name.startswith("w")]:
        shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
        values = (rng.standard_normal(shape) / np.sqrt(max(1, np.prod(shape[1:])))).astype(
            np.float32
        )
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, info.name))
        model.graph.input.remove(info)
    path = tmp_path / "model.onnx"
    onnx.save(model, path)
    return lower_model(path, shapes or {}, precision), model


def compare(
    execute: Execute,
    model: LoweredModel,
    source: onnx.ModelProto,
    batch: int = 2,
    tolerance: float = 2e-5,
) -> None:
    """Execute both on drawn inputs, and compare every output; ``tolerance`` is in parts of its root mean square."""
    rng = np.random.default_rng(7)
    inputs = {}
    for info in source.graph.input:
        shape = [d.dim_value or batch for d in info.type.tensor_type.shape.dim]
        integer = info.type.tensor_type.elem_type == onnx.TensorProto.INT64
        inputs[info.name] = (
            rng.integers(0, 5, shape) if integer else rng.standard_normal(shape).astype(np.float32)
        )
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, inputs)
    got = execute(model.program, inputs)
    for info, reference in zip(source.graph.output, expected, strict=True):
        scale = np.sqrt(np.mean(np.square(reference))) + 1e-6
        np.testing.assert_allclose(got[info.name], reference, rtol=0, atol=tolerance * scale)


def kinds(model: LoweredModel) -> list[str]:
    """Kinds of the program's problems, in order."""
    return [type(operator.problem).__name__ for operator in model.program.operators]
