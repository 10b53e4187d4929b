"""TensorRT's network definition, computed at once in NumPy: a double of ours, no proof of what TensorRT computes.

It shows that layers, axes and orders of memory say what a problem is. Values are float64, whatever their element type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

Array = NDArray[np.float64]

erf = np.vectorize(math.erf)


def _enum(name: str, members: str) -> Any:
    return Enum(name, members.split(), start=0)  # type: ignore[misc]


class _Format(int, Enum):
    """Numbers are nobody's business; they are shifted by."""

    LINEAR, HWC, HWC8 = range(3)


class Module:
    """What `wpk.libraries.tensorrt_network` asks of the module."""

    DataType = _enum("DataType", "FLOAT HALF BF16")
    TensorFormat = _Format
    ElementWiseOperation = _enum("ElementWiseOperation", "SUM DIV MAX MIN PROD POW SUB")
    UnaryOperation = _enum("UnaryOperation", "ABS CEIL COS ERF EXP FLOOR LOG NEG RECIP SIN SQRT")
    ActivationType = _enum(
        "ActivationType", "ELU GELU_ERF GELU_TANH LEAKY_RELU RELU SIGMOID SOFTPLUS TANH CLIP"
    )
    MatrixOperation = _enum("MatrixOperation", "NONE TRANSPOSE")
    ReduceOperation = _enum("ReduceOperation", "SUM AVG MAX MIN PROD")
    Permutation = tuple

    @staticmethod
    def Weights() -> None:  # noqa: N802 - TensorRT's name
        """None are given."""


@dataclass
class Tensor:
    """A value."""

    compute: Any
    dtype: Any
    name: str = ""
    is_network_input: bool = False
    allowed_formats: int = 0
    declared: tuple[int, ...] | None = None
    held: Any = None

    @property
    def array(self) -> Array:
        """Its elements; of an input that holds none yet, zeros."""
        if self.is_network_input:
            return np.zeros(self.declared or ()) if self.held is None else self.held
        return np.asarray(self.compute(), np.float64)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.array.shape


@dataclass
class Layer:
    """A layer, computed when its output is asked for: by then its attributes are set."""

    work: Any
    inputs: list[Tensor]
    settings: dict[str, Any] = field(default_factory=dict)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("work", "inputs", "settings"):
            object.__setattr__(self, name, value)
        else:
            self.settings[name] = value

    def set_input(self, number: int, tensor: Tensor) -> None:
        """Give it one more input."""
        assert number == len(self.inputs)
        self.inputs.append(tensor)

    def get_output(self, number: int) -> Tensor:
        """Its only output."""
        assert number == 0
        dtype = self.settings.get("dtype", self.inputs[0].dtype if self.inputs else None)
        assert len({each.dtype for each in self.inputs}) <= 1, "a strongly typed layer mixes types"
        return Tensor(lambda: self.work([each.array for each in self.inputs], self.settings), dtype)


