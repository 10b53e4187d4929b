"""Small ONNX models with random weights, put together node by node."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

FED = 8
"""Features that the product in front of an operator reads: few, so that it costs little."""


class Sketch:
    """A model that grows; tensors are names, and nodes are called as the caller says."""

    def __init__(self, name: str) -> None:
        """Begin with nothing."""
        self._graph = onnx.GraphProto(name=name)
        self._generator = np.random.default_rng(0)

    def input(self, name: str, shape: tuple[int | str, ...], dtype: int = TensorProto.FLOAT) -> str:
        """An input of the model."""
        self._graph.input.append(helper.make_tensor_value_info(name, dtype, shape))
        return name

    def output(
        self, name: str, shape: tuple[int | str, ...], dtype: int = TensorProto.FLOAT
    ) -> None:
        """Make a tensor an output of the model."""
        info = helper.make_tensor_value_info(name, dtype, shape)
        self._graph.output.append(info)

    def constant(self, name: str, array: NDArray[np.generic]) -> str:
        """A constant."""
        self._graph.initializer.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, name: str, shape: tuple[int, ...], terms: int = 1) -> str:
        """A constant of normal numbers; sums of so many products with it keep their size."""
        drawn = self._generator.standard_normal(shape, np.float32)
        return self.constant(name, drawn / np.float32(math.sqrt(terms)))

    def node(
        self, op: str, name: str, inputs: list[str], *, unread: int = 0, **attributes: Any
    ) -> str:
        """A node with one output that is read, which it returns, behind others that are not."""
        others = [f"{name}.unread{place}" for place in range(unread)]
        made = helper.make_node(op, inputs, [*others, f"{name}.y"], name, **attributes)
        self._graph.node.append(made)
        return f"{name}.y"

    def convolution(self, name: str, x: str, shape: tuple[int, ...], **attributes: Any) -> str:
        """A convolution with random weights of a shape, and bias."""
        weight = self.weight(f"{name}.weight", shape, math.prod(shape[1:]))
        bias = self.weight(f"{name}.bias", shape[:1])
        return self.node("Conv", name, [x, weight, bias], **attributes)

    def channels_last(self, name: str, shape: tuple[int, ...]) -> str:
        """An activation of a shape as it lies within networks: a 1 x 1 convolution made it."""
        n, c, *image = shape
        x = self.input(f"{name}.given", (n, FED, *image))
        return self.convolution(f"{name}.before", x, (c, FED, 1, 1))

    def rows(self, name: str, shape: tuple[int, ...]) -> str:
        """Rows of features that a product with a constant matrix made."""
        *outer, features = shape
        x = self.input(f"{name}.given", (*outer, FED))
        weight = self.weight(f"{name}.before.weight", (FED, features), FED)
        return self.node("MatMul", f"{name}.before", [x, weight])

    def pooled(self, name: str, y: str, size: tuple[int, int]) -> None:
        """An average pool behind an activation of a batch and channels: it is no output itself."""
        self.output(self.node("GlobalAveragePool", f"{name}.after", [y]), (*size, 1, 1))

    def save(self, path: Path, opset: int = 18) -> None:
        """Write the model."""
        made = helper.make_opsetid("", opset)
        onnx.save(helper.make_model(self._graph, opset_imports=[made], ir_version=8), path)
