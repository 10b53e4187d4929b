"""Pointwise steps as layers of a TensorRT network."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from wpk.libraries.cudnn_pointwise import PointwiseCall, PointwiseTensor

_UNARY = {
    "abs": "ABS",
    "ceil": "CEIL",
    "cos": "COS",
    "erf": "ERF",
    "exp": "EXP",
    "floor": "FLOOR",
    "log": "LOG",
    "neg": "NEG",
    "reciprocal": "RECIP",
    "sin": "SIN",
    "sqrt": "SQRT",
}
_BINARY = {
    "add": "SUM",
    "div": "DIV",
    "max": "MAX",
    "min": "MIN",
    "mul": "PROD",
    "pow": "POW",
    "sub": "SUB",
}
_ACTIVATIONS = {
    "elu": "ELU",
    "gelu": "GELU_ERF",
    "gelu_approx_tanh": "GELU_TANH",
    "leaky_relu": "LEAKY_RELU",
    "relu": "RELU",
    "sigmoid": "SIGMOID",
    "softplus": "SOFTPLUS",
    "tanh": "TANH",
}
_OTHERS = frozenset(("identity", "swish"))


def why_no_layers(steps: Sequence[PointwiseCall]) -> str | None:
    """Say why TensorRT has no layers for steps, in words; None if it has."""
    known = {*_UNARY, *_BINARY, *_ACTIVATIONS, *_OTHERS}
    missing = next((step.method for step in steps if step.method not in known), None)
    return None if missing is None else f"TensorRT has no layer for {missing}"


class Pointwise:
    """Adds layers to a network, which compute in one element type.

    Attributes:
        kept: What must outlive the build of the network.
    """

    def __init__(self, module: Any, network: Any, dtype: Any) -> None:
        """Begin.

        Args:
            module: TensorRT's.
            network: An INetworkDefinition, strongly typed.
            dtype: A DataType.
        """
        self._module, self._network, self._dtype = module, network, dtype
        self.kept: list[Any] = []

    def cast(self, tensor: Any, dtype: Any) -> Any:
        """Return the tensor in an element type."""
        if tensor.dtype == dtype:
            return tensor
        return self._network.add_cast(tensor, dtype).get_output(0)

    def after(self, steps: Sequence[PointwiseCall], values: list[Any]) -> Any:
        """Return the last value; each step adds one."""
        values = [None if each is None else self.cast(each, self._dtype) for each in values]
        rank = next(len(each.shape) for each in values if each is not None)
        for step in steps:
            arguments = [
                values[each.index]
                if isinstance(each, PointwiseTensor)
                else self.constant(each, rank)
                for each in step.arguments
            ]
            values.append(self._step(step.method, arguments, dict(step.options), rank))
        return values[-1] if steps else values[0]

    def constant(self, number: float, rank: int) -> Any:
        """Return a tensor of one element."""
        array = np.full((1,) * rank, number, np.float32)
        self.kept.append(array)
        return self.cast(self._network.add_constant(array.shape, array).get_output(0), self._dtype)

    def binary(self, method: str, one: Any, other: Any) -> Any:
        """Return what an operation of two tensors gives."""
        operation = getattr(self._module.ElementWiseOperation, _BINARY[method])
        return self._network.add_elementwise(one, other, operation).get_output(0)

    def unary(self, method: str, tensor: Any) -> Any:
        """Return what an operation of one tensor gives."""
        operation = getattr(self._module.UnaryOperation, _UNARY[method])
        return self._network.add_unary(tensor, operation).get_output(0)

    def _step(
        self, method: str, arguments: Sequence[Any], options: dict[str, float], rank: int
    ) -> Any:
        if method == "identity":
            return arguments[0]
        if method == "swish":
            (x,) = arguments
            beta = options["swish_beta"]
            inner = x if beta == 1.0 else self.binary("mul", x, self.constant(beta, rank))
            return self.binary("mul", x, self._activation("sigmoid", inner, {}))
        if method in _BINARY:
            return self.binary(method, *arguments)
        if method in _UNARY:
            return self.unary(method, *arguments)
        return self._activation(method, arguments[0], options)

    def _activation(self, method: str, tensor: Any, options: dict[str, float]) -> Any:
        kinds = self._module.ActivationType
        kind = kinds.CLIP if "upper_clip" in options else getattr(kinds, _ACTIVATIONS[method])
        activation = self._network.add_activation(tensor, kind)
        if "upper_clip" in options:
            activation.alpha, activation.beta = options["lower_clip"], options["upper_clip"]
        elif method == "leaky_relu":
            activation.alpha = options["negative_slope"]
        elif method in ("elu", "softplus"):
            activation.alpha = activation.beta = 1.0
        return activation.get_output(0)
