"""Squeeze and excitation: a body of two products of one row, perhaps behind its mean and before what it scales.

Its nodes are read in up to four pieces, each of which keeps to the grammar of bodies: the mean, each of the
products with what follows it, and the element-wise work that the gates are part of.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.expression import Acc, Expression, Operand, substitute
from wpk.lowering.anchors.base import LoweredProblem, only_view, stored, with_bias
from wpk.lowering.anchors.matmul import gemm_terms, operands_of
from wpk.lowering.anchors.pieces import two_products, until
from wpk.lowering.anchors.reduction import axes_of
from wpk.lowering.body import OperatorBody, ShapeRule, read_body
from wpk.lowering.context import Context
from wpk.lowering.numbers import whole
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Computation, Symbol
from wpk.lowering.views import View, contiguous_strides
from wpk.problems import Epilogue, Squeeze, whole_runs

_PRODUCTS = ("Conv", "Gemm", "MatMul")
_MEANS = ("GlobalAveragePool", "ReduceMean")
_ROW, _HIDDEN, _GATES = "the row", "the hidden row", "the gates"


class SqueezeBody:
    """A body that is squeeze and excitation, or a part of it with both products, read.

    Attributes:
        result: What the body computes, over the images if it scales some, else over the gates.
    """

    def __init__(
        self,
        body: OperatorBody,
        inputs: Mapping[str, Symbol],
        context: Context,
        shapes: Mapping[str, ShapeRule],
    ) -> None:
        """Read the pieces.

        Raises:
            RefusedError: A piece does not follow the grammar.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        self.context, self.name = context, body.name

        def read(output: str, given: str, row: View | None) -> Computation:
            known = dict(inputs) if row is None else {**inputs, given: row}
            return read_body(until(body, output, given), known, context, shapes)

        down, up = two_products(body, _PRODUCTS)
        row, middle, gates = down.inputs[0].name, up.inputs[0].name, _gates(body, up)
        self.mean = read(row, "", None)
        self.hidden = read(middle, row, _given(_ROW, self.mean))
        self.gates = read(gates, middle, _given(_HIDDEN, self.hidden))
        self.result, self.scales = self.gates, gates != body.output
        if self.scales:
            self.result = read(body.output, gates, _given(_GATES, self.gates))
        if self.hidden.anchor is None or self.gates.anchor is None:
            raise RefusedError("two products of one row that are not two")

    def lower(self, y: View) -> LoweredProblem:
        """Return the problem.

        Args:
            y: The output's memory, seen with the shape of the images or of the second product.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        x, means = self._pooled()
        (down, hidden), (up, gates) = (
            self._product(each, word) for each, word in ((self.hidden, "down"), (self.gates, "up"))
        )
        if self.scales:
            scaled, y = self._scaled(y)
        else:
            scaled, y = (Acc(), []), _flat(y, 1)
            gates = stored(gates[0], y.dtype), gates[1]
        problem = Squeeze(
            precision=self.context.compute_precision(down.dtype),
            n=y.leading,
            c=x.shape[1],
            pixels=x.shape[2],
            hidden_size=down.shape[0],
            k=up.shape[0],
            places=y.shape[2],
            x=x.tensor(),
            down=down.tensor(),
            up=up.tensor(),
            means=means,
            hidden=_epilogue(hidden),
            gates=_epilogue(gates),
            scaled=_epilogue(scaled),
            y=y.tensor(),
        )
        return LoweredProblem(problem, (x, down, up, *hidden[1], *gates[1], *scaled[1]))

    def _pooled(self) -> tuple[View, Expression]:
        """What is averaged, over (n, c, pixels), and what happens to the mean."""
        anchor = self.mean.anchor
        if anchor is None:
            row = only_view(self.mean, "the row")
            return _flat(row, 1), Acc()
        x = only_view(anchor.inputs[0], "what is averaged")
        axes = axes_of(anchor.node, anchor.inputs, len(x.shape), self.context)
        channel = [axis for axis in range(1, len(x.shape)) if axis not in axes]
        if anchor.node.op not in _MEANS or self.mean.operands or len(channel) != 1:
            raise RefusedError("a mean of other axes, or one that something is added to")
        return _flat(x, channel[0]), whole(self.mean)

    def _product(
        self, result: Computation, word: str
    ) -> tuple[View, tuple[Expression, list[View]]]:
        """The weights, a row for each result, and what happens to these."""
        anchor = result.anchor
        assert anchor is not None
        if anchor.node.op == "Conv":
            weight = only_view(anchor.inputs[1], "the weight")
            matrix = weight.reshaped(weight.shape[:2])
            if len(anchor.inputs) > 2 and anchor.inputs[2] is not None:
                bias = only_view(anchor.inputs[2], "the bias")
                ones = [1] * (len(anchor.shape) - 2)
                result = with_bias(result, bias.reshaped((1, bias.shape[0], *ones)), anchor.shape)
        else:
            _, weight = operands_of(anchor.node, anchor.inputs)
            matrix = weight.transposed((1, 0))
            result = gemm_terms(result, anchor)
        values = self.context.values(matrix)
        if values is None:
            raise RefusedError("a product of one row with weights that are not constant")
        runs = np.zeros((len(values), whole_runs(values.shape[1])), values.dtype)
        runs[:, : values.shape[1]] = values
        rows = self.context.added(f"{self.name}.{word}", runs)
        operands = [_row(each) for each in result.operands]
        return rows, (whole(result), operands)

    def _scaled(self, y: View) -> tuple[tuple[Expression, list[View]], View]:
        """What happens to gates and images, over (n, k, places), and the output."""
        views = [view.broadcast(y.shape, y.leading) for view in self.result.operands]
        own = next(index for index, view in enumerate(views) if view.source == _GATES)
        channel = [axis for axis in range(1, len(y.shape)) if views[own].strides[axis] == 1]
        if self.result.anchor is not None or len(channel) != 1:
            raise RefusedError("gates that scale something else than channels")
        others = [index for index in range(len(views)) if index != own]

        def moved(leaf: Expression) -> Expression:
            if not isinstance(leaf, Operand):
                return leaf
            return Acc() if leaf.index == own else Operand(others.index(leaf.index))

        expression = stored(substitute(whole(self.result), moved), y.dtype)
        operands = [_flat(views[index], channel[0]) for index in others]
        return (expression, operands), _flat(y, channel[0])


def is_squeeze(body: OperatorBody) -> bool:
    """Tell whether a body holds two products, and none of the softmax between those of attention."""
    ops = [node.op for node in body.nodes]
    return sum(op in _PRODUCTS for op in ops) == 2 and "Softmax" not in ops


def _gates(body: OperatorBody, up: gs.Node) -> str:
    """The last tensor behind the second product that is no larger than its result."""
    name, size = str(up.outputs[0].name), prod(_known(up.outputs[0]))
    for node in body.nodes:
        if any(tensor.name == name for tensor in node.inputs):
            if prod(_known(node.outputs[0])) != size:
                return name
            name = str(node.outputs[0].name)
    return body.output


def _known(tensor: gs.Tensor) -> list[int]:
    """Extents without the batch."""
    return [int(extent) for extent in list(tensor.shape)[1:]]


def _given(source: str, made: Computation) -> View:
    """What a piece made, as the next one reads it: one row after the other, in fp32."""
    strides = contiguous_strides(made.shape)
    return View(source, DType.FP32, made.leading, made.shape, strides)


def _flat(view: View, channel: int) -> View:
    """Return a view with the axes (n, channels, all others)."""
    others = [axis for axis in range(1, len(view.shape)) if axis != channel]
    places = prod(view.shape[axis] for axis in others)
    size = view.shape[channel]
    if view.strides[channel] == 1:  # padding stays behind the rows
        rows = view.transposed([0, *others, channel]).reshaped((view.shape[0], places, size))
        return rows.transposed((0, 2, 1))
    return view.transposed([0, channel, *others]).reshaped((view.shape[0], size, places))


def _row(view: View) -> View:
    """Return a view over (n, channels) of one whose other axes have one element."""
    flat = _flat(view, 1)
    return replace(flat, shape=flat.shape[:2], strides=flat.strides[:2])


def _epilogue(result: tuple[Expression, list[View]]) -> Epilogue:
    expression, operands = result
    return Epilogue(expression, tuple(view.tensor() for view in operands))
