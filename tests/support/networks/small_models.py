"""Small models as ONNX text: written to a file, fed with drawn inputs, executed by ONNX Runtime."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

Arrays = Mapping[str, Any]


def write(
    text: str, folder: Path, opset: int = 17, constants: Arrays | None = None, ir: int = 8
) -> Path:
    """Write a model whose inputs named in ``constants`` have these values for good."""
    model = onnx.parser.parse_model(f'<ir_version: {ir}, opset_import: ["" : {opset}]>\n{text}')
    for name, values in (constants or {}).items():
        info = next(info for info in model.graph.input if info.name == name)
        model.graph.input.remove(info)
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(values), name))
    path = folder / "model.onnx"
    onnx.save(model, path)
    return path


def draw(path: Path, seed: int, size: int = 1, below: int = 5) -> dict[str, Any]:
    """Inputs of a model whose free dimensions are ``size``; integers are 0 or more, and less than ``below``."""
    rng = np.random.default_rng(seed)
    inputs = {}
    for info in onnx.load(path).graph.input:
        kind = info.type.tensor_type
        shape = [dim.dim_value or size for dim in kind.shape.dim]
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        if dtype.kind == "b":
            inputs[info.name] = rng.integers(0, 2, shape).astype(dtype)
        elif dtype.kind in "iu":
            inputs[info.name] = rng.integers(0, below, shape).astype(dtype)
        else:
            inputs[info.name] = rng.standard_normal(shape).astype(dtype)
    return inputs


def expected(path: Path, inputs: Arrays) -> dict[str, Any]:
    """What ONNX Runtime computes, by the outputs' names."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))
