"""Models for which a comparison of outputs with ONNX Runtime says nothing, though wpk carries them."""

from pathlib import Path

import numpy as np
import onnx

_STEPS = 6
_GAIN = 20.0
_HEAD = '<ir_version: 8, opset_import: ["" : 17]> g (float[2, 8] x) => (float[2, 8] y) {\n'

AMPLIFIES = (
    _HEAD
    + "".join(
        f"  a{i} = MatMul({'x' if i == 0 else f's{i - 1}'}, m)\n"
        f"  {'y' if i == _STEPS - 1 else f's{i}'} = Sin(a{i})\n"
        for i in range(_STEPS)
    )
    + "}"
)
"""Each step makes a difference between its inputs some 40 times as large: 40⁶ · 6e-8 > 1."""

DEAD_HEAD = (
    _HEAD
    + """
  a = MatMul(x, m)
  s = Sin(a)
  y = MatMul(s, zeros)
}"""
)
"""A head whose weights are all zero, and so are its outputs."""


def save_silent(path: Path, text: str) -> Path:
    """A model of this file, its weights drawn."""
    model = onnx.parser.parse_model(text)
    steep = np.random.default_rng(0).standard_normal((8, 8)) * _GAIN
    values = steep.astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(values, "m"))
    zeros = np.zeros((8, 8), np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(zeros, "zeros"))
    onnx.save(model, path)
    return path
