"""Models written as ONNX text whose weights are drawn instead of written."""

from __future__ import annotations

import numpy as np
import onnx


def parse_model(text: str, constants: str = "", seed: int = 0) -> onnx.ModelProto:
    """Parse ONNX text; inputs named in ``constants`` become random weights.

    Names that begin with v become positive ones (variances); ``name=-inf`` gives the value.
    """
    model = onnx.parser.parse_model(text)
    rng = np.random.default_rng(seed)
    for item in constants.split():
        name, _, value = item.partition("=")
        info = next(info for info in model.graph.input if info.name == name)
        model.graph.input.remove(info)
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        array = rng.standard_normal(shape).astype(dtype)
        if name.startswith("v"):
            array = np.abs(array) + np.asarray(0.5, dtype)
        if value:
            array = np.full(shape, float(value), dtype)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    return model
