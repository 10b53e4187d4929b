"""Recurrences: a body of one LSTM, GRU or RNN whose weights are the identity, and views around it."""

import math
from collections.abc import Mapping

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.expression import Acc, Expression, In, Scalar, apply
from wpk.extent import Extent
from wpk.graph_passes import RECURRENT, RecurrentNode
from wpk.lowering.anchors.base import LoweredProblem, only_view
from wpk.lowering.body import OperatorBody
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Symbol
from wpk.lowering.views import View
from wpk.problems import Cell, Recurrence, Tensor

_SWAP = (1, 0, 2)
_X, _R, _B, _LENGTHS, _H0, _C0, _PEEPHOLES = 0, 2, 3, 4, 5, 6, 7
_OPTIONAL = {"bias": _B, "lengths": _LENGTHS, "h0": _H0, "c0": _C0, "peepholes": _PEEPHOLES}
_OPERATIONS = ("Sigmoid", "Tanh", "Relu", "Softplus")


def is_recurrence(body: OperatorBody) -> bool:
    """Tell whether a body is what `wpk.graph_passes` makes of a recurrent operator."""
    return len(body.nodes) > 1 and any(node.op in RECURRENT for node in body.nodes)


class RecurrenceBody:
    """A body that is a recurrence, read.

    Attributes:
        shape: Of what it gives.
        leading: The first extent of that.
    """

    def __init__(self, body: OperatorBody, inputs: Mapping[str, Symbol], context: Context) -> None:
        """Find the operator among its views.

        Raises:
            RefusedError: It is something else.
        """
        node = next(node for node in body.nodes if node.op in RECURRENT)
        read = RecurrentNode.read(node)
        if isinstance(read, str):
            raise RefusedError(read, node)
        self._read, self._node, self._context, self._inputs = read, node, context, inputs
        self._batch_first = body.nodes[-1].op == "Transpose"
        self._slots = len(node.outputs)
        self._p = self._operand(_X)
        count = read.steps + self._slots - 1
        batch = self._p.leading if self._batch_first else Extent(self._p.shape[1])
        self._batch = batch
        self.shape: tuple[int, ...] = (count, batch.value, read.hidden)
        self.leading = Extent(count)
        if self._batch_first:
            self.shape, self.leading = (batch.value, count, read.hidden), batch

    def lower(self, y: View) -> LoweredProblem:
        """Return the problem.

        Args:
            y: The output's memory.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        r = self._operand(_R).reshaped((self._p.shape[-1], self._read.hidden))
        p, y = (each if self._batch_first else each.transposed(_SWAP) for each in (self._p, y))
        views = {name: self._optional(name, place) for name, place in _OPTIONAL.items()}
        tensors: dict[str, Tensor | None] = {
            name: None if view is None else view.tensor() for name, view in views.items()
        }
        attributes = self._node.attrs
        problem = Recurrence(
            cell=Cell(self._node.op),
            precision=self._context.compute_precision(r.dtype),
            batch=self._batch,
            steps=self._read.steps,
            hidden=self._read.hidden,
            reverse=self._read.directions == ("reverse",),
            linear_before_reset=bool(attributes.get("linear_before_reset", 0)),
            clip=float(attributes.get("clip", math.inf)),
            activations=tuple(_activation(each, r.dtype) for each in self._read.activations),
            slots=self._slots,
            p=p.tensor(),
            r=r.tensor(),
            y=y.tensor(),
            **tensors,
        )
        return LoweredProblem(problem, (p, r, *(view for view in views.values() if view)))

    def _operand(self, place: int) -> View:
        """An input as the body is given it, in front of a Transpose."""
        return only_view(self._inputs.get(_source(self._node.inputs[place])), "an operand")

    def _optional(self, name: str, place: int) -> View | None:
        if self._read.input(place) is None:
            return None
        view, hidden, rows = self._operand(place), self._read.hidden, self._p.shape[-1]
        if name in ("h0", "c0"):
            return view.reshaped((self._batch.value, hidden))
        return view.reshaped(
            {"bias": (2 * rows,), "lengths": (self._batch.value,), "peepholes": (3 * hidden,)}[name]
        )


def _source(tensor: gs.Tensor) -> str:
    made = tensor.inputs[0] if tensor.inputs else None
    return str((tensor if made is None else made.inputs[0]).name)


def _activation(name: str, dtype: DType) -> Expression:
    """An activation over the sum that it is given, of weights of a type."""
    if name == "Softsign":
        expression = apply("Div", Acc(), apply("Add", apply("Abs", Acc()), Scalar(1.0)))
    elif name in _OPERATIONS:
        expression = apply(name, Acc())
    else:
        raise RefusedError(f"the activation {name}")
    return In(dtype, expression) if dtype is DType.FP64 else expression
