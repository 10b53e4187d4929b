"""Recurrences for tests: problems, random operands, and what float64 makes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.checks.reference.recurrent import evaluate_recurrent
from wpk.dtypes import DType, Precision
from wpk.expression import Acc, Expression, apply
from wpk.extent import Extent
from wpk.problems import Cell, Recurrence, Tensor

Array = NDArray[Any]

_NAMES = {
    Cell.LSTM: ("Sigmoid", "Tanh", "Tanh"),
    Cell.GRU: ("Sigmoid", "Tanh"),
    Cell.RNN: ("Tanh",),
}
_GATES = {Cell.LSTM: 4, Cell.GRU: 3, Cell.RNN: 1}


def recurrence(
    cell: Cell = Cell.LSTM,
    *,
    batch: int | Extent = 3,
    steps: int = 4,
    hidden: int = 32,
    precision: Precision = Precision.FP16,
    given: tuple[str, ...] = ("bias",),
    activations: tuple[str, ...] | None = None,
    time_major: bool = False,
    **changes: Any,
) -> Recurrence:
    """A recurrence whose tensors lie row by row.

    Args:
        cell: LSTM, GRU or RNN.
        batch: Sequences.
        steps: Their steps.
        hidden: Units.
        precision: Of its products; its tensors lie in memory so.
        given: Optional inputs that there are.
        activations: By ONNX's names.
        time_major: Whether steps lie apart, and the sequences of one side by side.
        changes: Of other fields.
    """
    extent = batch if isinstance(batch, Extent) else Extent(batch)
    dtype, rows = precision.storage, _GATES[cell] * hidden
    slots = changes.get("slots", 1)

    def steps_of(columns: int, count: int) -> Tensor:
        if time_major:
            return tensor(dtype, columns, extent.value * columns, 1)
        return tensor(dtype, count * columns, columns, 1)

    optional = {
        "bias": tensor(dtype, 1),
        "lengths": Tensor(DType.INT32, (1,), 0, 4),
        "h0": tensor(dtype, hidden, 1),
        "c0": tensor(dtype, hidden, 1),
        "peepholes": tensor(dtype, 1),
    }
    fields: dict[str, Any] = {
        "cell": cell,
        "precision": precision,
        "batch": extent,
        "steps": steps,
        "hidden": hidden,
        "reverse": False,
        "linear_before_reset": False,
        "clip": math.inf,
        "activations": tuple(map(activation, activations or _NAMES[cell])),
        "slots": 1,
        "p": steps_of(rows, steps),
        "r": tensor(dtype, hidden, 1),
        "y": steps_of(hidden, steps + slots - 1),
        **{name: each if name in given else None for name, each in optional.items()},
    }
    return Recurrence(**{**fields, **changes})


def tensor(dtype: DType, *strides: int) -> Tensor:
    """A tensor, aligned as far as its strides are."""
    alignment = 16
    while alignment > dtype.bytes and any(s > 1 and s * dtype.bytes % alignment for s in strides):
        alignment //= 2
    return Tensor(dtype, strides, 0, alignment)


def activation(name: str) -> Expression:
    """An activation over the sum."""
    return apply(name, Acc())


@dataclass(frozen=True)
class Case:
    """Operands in the problem's order, over their domains, and the output in float64."""

    operands: list[Array]
    output: Array


def drawn(problem: Recurrence, seed: int = 0, batch: int | None = None) -> Case:
    """Random operands, of lengths 0, 1, ... where there are lengths."""
    rng = np.random.default_rng(seed)
    count, hidden = batch or problem.batch.value, problem.hidden
    domains = {"p": (count, problem.steps, problem.rows), "r": (problem.rows, hidden)}
    domains |= {"bias": (2 * problem.rows,), "peepholes": (3 * hidden,)}
    domains |= {"h0": (count, hidden), "c0": (count, hidden)}
    scale = {"r": hidden**-0.5, "bias": 0.3}
    operands: dict[str, Array] = {}
    for name in ("p", "r", *(name for name, _ in problem.optional())):
        if name == "lengths":
            operands[name] = np.arange(count, dtype=np.int32) % (problem.steps + 1)
            continue
        values = rng.standard_normal(domains[name]) * scale.get(name, 1.0)
        operands[name] = values.astype(getattr(problem, name).dtype.numpy)
    return Case(list(operands.values()), reference(problem, operands))


def reference(problem: Recurrence, operands: dict[str, Array]) -> Array:
    """The output in float64."""
    wide = {n: a if n == "lengths" else a.astype(np.float64) for n, a in operands.items()}
    one = {n: wide[n][None] if n in wide else None for n in ("bias", "h0", "c0", "peepholes")}
    names = [str(each.operation) for each in problem.activations]  # type: ignore[union-attr]
    arrays = [
        *(wide["p"].swapaxes(0, 1), np.eye(problem.rows)[None], wide["r"][None], one["bias"]),
        *(wide.get("lengths"), one["h0"], one["c0"], one["peepholes"]),
    ]
    attributes = {
        "direction": "reverse" if problem.reverse else "forward",
        "linear_before_reset": int(problem.linear_before_reset),
        "clip": problem.clip if math.isfinite(problem.clip) else None,
        "activations": names,
    }
    y, *last = evaluate_recurrent(problem.cell, arrays, attributes)
    parts = [y[:, 0], *last][: problem.slots]
    return np.concatenate(list(parts)).swapaxes(0, 1)
