"""Read an operator's body: view operators, at most one anchor, element-wise work around it.

The body is evaluated symbolically, node by node. Views of the inputs stay views as long as only
view operators touch them, element-wise operators build one expression, and the anchor (convolution,
product, pooling, reduction, normalisation) splits that expression in prologue and epilogue.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.graph_passes import ONNX_DOMAINS
from wpk.lowering import view_ops
from wpk.lowering.context import Context
from wpk.lowering.integers import narrowed, wrapped
from wpk.lowering.numbers import numbers_of, numbers_of_anchor, numbers_of_cast
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import (
    Anchor,
    Computation,
    Symbol,
    ViewStep,
    merge,
    of_anchor,
    of_scalar,
    of_view,
)
from wpk.lowering.views import NotAViewError, View, contiguous_strides
from wpk.operators import EXACT_IN_FP32, OPERATORS, Integers, cast, express, has_formula

ShapeRule = Callable[[gs.Node, Sequence[Symbol | None], Context], tuple[tuple[int, ...], Extent]]

_OTHERS = {"Cast", "Constant", *view_ops.OPERATORS}
_OMITTED_LIMITS = {1: -math.inf, 2: math.inf}


@dataclass(frozen=True)
class OperatorBody:
    """The nodes of one operator.

    Attributes:
        name: Name of the graph's node.
        nodes: Nodes in topological order; one for an operator that is no function.
        inputs: Names inside the body of the call's inputs, in order.
        output: Name inside the body of the output.
        beside: Name inside the body of moments of the output's rows, which are given as well; empty without.
    """

    name: str
    nodes: tuple[gs.Node, ...]
    inputs: tuple[str, ...]
    output: str
    beside: str = ""

    @property
    def onnx_nodes(self) -> tuple[str, ...]:
        """Names of the ONNX nodes that it computes."""
        return tuple(node.name for node in self.nodes if node.op != "Constant")


def read_body(
    body: OperatorBody,
    inputs: Mapping[str, Symbol],
    context: Context,
    anchor_shapes: Mapping[str, ShapeRule],
) -> Computation:
    """Return what the body's output stands for.

    Args:
        body: The nodes.
        inputs: What each of the body's inputs stands for, by its name inside the body.
        context: Constants; those inside the body are added to it.
        anchor_shapes: For every anchor operator, the shape of its output.

    Raises:
        RefusedError: The body does not follow the grammar, or holds an unknown operator.
        NotAViewError: A tensor's memory layout stands in the way.
    """
    reader = _Reader(body, context, anchor_shapes)
    reader.known.update(inputs)
    for node in body.nodes:
        reader.read(node)
    return reader.computed(reader.known[body.output])


def require_supported(body: OperatorBody, anchors: Collection[str]) -> None:
    """Check that every operator of a body is one that lowering knows.

    Raises:
        RefusedError: At the first one that is not.
    """
    for node in body.nodes:
        known = node.op in anchors or has_formula(node.op) or node.op in _OTHERS
        if not known or node.domain not in ONNX_DOMAINS:
            raise RefusedError(f"operator {node.op} is not supported", node)


class _Reader:
    def __init__(
        self, body: OperatorBody, context: Context, anchor_shapes: Mapping[str, ShapeRule]
    ) -> None:
        self.name = body.name
        self.output = body.output
        self.known: dict[str, Symbol] = {}
        self.context = context
        self.anchor_shapes = anchor_shapes

    def read(self, node: gs.Node) -> None:
        try:
            self._read(node)
        except RefusedError as refusal:
            refusal.locate(node)
            raise

    def _read(self, node: gs.Node) -> None:
        if node.op == "Constant":
            name = node.outputs[0].name
            self.known[name] = self.context.added(f"{self.name}.{name}", _constant(node))
            return
        computed = next((t for t in node.outputs if t.name == self.output), node.outputs[0])
        self.known[computed.name] = self.result(node)

    def result(self, node: gs.Node) -> Symbol:
        if node.op in view_ops.OPERATORS:
            return self.viewed(node)
        if node.op == "Cast":
            return self.cast(node)
        if has_formula(node.op):
            return self.elementwise(node)
        if node.op in self.anchor_shapes:
            return self.anchored(node)
        raise RefusedError(f"operator {node.op} is not supported", node)

    def values(self, tensor: gs.Tensor) -> NDArray[Any] | None:
        """Return the values of a tensor that is known now, or None."""
        symbol = self.symbol(tensor)
        return self.context.values(symbol) if isinstance(symbol, View) else None

    def symbol(self, tensor: gs.Tensor) -> Symbol:
        if tensor.name not in self.known:
            if not isinstance(tensor, gs.Constant):
                raise RefusedError(f"tensor {tensor.name!r} has no known origin")
            name = f"{self.name}.{tensor.name}"
            self.known[tensor.name] = self.context.added(name, np.asarray(tensor.values))
        return self.known[tensor.name]

    def computed(self, symbol: Symbol) -> Computation:
        if isinstance(symbol, Computation):
            return symbol
        values = self.context.constants.get(symbol.source)
        if values is not None and values.size == 1 and _is_held(values):
            scalar = of_scalar(float(values.reshape(())), symbol.dtype)
            return replace(scalar, shape=symbol.shape, leading=symbol.leading)
        return of_view(symbol)

    def viewed(self, node: gs.Node) -> Symbol:
        symbol = self.symbol(node.inputs[0])
        parameters = view_ops.parameters(node, self.values)
        apply = view_ops.read(node, symbol.shape, parameters)
        try:
            if isinstance(symbol, View):
                return apply(symbol)
            if not symbol.is_settled and symbol.operands:
                operands = tuple(
                    apply(view.broadcast(symbol.shape, symbol.leading)) for view in symbol.operands
                )
                shape, leading = operands[0].shape, operands[0].leading
                return replace(symbol, operands=operands, shape=shape, leading=leading)
        except NotAViewError:
            pass  # the output's memory can still be seen in the old shape
        return _stepped(node, self.computed(symbol), apply)

    def cast(self, node: gs.Node) -> Symbol:
        symbol = self.computed(self.symbol(node.inputs[0]))
        target = view_ops.cast_target(node)
        if symbol.dtype.is_integer and target.is_integer:
            return narrowed(symbol, target, is_stored=node.outputs[0].name == self.output)
        saturates = bool(node.attrs.get("saturate", 1))
        expression = cast(symbol.expression, symbol.dtype, target, saturates=saturates)
        numbers = numbers_of_cast(symbol, target)
        return replace(symbol, expression=expression, dtype=target, numbers=numbers)

    def elementwise(self, node: gs.Node) -> Computation:
        parts = [self.operand(node, index) for index in range(len(node.inputs))]
        if node.op == "Dropout":
            parts = parts[:1] if self.is_inference(node) else []
        if not parts:
            raise RefusedError(f"{node.op} in training mode, or in one that is no constant")
        numbers = numbers_of(node.op, parts)
        expressions, merged = merge(parts)
        dtype = _result_type(node.op, parts)
        expression = wrapped(node.op, express(node.op, expressions, node.attrs), dtype)
        return replace(merged, expression=expression, dtype=dtype, numbers=numbers)

    def operand(self, node: gs.Node, index: int) -> Computation:
        """Return what an input of an element-wise node stands for; a limit that is left out is infinite."""
        if node.inputs[index].name:
            return self.computed(self.symbol(node.inputs[index]))
        dtype = self.symbol(node.inputs[0]).dtype
        if node.op == "Clip" and index in _OMITTED_LIMITS:
            return of_scalar(_OMITTED_LIMITS[index], dtype)
        if node.op == "Dropout" and index:
            return of_scalar(0.0, dtype)
        raise RefusedError(f"{node.op} without its input {index + 1}")

    def is_inference(self, node: gs.Node) -> bool:
        """Tell whether a Dropout is known to do nothing."""
        if len(node.inputs) < 3 or not node.inputs[2].name:
            return True
        training = self.values(node.inputs[2])
        return training is not None and not training.any()

    def anchored(self, node: gs.Node) -> Computation:
        inputs = tuple(self.symbol(t) if t.name else None for t in node.inputs)
        if any(isinstance(s, Computation) and s.anchor is not None for s in inputs):
            raise RefusedError("two operators that are not element-wise meet in one body")
        numbers = numbers_of_anchor(node, inputs)
        shape, leading = self.anchor_shapes[node.op](node, inputs, self.context)
        first = inputs[0]
        if first is None:
            raise RefusedError(f"{node.op} without its first input")
        return of_anchor(Anchor(node, inputs, shape, leading), first.dtype, numbers)


def _is_held(values: NDArray[Any]) -> bool:
    """Tell whether fp32 holds a constant, if that is an integer."""
    return values.dtype.kind not in "iu" or abs(int(values.reshape(()))) < EXACT_IN_FP32


def _stepped(node: gs.Node, symbol: Computation, apply: Callable[[View], View]) -> Computation:
    """Remember a view operator on a result; it will be undone on the output's memory."""
    if node.op in ("Slice", "Expand"):
        raise RefusedError(f"{node.op} of a computed result inside one body")
    memory = View("", symbol.dtype, symbol.leading, symbol.shape, contiguous_strides(symbol.shape))
    probe = apply(memory)
    default = range(len(symbol.shape))[::-1]
    perm = tuple(node.attrs.get("perm", default)) if node.op == "Transpose" else None
    step = ViewStep(symbol.shape, perm)
    return replace(symbol, shape=probe.shape, leading=probe.leading, steps=(*symbol.steps, step))


def _result_type(op: str, parts: Sequence[Computation]) -> DType:
    if OPERATORS[op].integers in (Integers.COMPARE, Integers.TRUTH):
        return DType.BOOL
    chosen = parts[1:] if op == "Where" else parts
    tensors = [p for p in chosen if p.operands or p.anchor is not None] or list(chosen)
    return tensors[0].dtype


def _constant(node: gs.Node) -> NDArray[Any]:
    names = ("value", "value_float", "value_int", "value_ints", "value_floats")
    name = next((name for name in names if name in node.attrs), None)
    if name is None:
        raise RefusedError("a Constant without numbers")
    value = node.attrs[name]
    if name.startswith("value_float"):
        return np.asarray(value, np.float32)
    return np.asarray(value.values if isinstance(value, gs.Constant) else value)
