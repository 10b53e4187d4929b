"""Write operators that wpk has no kernel for by what ONNX's documentation defines them by.

    Hardmax(x)           ->  first of the elements that equal ReduceMax(x), as 1 among 0
    LpNormalization(x)   ->  x / ReduceL1(x) or x / ReduceL2(x), 0 where that is 0
    LRN(x)               ->  x / (bias + alpha * mean of x^2 over neighbouring channels)^beta
    LpPool(x)            ->  (sum of |x|^p over a window)^(1/p), by AveragePool
    GlobalLpPool(x)      ->  the same by a reduction
    ReduceLogSumExp(x)   ->  log(sum of exp(x - m)) + m, m = ReduceMax(x), 0 in place of infinity

ONNX has no function body for these (`function_bodies`), whose forms here are few nodes that later passes fuse.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, is_float, rank
from wpk.graph_passes.core.reductions import reduced_axes

_LRN_ALPHA = float(np.float32(1e-4))  # the default, as ONNX holds it
_POOLING = ("auto_pad", "dilations", "kernel_shape", "pads", "strides")


class DefinedForms(Rule[gs.Node]):
    """Replace each by its definition."""

    name = "defined-forms"
    ops: ClassVar = (
        "Hardmax",
        "LpNormalization",
        "LRN",
        "LpPool",
        "GlobalLpPool",
        "ReduceLogSumExp",
    )

    def match(self, graph: gs.Graph, node: gs.Node) -> gs.Node | Refusal:
        """Match floating point tensors of a known rank."""
        del graph
        return refusal(node, _why_not(node)) or node

    def rewrite(self, editor: GraphEditor, match: gs.Node) -> None:
        """Write the definition."""
        editor.replace(match.outputs[0], _FORMS[match.op](_Writer(editor, match)))


def _why_not(node: gs.Node) -> str | None:
    x = node.inputs[0]
    if not is_float(x):
        return f"'{x.name}' is of type {x.dtype}"
    for tensor in (x, node.outputs[0]):
        if rank(tensor) is None:
            return f"the rank of '{tensor.name}' is not known"
    if node.op == "ReduceLogSumExp" and not reduced_axes(node):
        return "its axes are not known, or none"
    if node.op == "LpPool" and node.attrs.get("ceil_mode", 0):
        return "windows that are cut off are averaged over what is left of them"
    if node.op == "LRN" and not all(isinstance(n, int) for n in list(x.shape)[1:]):
        return f"'{x.name}' has shape {x.shape}: all but the batch must be known"
    axis = node.attrs.get("axis", -1)
    if node.op == "Hardmax" and not isinstance(x.shape[axis], int):
        return f"axis {axis} of '{x.name}' is free"
    return None


class _Writer(NodeParts):
    """Adds the nodes that stand for one node."""

    def __init__(self, editor: GraphEditor, node: gs.Node) -> None:
        super().__init__(editor, node)
        self.x, self.shape = node.inputs[0], list(node.inputs[0].shape)

    def number(self, value: float) -> gs.Constant:
        return self.numbers(np.array(value))

    def numbers(self, values: np.ndarray) -> gs.Constant:
        return self.editor.constant(f"{self.node.name}_constant", values, self.x.dtype)

    def reduced(self, op: str, x: gs.Tensor, axes: list[int]) -> gs.Tensor:
        """Reduce axes, which stay with size 1."""
        inside = [axis % len(self.shape) for axis in axes]
        shape: Dims = [1 if i in inside else n for i, n in enumerate(self.shape)]
        return self.along(op, x, axes, shape, 13 if op == "ReduceSum" else 18)

    def along(self, op: str, x: gs.Tensor, axes: list[int], shape: Dims, since: int) -> gs.Tensor:
        """Add a node whose axes are an input since an opset, and an attribute before."""
        if self.editor.graph.opset < since:
            return self.add(op, x, shape=shape, axes=axes)
        return self.add(op, x, self.ints(axes), shape=shape)

    def power(self, x: gs.Tensor, exponent: float, shape: Dims | None = None) -> gs.Tensor:
        """A power of numbers that are not negative."""
        if exponent == 1.0:
            return x
        if exponent == 0.5:
            return self.add("Sqrt", x, shape=shape)
        return self.add("Pow", x, self.number(exponent), shape=shape)


def _hardmax(to: _Writer) -> gs.Tensor:
    axis = int(to.node.attrs.get("axis", -1)) % len(to.shape)
    size = to.shape[axis]
    assert isinstance(size, int)
    behind = (1,) * (len(to.shape) - axis - 1)
    places = to.numbers(np.arange(size).reshape(size, *behind))
    largest = to.add("Equal", to.x, to.reduced("ReduceMax", to.x, [axis]), dtype=np.bool_)
    candidates = to.add("Where", largest, places, to.number(size), like=to.x)
    least = to.reduced("ReduceMin", candidates, [axis])
    first = to.add("Equal", places, least, shape=to.shape, dtype=np.bool_)
    return to.add("Where", first, to.number(1.0), to.number(0.0), like=to.x)


def _lp_normalization(to: _Writer) -> gs.Tensor:
    op = {1: "ReduceL1", 2: "ReduceL2"}[int(to.node.attrs.get("p", 2))]
    norm = to.reduced(op, to.x, [int(to.node.attrs.get("axis", -1))])
    is_zero = to.add("Equal", norm, to.number(0.0), dtype=np.bool_)
    return to.add("Where", is_zero, to.number(0.0), to.add("Div", to.x, norm), like=to.x)


def _lrn(to: _Writer) -> gs.Tensor:
    """Channels become the rows of an image, over which windows are averaged; padding counts."""
    attrs, (batch, channels, *rest) = to.node.attrs, to.shape
    size = int(attrs["size"])
    area = int(np.prod([n for n in rest if isinstance(n, int)], dtype=np.int64))
    image: Dims = [batch, 1, channels, area]
    squares = to.add("Mul", to.x, to.x)
    seen = to.reshaped(squares, image)
    pads = [(size - 1) // 2, 0, size // 2, 0]
    means = to.add(
        "AveragePool", seen, shape=image, kernel_shape=[size, 1], pads=pads, count_include_pad=1
    )
    back = to.reshaped(means, to.shape)
    scaled = to.add("Mul", back, to.number(float(attrs.get("alpha", _LRN_ALPHA))))
    base = to.add("Add", scaled, to.number(float(attrs.get("bias", 1.0))))
    return to.add("Div", to.x, to.power(base, float(attrs.get("beta", 0.75))))


def _powers(to: _Writer, p: int) -> gs.Tensor:
    return to.add("Mul", to.x, to.x) if p == 2 else to.power(to.add("Abs", to.x), float(p))


def _lp_pool(to: _Writer) -> gs.Tensor:
    p, shape = int(to.node.attrs.get("p", 2)), list(to.node.outputs[0].shape)
    window = {key: to.node.attrs[key] for key in _POOLING if key in to.node.attrs}
    means = to.add("AveragePool", _powers(to, p), shape=shape, count_include_pad=1, **window)
    count = float(np.prod(to.node.attrs["kernel_shape"]))
    return to.power(to.add("Mul", means, to.number(count), shape=shape), 1.0 / p, shape)


def _global_lp_pool(to: _Writer) -> gs.Tensor:
    p, axes = int(to.node.attrs.get("p", 2)), list(range(2, len(to.shape)))
    total = to.reduced("ReduceSum", _powers(to, p), axes)
    return to.power(total, 1.0 / p, list(total.shape))


def _log_sum_exp(to: _Writer) -> gs.Tensor:
    axes = reduced_axes(to.node) or []
    largest = to.reduced("ReduceMax", to.x, axes)
    infinite = to.add("IsInf", largest, dtype=np.bool_)
    finite = to.add("Where", infinite, to.number(0.0), largest, like=largest)
    total = to.reduced("ReduceSum", to.add("Exp", to.add("Sub", to.x, finite)), axes)
    result = to.add("Add", to.add("Log", total), finite)
    if to.node.attrs.get("keepdims", 1):
        return result
    return to.along("Squeeze", result, axes, list(to.node.outputs[0].shape), 13)


_FORMS: dict[str, Callable[[_Writer], gs.Tensor]] = {
    "Hardmax": _hardmax,
    "LpNormalization": _lp_normalization,
    "LRN": _lrn,
    "LpPool": _lp_pool,
    "GlobalLpPool": _global_lp_pool,
    "ReduceLogSumExp": _log_sum_exp,
}
