"""Stacks of LSTM and GRU: torch's module, and the ONNX file that computes the same of the same weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Array = NDArray[np.float32]

LAYERS, STEPS = 2, 50
OPSET = 17

_ORDER = {"LSTM": (0, 3, 1, 2), "GRU": (1, 0, 2)}
"""Of torch's gates (i, f, g, o; r, z, n) in ONNX's order (i, o, f, c; z, r, h)."""


@dataclass(frozen=True)
class Stack:
    """Layers on top of each other, each with as many inputs as units.

    Attributes:
        cell: ``LSTM`` or ``GRU``.
        hidden: Units of a layer.
        batch: Sequences.
    """

    cell: str
    hidden: int
    batch: int

    def __str__(self) -> str:
        """``lstm.h256.b1``, as rows are called."""
        return f"{self.cell.lower()}.h{self.hidden}.b{self.batch}"

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the input: steps, sequences, elements."""
        return STEPS, self.batch, self.hidden


def weights(stack: Stack, seed: int = 0) -> dict[str, Array]:
    """Weights as torch's modules draw and name them: uniform, up to 1 / sqrt(hidden)."""
    rng, gates, end = np.random.default_rng(seed), len(_ORDER[stack.cell]), stack.hidden**-0.5
    found: dict[str, Array] = {}
    for layer in range(LAYERS):
        for part in ("ih", "hh"):
            matrix, vector = (gates * stack.hidden, stack.hidden), (gates * stack.hidden,)
            for name, shape in ((f"weight_{part}", matrix), (f"bias_{part}", vector)):
                found[f"{name}_l{layer}"] = rng.uniform(-end, end, shape).astype(np.float32)
    return found


def model(stack: Stack, given: Mapping[str, Array]) -> onnx.ModelProto:
    """The stack as ONNX: ``x`` (steps, batch, hidden) to ``y`` of the same shape."""
    nodes, constants, x = [], [], "x"
    axis = numpy_helper.from_array(np.array([1], np.int64), "axis")
    for layer in range(LAYERS):
        names = [f"{name}{layer}" for name in ("w", "r", "b")]
        parts = [_reordered(stack, given[f"{n}_l{layer}"]) for n in _SOURCES]
        arrays = [parts[0][None], parts[1][None], np.concatenate(parts[2:])[None]]
        constants += [numpy_helper.from_array(a, n) for a, n in zip(arrays, names, strict=True)]
        resets = {"linear_before_reset": 1} if stack.cell == "GRU" else {}
        states = f"states{layer}"
        nodes.append(
            helper.make_node(stack.cell, [x, *names], [states], hidden_size=stack.hidden, **resets)
        )
        x = "y" if layer == LAYERS - 1 else f"y{layer}"
        nodes.append(helper.make_node("Squeeze", [states, "axis"], [x]))
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, stack.shape) for n in ("x", "y")]
    graph = helper.make_graph(nodes, str(stack), ports[:1], ports[1:], [axis, *constants])
    opsets = [helper.make_opsetid("", OPSET)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(made, full_check=True)
    return made


_SOURCES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def write(stack: Stack, path: Path) -> None:
    """Write the ONNX file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model(stack, weights(stack)), path)


def module(stack: Stack) -> Any:
    """Torch's module with the same weights, in fp32 on the CPU."""
    import torch

    made = getattr(torch.nn, stack.cell)(stack.hidden, stack.hidden, LAYERS)
    made.load_state_dict({name: torch.from_numpy(a) for name, a in weights(stack).items()})
    return made.eval()


def _reordered(stack: Stack, array: Array) -> Array:
    gates = np.split(array, len(_ORDER[stack.cell]))
    return np.concatenate([gates[place] for place in _ORDER[stack.cell]])
