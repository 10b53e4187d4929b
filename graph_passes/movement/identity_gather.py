"""Read a Gather that only counts through its data as the Reshape that it is.

    Gather(Reshape(x, [-1]), i)  ->  Reshape(x)      i[b, ...] = b * s + 0, 1, ..., s - 1

torch writes ``as_strided`` so, e.g. behind the average pool of ConvNeXt and Swin. The index is a
constant, or computed from a Range over the free batch.
"""

import math
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import NewConstant, Replacement, ReplacementRule
from wpk.graph_passes.core.query import (
    dims,
    given,
    integers,
    is_op,
    made_by,
    producer,
    rank,
    static_shape,
    values,
)


@dataclass(frozen=True)
class _Count:
    """Integers that are ``step * b + rest``, with b the place along the first dimension.

    Attributes:
        step: Distance between neighbours along the first dimension; 0 for constants.
        rest: What is the same for every b; its first extent is 1 where ``step`` is not 0.
        symbol: The free dimension that b counts through; None for constants.
    """

    step: int
    rest: NDArray[np.int64]
    symbol: str | None


class IdentityGather(ReplacementRule):
    """Replace a Gather of all elements in order by a Reshape."""

    name = "identity-gather"
    ops = ("Gather",)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | None:
        """Match a Gather from a flat tensor."""
        source = node.inputs[0]
        if rank(source) != 1 or isinstance(source, gs.Constant):
            return None
        target = _target(node)
        if target is None:
            return None
        sizes = NewConstant(f"{node.name}_shape", np.array(target, np.int64))
        return Replacement(node.outputs[0], "Reshape", [source, sizes])


def _target(node: gs.Node) -> list[int] | None:
    """The shape that the Gather gives, if it reads everything in order."""
    index = _count(node.inputs[1])
    if index is None:
        return None
    if index.symbol is None:
        shape = list(index.rest.shape)
        whole = static_shape(node.inputs[0]) == [index.rest.size]
        return shape if whole and _in_order(index.rest) else None
    if index.rest.size != index.step or not _in_order(index.rest):
        return None
    flat = made_by(node.inputs[0], "Reshape", "Flatten")
    source = dims(flat.inputs[0]) if flat is not None else None
    if source is None or source[0] != index.symbol:
        return None
    inner = [size for size in source[1:] if isinstance(size, int)]
    whole = len(inner) == len(source) - 1 and math.prod(inner) == index.step
    return [-1, *index.rest.shape[1:]] if whole else None


def _in_order(array: NDArray[np.int64]) -> bool:
    return bool((array.reshape(-1) == np.arange(array.size)).all())


def _count(tensor: gs.Tensor) -> _Count | None:
    constant = values(tensor)
    if constant is not None:
        integral = np.issubdtype(constant.dtype, np.integer)
        return _Count(0, constant.astype(np.int64), None) if integral else None
    node = producer(tensor)
    if node is None:
        return None
    if is_op(node, "Range"):
        return _range(node)
    if is_op(node, "Add", "Mul"):
        parts = [_count(t) for t in node.inputs]
        if parts[0] is None or parts[1] is None:
            return None
        return _sum(parts[0], parts[1]) if node.op == "Add" else _product(parts[0], parts[1])
    if is_op(node, "Unsqueeze", "Reshape", "Cast", "Identity"):
        return _reshaped(node)
    return None


def _range(node: gs.Node) -> _Count | None:
    """Range(0, batch, 1)."""
    start, step = integers(node.inputs[0]), integers(node.inputs[2])
    symbol = _batch(node.inputs[1]) if (start, step) == ([0], [1]) else None
    return None if symbol is None else _Count(1, np.zeros(1, np.int64), symbol)


def _batch(tensor: gs.Tensor) -> str | None:
    """The free dimension whose size a tensor holds."""
    node = producer(tensor)
    while node is not None and is_op(node, "Squeeze", "Unsqueeze", "Cast", "Identity"):
        node = producer(node.inputs[0])
    picks_first = node is not None and is_op(node, "Gather") and integers(node.inputs[1]) == [0]
    if node is not None and picks_first:
        node = producer(node.inputs[0])
    if node is None or not is_op(node, "Shape") or int(node.attrs.get("start", 0)) != 0:
        return None
    if not picks_first and node.attrs.get("end") != 1:
        return None
    first = (dims(node.inputs[0]) or [None])[0]
    return first if isinstance(first, str) else None


def _sum(a: _Count, b: _Count) -> _Count | None:
    ranks = (a.rest.ndim, b.rest.ndim)
    counting = [part for part in (a, b) if part.step]
    if len(counting) > 1:
        return None
    rest = a.rest + b.rest
    if counting and (counting[0].rest.ndim != max(ranks) or rest.shape[0] != 1):
        return None
    return _Count(a.step + b.step, rest, a.symbol or b.symbol)


def _product(a: _Count, b: _Count) -> _Count | None:
    factor, other = (a, b) if a.step == 0 and a.rest.size == 1 else (b, a)
    if factor.step or factor.rest.size != 1 or factor.rest.ndim > other.rest.ndim:
        return None
    number = int(factor.rest.reshape(()))
    return _Count(other.step * number, other.rest * number, other.symbol)


def _reshaped(node: gs.Node) -> _Count | None:
    """Behind dimensions of 1 that do not come before the counted one."""
    inner, shape = _count(node.inputs[0]), dims(node.outputs[0])
    if inner is None or inner.step == 0 or shape is None or not shape:
        return None
    if is_op(node, "Cast", "Identity"):
        integral = node.outputs[0].dtype in (np.int32, np.int64)
        return inner if integral else None
    if inner.rest.size != 1 or any(size != 1 for size in shape[1:]) or shape[0] == 1:
        return None
    axes = integers(given(node, 1)) if is_op(node, "Unsqueeze") else None
    if axes is not None and 0 in [axis % len(shape) for axis in axes]:
        return None
    return _Count(inner.step, inner.rest.reshape([1] * len(shape)), inner.symbol)
