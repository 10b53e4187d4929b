"""A node's work falls into parts along an axis, of which each element of the output is computed alone.

Unlike `wpk.checks.by_sample`, which cuts whole bodies along the batch, this asks nothing but the operator and the
shapes of its operands: also one image is cut, and what was computed from weights.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray

from wpk.blocks import PART, cores, evenly, on_cores
from wpk.operators import ELEMENTWISE
from wpk.reused_memory import empty

Array = NDArray[np.generic]

_LEAST = 1 << 19
"""Elements of the largest operand that pay for threads."""

_PLANES = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")
_IMAGES = ("Conv", "ConvTranspose", "InstanceNormalization")
_ROWS = ("LayerNormalization", "LogSoftmax", "RMSNormalization", "Softmax")
_PRODUCTS = ("Conv", "ConvTranspose", "MatMul")
"""Operators that take all cores themselves, and are better left to do so than cut into a few parts."""

_VIEWS = ("Transpose",)
"""Operators that cost nothing: NumPy changes how the elements are seen."""

_SPREADS = ("Softmax",)
"""Operators that fill their parts of the output on all cores themselves, as products of several matrices do."""


@dataclass(frozen=True)
class Cut:
    """Where the operands and the output of a node are cut.

    Attributes:
        extent: Elements along the axis.
        reads: For each operand its axis that is cut; None where every part reads all of it.
        written: The output's axis.
    """

    extent: int
    reads: tuple[int | None, ...]
    written: int

    def part(self, arrays: Sequence[Array | None], at: slice) -> list[Array | None]:
        """The operands of a part."""
        return [
            array if array is None or axis is None else array[(slice(None),) * axis + (at,)]
            for array, axis in zip(arrays, self.reads, strict=True)
        ]


def cut_of(node: onnx.NodeProto, arrays: Sequence[Array | None]) -> Cut | None:
    """Return where a node of ONNX's own domain can be cut; None where it cannot, or where nobody can tell.

    Args:
        node: The node.
        arrays: Its operands; None where an optional one is missing.
    """
    if len(node.output) != 1 or not arrays or arrays[0] is None:
        return None
    op, shape = node.op_type, arrays[0].shape
    if op in ELEMENTWISE:
        return _broadcast([None if each is None else each.shape for each in arrays])
    if op == "MatMul":
        return _matrices([each.shape for each in arrays if each is not None])
    if op == "Concat":
        return _joined(node, [each.shape for each in arrays if each is not None])
    if op in _PLANES:
        return _first_alone(arrays, shape[:2])
    if op in _IMAGES:
        return _first_alone(arrays, shape[:1])
    if op == "Transpose":
        return _transposed(node, shape)
    if op in _ROWS:  # before opset 13 all axes behind are of the row, too
        axis = next((int(a.i) for a in node.attribute if a.name == "axis"), _first_axis(op))
        return _first_alone(arrays, shape[: axis % len(shape)] if shape else ())
    return None


@dataclass(frozen=True)
class Filters(Cut):
    """Where a convolution is cut by its filters.

    Attributes:
        products: Of all filters.
    """

    products: int


def filters_of(node: onnx.NodeProto, arrays: Sequence[Array | None]) -> Filters | None:
    """Return where a convolution of one group is cut by its filters; None for anything else.

    Args:
        node: The node.
        arrays: Its operands; None where an optional one is missing.
    """
    x, weight = (*arrays, None, None)[:2]
    groups = next((a.i for a in node.attribute if a.name == "group"), 1)
    if node.op_type != "Conv" or x is None or weight is None or groups != 1:
        return None
    places = x.size // max(1, x.shape[1])  # of windows, or fewer
    reads = (None, 0, 0)[: len(arrays)]
    return Filters(len(weight), reads, 1, places * weight.size)


def _first_axis(op: str) -> int:
    """An axis before which there are rows, whatever the opset: Softmax's was 1 once and is the last one now."""
    return 1 if op in ("LogSoftmax", "Softmax") else -1


def _first_alone(arrays: Sequence[Array | None], free: Sequence[int]) -> Cut | None:
    """The first operand is cut along one of its first axes, and everything else is whole."""
    axis = _longest(free)
    return None if axis is None else Cut(free[axis], (axis, *[None] * (len(arrays) - 1)), axis)


def _transposed(node: onnx.NodeProto, shape: tuple[int, ...]) -> Cut | None:
    axis = _longest(shape)
    if axis is None:
        return None
    given = (list(a.ints) for a in node.attribute if a.name == "perm")
    perm = next(given, list(range(len(shape)))[::-1])
    return Cut(shape[axis], (axis,), perm.index(axis))


def _broadcast(shapes: Sequence[tuple[int, ...] | None]) -> Cut | None:
    """All are cut along an axis of what they are broadcast to, as far as they have it."""
    try:
        whole = np.broadcast_shapes(*(shape for shape in shapes if shape is not None))
    except ValueError:
        return None
    axis = _longest(whole)
    if axis is None:
        return None
    own = [None if shape is None else axis - len(whole) + len(shape) for shape in shapes]
    reads = [
        place
        if shape is not None and place is not None and place >= 0 and shape[place] > 1
        else None
        for shape, place in zip(shapes, own, strict=True)
    ]
    return Cut(whole[axis], tuple(reads), axis)


