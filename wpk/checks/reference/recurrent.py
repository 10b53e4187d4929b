"""LSTM, GRU and RNN in float64, in all of ONNX's forms, and the same with roundings drawn at every step.

onnx's own evaluator knows one direction, no lengths of sequences, no clip and no other activations.

    LSTM   i, o, f, c' = activations of p[t] + h R^T + b (+ peepholes of c);  c = f c + i c';  h = o act(c)
    GRU    z, r = activations of p[t] + h R^T + b;  h' = act(p[t] + (r h) R^T + b), or, where
           linear_before_reset, act(p[t] + wb + r (h R^T + rb));  h = (1 - z) h' + z h
    RNN    h = act(p[t] + h R^T + b)                                       with p = x W^T
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from onnx.reference.op_run import OpRun

Floats = NDArray[np.float64]

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
DEFAULT_ACTIVATIONS = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}  # fmt: skip

ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = {
    "Sigmoid": lambda x: 0.5 * (1.0 + np.tanh(0.5 * x)),
    "Tanh": np.tanh,
    "Relu": lambda x: np.maximum(x, 0.0),
    "Softsign": lambda x: x / (1.0 + np.abs(x)),
    "Softplus": lambda x: np.logaddexp(x, 0.0),
}
"""Those without parameters."""


class Disturbance(Protocol):
    """Moves what a step computes by what an implementation may round there."""

    def product(self, value: Floats, size: Callable[[], Floats], terms: int) -> Floats:
        """A sum of ``terms`` products; ``size()`` is that of their magnitudes."""

    def sum(self, value: Floats, *parts: Floats) -> Floats:
        """A sum of a few numbers."""

    def function(self, value: Floats) -> Floats:
        """What an activation gave."""

    def state(self, value: Floats) -> Floats:
        """A state, which may be kept in the type that is multiplied."""


class _Exact:
    """No disturbance."""

    def product(self, value: Floats, size: Callable[[], Floats], terms: int) -> Floats:
        del size, terms
        return value

    def sum(self, value: Floats, *parts: Floats) -> Floats:
        del parts
        return value

    def function(self, value: Floats) -> Floats:
        return value

    def state(self, value: Floats) -> Floats:
        return value


def evaluate_recurrent(
    op: str,
    arrays: Sequence[Any],
    attributes: Mapping[str, Any],
    disturbance: Disturbance | None = None,
) -> tuple[Floats, ...]:
    """Return all outputs of an operator: Y, Y_h and, of an LSTM, Y_c.

    Args:
        op: ``LSTM``, ``GRU`` or ``RNN``.
        arrays: Its inputs, of which those behind R may be missing or None.
        attributes: ONNX's; None, or left out, for those that are not given.
        disturbance: What is drawn at every step; nothing where it is None.

    Raises:
        NotImplementedError: It uses an activation with parameters, or coupled gates.
    """
    given: list[Any] = [*arrays, *[None] * (8 - len(arrays))]
    x, w, r, b, lengths, h0, c0, peepholes = given
    if attributes.get("input_forget"):
        raise NotImplementedError("an LSTM whose input and forget gates are coupled")
    batch_first = bool(attributes.get("layout"))
    if batch_first:
        x, h0, c0 = (None if a is None else a.swapaxes(0, 1) for a in (x, h0, c0))
    lengths = np.full(x.shape[1], x.shape[0]) if lengths is None else lengths
    zeros = np.zeros((x.shape[1], r.shape[-1]))
    found = []
    for number, reverse in enumerate(_DIRECTIONS[_word(attributes.get("direction"))]):
        part = [None if a is None else np.asarray(a[number]) for a in (w, r, b, peepholes)]
        cell = _Cell(op, attributes, number, part, disturbance or _Exact())
        first = [zeros if a is None else a[number] for a in (h0, c0)]
        found.append(cell.run(x, first[0], first[1], lengths, reverse))
    y = np.stack([each[0] for each in found], 1)
    h, c = (np.stack([each[i] for each in found]) for i in (1, 2))
    if batch_first:
        y, h, c = y.transpose(2, 0, 1, 3), h.swapaxes(0, 1), c.swapaxes(0, 1)
    return (y, h, c) if op == "LSTM" else (y, h)


_DIRECTIONS = {"forward": (False,), "reverse": (True,), "bidirectional": (False, True)}


class _Cell:
    """One direction."""

    def __init__(
        self,
        op: str,
        attributes: Mapping[str, Any],
        number: int,
        weights: Sequence[Any],
        disturbance: Disturbance,
    ) -> None:
        self.step = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[op]
        self.w, self.r, bias, peepholes = weights
        self.hidden = self.r.shape[-1]
        gates = GATES[op] * self.hidden
        self.w_bias, self.r_bias = np.zeros((2, gates)) if bias is None else bias.reshape(2, gates)
        self.peepholes = None if peepholes is None else peepholes.reshape(3, self.hidden)
        self.clip = float(attributes.get("clip") or np.inf)
        self.before_reset = bool(attributes.get("linear_before_reset"))
        self.activations = _activations(op, attributes, number)
        self.by = disturbance

    def run(
        self, x: Floats, h: Floats, c: Floats, lengths: Any, reverse: bool
    ) -> tuple[Floats, Floats, Floats]:
        """All h, the last h and the last c."""
        steps = x.shape[0]
        projected = self._product(x, self.w)
        y = np.zeros((steps, *h.shape))
        for t in reversed(range(steps)) if reverse else range(steps):
            fresh_h, fresh_c = self.step(projected[t], h, c)
            runs = (t < np.asarray(lengths))[:, None]
            h, c = np.where(runs, fresh_h, h), np.where(runs, fresh_c, c)
            y[t] = np.where(runs, fresh_h, 0.0)
        empty = (np.asarray(lengths) <= 0)[:, None]  # ONNX leaves it open; ONNX Runtime gives zeros
        return y, np.where(empty, 0.0, h), np.where(empty, 0.0, c)

    def _lstm(self, p: Floats, h: Floats, c: Floats) -> tuple[Floats, Floats]:
        sums = self._sum(p, self._product(h, self.r), self.w_bias, self.r_bias)
        i, o, f, g = np.split(sums, 4, axis=-1)
        of = np.zeros((3, 1)) if self.peepholes is None else self.peepholes
        act_f, act_g, act_h = self.activations
        i = self._gate(act_f, self._sum(i, of[0] * c))
        f = self._gate(act_f, self._sum(f, of[2] * c))
        g = self._gate(act_g, g)
        c = self._sum(f * c, i * g)
        o = self._gate(act_f, self._sum(o, of[1] * c))
        return self.by.state(o * self.by.function(ACTIVATIONS[act_h](c))), c

    def _gru(self, p: Floats, h: Floats, c: Floats) -> tuple[Floats, Floats]:
        w_bias, r_bias = np.split(self.w_bias, 3), np.split(self.r_bias, 3)
        parts, rows = np.split(p, 3, axis=-1), np.split(self.r, 3)
        act_f, act_g = self.activations
        z, r = (
            self._gate(act_f, self._sum(parts[k], self._product(h, rows[k]), w_bias[k], r_bias[k]))
            for k in (0, 1)
        )
        if self.before_reset:
            hidden = r * self._sum(self._product(h, rows[2]), r_bias[2])
        else:
            hidden = self._sum(self._product(self.by.state(r * h), rows[2]), r_bias[2])
        fresh = self._gate(act_g, self._sum(parts[2], hidden, w_bias[2]))
        return self.by.state(self._sum((1.0 - z) * fresh, z * h)), c

    def _rnn(self, p: Floats, h: Floats, c: Floats) -> tuple[Floats, Floats]:
        sums = self._sum(p, self._product(h, self.r), self.w_bias, self.r_bias)
        return self.by.state(self._gate(self.activations[0], sums)), c

    def _gate(self, activation: str, value: Floats) -> Floats:
        return self.by.function(ACTIVATIONS[activation](np.clip(value, -self.clip, self.clip)))

    def _sum(self, *parts: Floats) -> Floats:
        return self.by.sum(sum(parts[1:], parts[0]), *parts)

    def _product(self, a: Floats, weights: Floats) -> Floats:
        """``a weights^T``; an identity multiplies nothing, and rounds nothing."""
        rows, columns = weights.shape
        if rows == columns and _is_identity(weights):
            return a
        exact = a @ weights.T
        return self.by.product(exact, lambda: np.abs(a) @ np.abs(weights).T, columns)


def _is_identity(weights: Floats) -> bool:
    return bool((np.diagonal(weights) == 1).all()) and np.count_nonzero(weights) == len(weights)


def _activations(op: str, attributes: Mapping[str, Any], number: int) -> tuple[str, ...]:
    """The activations of a direction, by ONNX's names; upper and lower case are one."""
    default = DEFAULT_ACTIVATIONS[op]
    given = [_word(each).capitalize() for each in attributes.get("activations") or ()]
    names = tuple(given[number * len(default) :][: len(default)]) or default
    if len(names) != len(default) or not ACTIVATIONS.keys() >= set(names):
        raise NotImplementedError(f"{op} with the activations {', '.join(names)}")
    return names


def _word(text: Any) -> str:
    """An attribute's text, which protobuf has as bytes."""
    return text.decode() if isinstance(text, bytes) else text or "forward"


class _Recurrent(OpRun):
    """All outputs that the node has; attributes as ONNX's."""

    def _run(self, *arrays: Any, **attributes: Any) -> tuple[Any, ...]:
        outputs = evaluate_recurrent(self.op_type, arrays, attributes)
        named = outputs[: len(self.onnx_node.output)]
        return tuple(np.asarray(each, arrays[0].dtype) for each in named)


class LSTM(_Recurrent):
    """Long short-term memory."""


class GRU(_Recurrent):
    """Gated recurrent units."""


class RNN(_Recurrent):
    """A plain recurrence."""