class Network:
    """A network over arrays.

    Attributes:
        inputs: By name.
        output: What was marked.
    """

    def __init__(self, arrays: dict[str, Array]) -> None:
        """Take arrays of inputs, in the order of memory in which they are declared; others get theirs later."""
        self._arrays = arrays
        self.inputs: dict[str, Tensor] = {}
        self.output: Tensor | None = None

    def add_input(self, name: str, dtype: Any, shape: tuple[int, ...]) -> Tensor:
        tensor = Tensor(None, dtype, name, is_network_input=True, declared=shape)
        if name in self._arrays:
            tensor.held = self._arrays[name].reshape(shape)
        self.inputs[name] = tensor
        return tensor

    def mark_output(self, tensor: Tensor) -> None:
        self.output = tensor

    def add_constant(self, shape: tuple[int, ...], array: Array) -> Layer:
        return Layer(lambda _, s: array.reshape(shape), [], {"dtype": Module.DataType.FLOAT})

    def add_cast(self, tensor: Tensor, dtype: Any) -> Layer:
        return Layer(lambda x, s: x[0], [tensor], {"dtype": dtype})

    def add_identity(self, tensor: Tensor) -> Layer:
        return Layer(lambda x, s: x[0], [tensor])

    def add_shuffle(self, tensor: Tensor) -> Layer:
        return Layer(lambda x, s: x[0].transpose(s["first_transpose"]), [tensor])

    def add_elementwise(self, one: Tensor, other: Tensor, operation: Any) -> Layer:
        ways = {
            "SUM": np.add,
            "DIV": np.divide,
            "MAX": np.maximum,
            "MIN": np.minimum,
            "PROD": np.multiply,
            "POW": np.power,
            "SUB": np.subtract,
        }
        return Layer(lambda x, s: ways[operation.name](*x), [one, other])

    def add_unary(self, tensor: Tensor, operation: Any) -> Layer:
        ways: dict[str, Any] = {
            "ABS": np.abs,
            "CEIL": np.ceil,
            "COS": np.cos,
            "ERF": erf,
            "EXP": np.exp,
            "FLOOR": np.floor,
            "LOG": np.log,
            "NEG": np.negative,
            "RECIP": np.reciprocal,
            "SIN": np.sin,
            "SQRT": np.sqrt,
        }
        return Layer(lambda x, s: ways[operation.name](x[0]), [tensor])

    def add_activation(self, tensor: Tensor, kind: Any) -> Layer:
        def work(x: list[Array], s: dict[str, Any]) -> Array:
            return np.asarray(_activation(kind.name, x[0], s))

        return Layer(work, [tensor])

    def add_softmax(self, tensor: Tensor) -> Layer:
        def work(x: list[Array], s: dict[str, Any]) -> Array:
            axis = int(s["axes"]).bit_length() - 1
            powers = np.exp(x[0] - x[0].max(axis=axis, keepdims=True))
            return np.asarray(powers / powers.sum(axis=axis, keepdims=True))

        return Layer(work, [tensor])

    def add_reduce(self, tensor: Tensor, operation: Any, axes: int, keep_dims: bool) -> Layer:
        ways: dict[str, Any] = {
            "SUM": np.sum,
            "AVG": np.mean,
            "MAX": np.max,
            "MIN": np.min,
            "PROD": np.prod,
        }
        along = _listed(axes)
        return Layer(
            lambda x, s: ways[operation.name](x[0], axis=along, keepdims=keep_dims), [tensor]
        )

    def add_normalization(self, x: Tensor, scale: Tensor, shift: Tensor, axes: int) -> Layer:
        def work(values: list[Array], s: dict[str, Any]) -> Array:
            x, scale, shift = values
            along = _listed(axes)
            centred = x - x.mean(axis=along, keepdims=True)
            square = (centred * centred).mean(axis=along, keepdims=True)
            return np.asarray(centred / np.sqrt(square + s["epsilon"]) * scale + shift)

        return Layer(work, [x, scale, shift])

    def add_matrix_multiply(self, one: Tensor, turn: Any, other: Tensor, turned: Any) -> Layer:
        assert turn.name == "NONE"

        def work(x: list[Array], s: dict[str, Any]) -> Array:
            return np.asarray(
                x[0] @ (x[1].swapaxes(-1, -2) if turned.name == "TRANSPOSE" else x[1])
            )

        return Layer(work, [one, other])

    def add_convolution_nd(self, x: Tensor, maps: int, extents: Any, w: None, b: None) -> Layer:
        return Layer(lambda arrays, s: _convolution("Conv", arrays, s), [x])

    def add_deconvolution_nd(self, x: Tensor, maps: int, extents: Any, w: None, b: None) -> Layer:
        return Layer(lambda arrays, s: _convolution("ConvTranspose", arrays, s), [x])


def _listed(axes: int) -> tuple[int, ...]:
    return tuple(axis for axis in range(axes.bit_length()) if axes >> axis & 1)


def _activation(kind: str, x: Array, settings: dict[str, Any]) -> Array:
    alpha, beta = settings.get("alpha"), settings.get("beta")
    match kind:
        case "RELU":
            return np.maximum(x, 0.0)
        case "CLIP":
            return np.minimum(np.maximum(x, alpha), beta)
        case "SIGMOID":
            return 1.0 / (1.0 + np.exp(-x))
        case "TANH":
            return np.tanh(x)
        case "SOFTPLUS":
            return alpha * np.log(np.exp(beta * x) + 1.0)
        case "ELU":
            return np.where(x >= 0.0, x, alpha * (np.exp(x) - 1.0))
        case "LEAKY_RELU":
            return np.where(x >= 0.0, x, alpha * x)
        case "GELU_ERF":
            return np.asarray(0.5 * x * (1.0 + erf(x * np.sqrt(0.5))))
        case _:
            return 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (0.044715 * x**3 + x)))


def _convolution(kind: str, arrays: list[Array], settings: dict[str, Any]) -> Array:
    """By ONNX's reference: TensorRT's layers are ONNX's, padding and all."""
    attributes = {
        "pads": [*settings["pre_padding"], *settings["post_padding"]],
        "strides": list(settings["stride_nd"]),
        "dilations": list(settings["dilation_nd"]),
        "group": settings["num_groups"],
    }
    node = onnx.helper.make_node(kind, ["x", "w"], ["y"], **attributes)
    ports = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.DOUBLE, None) for n in "xwy"]
    graph = onnx.helper.make_graph([node], "convolution", ports[:2], ports[2:])
    (found,) = ReferenceEvaluator(onnx.helper.make_model(graph)).run(
        None, dict(zip("xw", arrays, strict=True))
    )
    return np.asarray(found, np.float64)