def _matrices(shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    """Matrices are multiplied one by one, a single one row by row; a product of two takes all cores itself."""
    first, second = shapes
    if len(first) < 3 or len(second) < 2:
        return None
    found = _broadcast([shape[:-2] for shape in shapes])
    if found is not None or first[-2] < 2:
        return found
    return Cut(first[-2], (len(first) - 2, None), max(len(first), len(second)) - 2)


def _joined(node: onnx.NodeProto, shapes: Sequence[tuple[int, ...]]) -> Cut | None:
    """All are cut along one of the axes along which they are not put one behind the other."""
    rank = len(shapes[0])
    joined = next(int(a.i) for a in node.attribute if a.name == "axis") % rank
    axis = _longest([1 if place == joined else n for place, n in enumerate(shapes[0])])
    return None if axis is None else Cut(shapes[0][axis], (axis,) * len(shapes), axis)


def _longest(extents: Sequence[int]) -> int | None:
    """The first axis that has a few elements for each core, else the longest; None where there is only one element."""
    long = [axis for axis, extent in enumerate(extents) if extent >= 2 * cores()]
    if long:
        return long[0]
    axis = int(np.argmax(extents)) if len(extents) else 0
    return axis if len(extents) and extents[axis] > 1 else None


def evaluated(
    node: onnx.NodeProto,
    arrays: Sequence[Array | None],
    evaluate: Callable[[Sequence[Array | None]], list[Array]],
) -> list[Array]:
    """Return what ``evaluate`` gives for a node's operands, on all cores where it is much and can be cut.

    Args:
        node: The node.
        arrays: Its operands; None where an optional one is missing.
        evaluate: Called for parts of them, several at once.
    """
    size = max((each.size for each in arrays if each is not None), default=0)
    pays = cores() > 1 and size >= _LEAST and not _spreads(node, arrays)
    cut = cut_of(node, arrays) if pays else None
    if cut is None or (node.op_type in _PRODUCTS and cut.extent < cores() // 2):
        return evaluate(arrays)
    return _put_together(cut, size, lambda at: evaluate(cut.part(arrays, at)))


def _spreads(node: onnx.NodeProto, arrays: Sequence[Array | None]) -> bool:
    """Whether a node has nothing from being cut."""
    matrices = node.op_type == "MatMul" and arrays[1] is not None and arrays[1].ndim > 2
    return matrices or node.op_type in (*_VIEWS, *_SPREADS)


def by_parts(x: Array, free: Sequence[int], work: Callable[[Array], Array]) -> Array:
    """Return what ``work`` makes of an array, on all cores where it is large.

    Args:
        x: The array.
        free: For each axis its extent where elements along it are computed by themselves, else 1.
        work: Called for parts of the array; keeps the extent of their free axes.
    """
    axis = _longest(free) if cores() > 1 and x.size >= _LEAST else None
    if axis is None:
        return work(x)
    cut = Cut(free[axis], (axis,), axis)
    (found,) = _put_together(cut, x.size, lambda at: [work(*cut.part([x], at))])  # type: ignore[arg-type]
    return found


def _put_together(cut: Cut, size: int, evaluate: Callable[[slice], list[Array]]) -> list[Array]:
    """The outputs for all that is cut, of what they are for parts of it; ``size`` is that of the largest operand."""
    count = max(2 * cores(), -(-size // PART))
    return list(put_together(cut.extent, cut.written, count, evaluate))


def put_together(
    extent: int, axis: int, count: int, evaluate: Callable[[slice], Sequence[Array]]
) -> tuple[Array, ...]:
    """Return arrays of which ``evaluate`` gives parts along an axis.

    Args:
        extent: Of the axis.
        axis: The same for all arrays.
        count: Parts, where there are so many elements.
        evaluate: Called for several parts at once, on all cores.
    """
    whole = _Whole(extent, axis)
    on_cores(evenly(extent, min(extent, count)), lambda at: whole.put(at.start, evaluate(at)))
    return whole.arrays


class _Whole:
    """Arrays that are put together from parts along an axis, in any order.

    Attributes:
        arrays: The arrays; none before the first part.
    """

    def __init__(self, count: int, axis: int = 0) -> None:
        """Begin.

        Args:
            count: Extent of the axis.
            axis: The same for all arrays.
        """
        self._count, self._axis, self._lock = count, axis, threading.Lock()
        self.arrays: tuple[Array, ...] = ()

    def put(self, first: int, parts: Sequence[Array]) -> None:
        """Take a part of each array, which begins at ``first``."""
        axis = self._axis
        with self._lock:
            self.arrays = self.arrays or tuple(
                empty((*p.shape[:axis], self._count, *p.shape[axis + 1 :]), p.dtype) for p in parts
            )
        for array, part in zip(self.arrays, parts, strict=True):
            array[(slice(None),) * axis + (slice(first, first + part.shape[axis]),)] = part
