"""The reinforcement learner's network is NumPy: forward, backward, and Adam.

    observation -> fully connected layers, each with its activation -> linear outputs

All parameters lie in one flat array, so that the optimiser is a handful of operations on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import DTypeLike, NDArray

Array = NDArray[np.floating]
ActivationName = Literal["tanh", "selu"]

SELU_SCALE, SELU_ALPHA = 1.0507009873554805, 1.6732632423543772
"""Klambauer et al. 2017, "Self-normalizing neural networks", equation 2 and its fixed point."""


@dataclass(frozen=True)
class Layers:
    """Layers are the shape of a network.

    Attributes:
        inputs: Numbers of an observation.
        hidden: Width and activation of each hidden layer.
        outputs: Numbers that it answers with.
    """

    inputs: int
    hidden: tuple[tuple[int, ActivationName], ...]
    outputs: int

    @property
    def widths(self) -> tuple[int, ...]:
        """From the inputs to the outputs."""
        return (self.inputs, *(width for width, _ in self.hidden), self.outputs)


@dataclass(frozen=True)
class Pass:
    """A forward pass leaves this for the backward pass.

    Attributes:
        activations: The input of each linear layer, the network's own first.
        slopes: The derivative of each hidden layer's activation where it was evaluated.
        outputs: (batch, outputs).
    """

    activations: tuple[Array, ...]
    slopes: tuple[Array, ...]
    outputs: Array


class Network:
    """A network holds weights and biases, and knows how they act.

    Attributes:
        layers: The shape.
        parameters: All weights and biases, flat; the optimiser writes into it.
    """

    def __init__(
        self, layers: Layers, generator: np.random.Generator, dtype: DTypeLike = np.float32
    ) -> None:
        """Draw weights with the variance 1 / inputs of their layer; biases are zero.

        The output layer's weights are a hundredth of that: the first policy is nearly uniform.
        """
        self.layers = layers
        pairs = list(zip(layers.widths[:-1], layers.widths[1:], strict=True))
        self.parameters: Array = np.zeros(sum(i * o + o for i, o in pairs), dtype)
        for weights, _ in self._views(self.parameters):
            weights[...] = generator.standard_normal(weights.shape) / np.sqrt(len(weights))
        weights *= 0.01

    def forward(self, observations: Array) -> Pass:
        """Return the outputs for a batch of observations: (batch, inputs)."""
        activations, slopes = [observations], []
        views = self._views(self.parameters)
        for (weights, biases), (_, name) in zip(views, self.layers.hidden, strict=False):
            activations.append(_ACTIVATIONS[name](activations[-1] @ weights + biases))
            slopes.append(_SLOPES[name](activations[-1]))
        return Pass(tuple(activations), tuple(slopes), self.outputs(activations[-1]))

    def outputs(self, activations: Array) -> Array:
        """Return the linear outputs for activations of the last hidden layer."""
        weights, biases = self._views(self.parameters)[-1]
        outputs: Array = activations @ weights + biases
        return outputs

    def backward(self, done: Pass, gradient: Array) -> Array:
        """Return the gradient of a scalar by the parameters, given its gradient by the outputs."""
        result = np.empty_like(self.parameters)
        views = self._views(self.parameters)
        slots = self._views(result)
        for place in reversed(range(len(views))):
            np.matmul(done.activations[place].T, gradient, out=slots[place][0])
            np.sum(gradient, axis=0, out=slots[place][1])
            if place > 0:
                gradient = gradient @ views[place][0].T * done.slopes[place - 1]
        return result

    def _views(self, flat: Array) -> list[tuple[Array, Array]]:
        views, start = [], 0
        for inputs, outputs in zip(self.layers.widths[:-1], self.layers.widths[1:], strict=True):
            end = start + inputs * outputs
            weights = flat[start:end].reshape(inputs, outputs)
            views.append((weights, flat[end : end + outputs]))
            start = end + outputs
        return views


class Adam:
    """Adam is algorithm 1 of Kingma and Ba 2015, "Adam: a method for stochastic optimization"."""

    def __init__(self, size: int, learning_rate: float, dtype: DTypeLike = np.float32) -> None:
        """Begin with moments of zero."""
        self._learning_rate = learning_rate
        self._first: Array = np.zeros(size, dtype)
        self._second: Array = np.zeros(size, dtype)
        self._steps = 0

    def step(self, parameters: Array, gradient: Array) -> None:
        """Move the parameters, in place, against the gradient."""
        beta1, beta2, epsilon = 0.9, 0.999, 1e-8  # the paper's
        self._steps += 1
        self._first += (1 - beta1) * (gradient - self._first)
        self._second += (1 - beta2) * (np.square(gradient) - self._second)
        scale = self._learning_rate / (1 - beta1**self._steps)
        root = np.sqrt(self._second / (1 - beta2**self._steps)) + epsilon
        parameters -= scale * self._first / root


def _selu(x: Array) -> Array:
    result: Array = SELU_SCALE * np.where(x > 0, x, SELU_ALPHA * np.expm1(np.minimum(x, 0)))
    return result


def _selu_slope(y: Array) -> Array:
    slope: Array = np.where(y > 0, SELU_SCALE, y + SELU_SCALE * SELU_ALPHA).astype(y.dtype)
    return slope


def _tanh_slope(y: Array) -> Array:
    slope: Array = 1 - np.square(y)
    return slope


_ACTIVATIONS: dict[ActivationName, Callable[[Array], Array]] = {"tanh": np.tanh, "selu": _selu}
_SLOPES: dict[ActivationName, Callable[[Array], Array]] = {  # by the activation's result
    "tanh": _tanh_slope,
    "selu": _selu_slope,
}
