"""Read an image or a volume at places between its elements, by operators that have kernels.

    taps    = the place rounded; or floor(place) and its neighbours, by twos (linear) or fours (cubic)
    element = GatherElements of the image as a row, by the taps' flat index: the last axis fastest
    y       = ReduceSum of elements times the products of the axes' weights

A tap outside is moved to the border or reflected; for padding with zeros it reads the border's element, in whose
place stands 0. Weights are polynomials of ``place - floor(place)``: linear, or Keys' cubic convolution with -0.75.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import DTypeLike

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims

_KEYS = -0.75
_FIRST_TAP = {"nearest": 0, "linear": 0, "cubic": -1}
_WEIGHTS = {
    "linear": ((-1.0, 1.0), (1.0, 0.0)),
    "cubic": (
        (_KEYS, _KEYS + 2, -_KEYS - 2, -_KEYS),
        (-2 * _KEYS, -_KEYS - 3, 2 * _KEYS + 3, _KEYS),
        (_KEYS, 0.0, -_KEYS, 0.0),
        (0.0, 1.0, 0.0, 0.0),
    ),
}
"""Of every tap, the coefficients of falling powers of a place's fraction."""


@dataclass(frozen=True)
class _Taps:
    """What is read for every output position, of shape (batch, taps, positions) each.

    Attributes:
        index: Flat indices over the axes so far.
        inside: Whether a tap lies within them; None where padding has moved it there.
        weights: Its weight; None where there is one tap.
        count: How many taps there are.
    """

    index: gs.Tensor
    inside: gs.Tensor | None
    weights: gs.Tensor | None
    count: int


class PlacedReading(NodeParts):
    """Adds the nodes that stand for one node, which reads at computed places.

    Args:
        editor: Of the graph.
        node: It.
        x: What is read, of shape (batch, channels, lengths).
        positions: How many places there are for an image.
        dtype: Of the places, which are computed in fp32 at least.
        mode: ``nearest``, ``linear`` or ``cubic``.
        padding: ``zeros``, ``border`` or ``reflection``.
        aligned: Whether places are reflected at the first and last elements, not at their outer edges.
    """

    def __init__(
        self,
        editor: GraphEditor,
        node: gs.Node,
        x: gs.Tensor,
        positions: int,
        dtype: DTypeLike,
        *,
        mode: str = "linear",
        padding: str = "zeros",
        aligned: bool = False,
    ) -> None:
        """Note what is read, and how."""
        super().__init__(editor, node)
        self.x = x
        self.batch, self.channels, *self.lengths = list(x.shape)
        self.positions, self.mode, self.padding = positions, mode, padding
        self.aligned = aligned
        self.type: DTypeLike = np.dtype(np.float32) if dtype == np.float16 else dtype

    def read(self, places: Sequence[gs.Tensor]) -> gs.Tensor:
        """Return the elements, of shape (batch, channels, positions).

        Args:
            places: Along each axis, of shape (batch, 1, positions) each.
        """
        taps = _axis_taps(self, places[0], self.lengths[0])
        for place, length in zip(places[1:], self.lengths[1:], strict=True):
            taps = _joined(self, taps, _axis_taps(self, place, length), length)
        return _sampled(self, taps)

    def computed(self, op: str, x: gs.Tensor, *numbers: float) -> gs.Tensor:
        """An element-wise operator of ``x`` and numbers."""
        constants = [self.numbers(np.array(each)) for each in numbers]
        return self.add(op, x, *constants, shape=list(x.shape))

    def numbers(self, values: np.ndarray) -> gs.Constant:
        """A constant of the places' type."""
        return self.editor.constant(f"{self.node.name}_numbers", values, self.type)


def _axis_taps(to: PlacedReading, place: gs.Tensor, length: int) -> _Taps:
    nearest = to.mode == "nearest"
    tap = to.computed("Round" if nearest else "Floor", place)
    weights, count = None, 1
    if not nearest:
        coefficients = _WEIGHTS[to.mode]
        fraction = to.add("Sub", place, tap, shape=list(place.shape))
        weights, count = _polynomial(to, fraction, coefficients), len(coefficients[0])
        steps = to.numbers(np.arange(count)[:, None] + _FIRST_TAP[to.mode])
        tap = to.add("Add", tap, steps, shape=[to.batch, count, to.positions])
    if to.padding == "reflection":
        tap = _reflected(to, tap, length)
    within = to.computed("Clip", tap, 0, length - 1)
    inside = None
    if to.padding == "zeros":
        inside = to.add("Equal", tap, within, shape=list(tap.shape), dtype=np.bool_)
    return _Taps(to.cast(within, np.int64), inside, weights, count)


def _polynomial(
    to: PlacedReading, x: gs.Tensor, coefficients: tuple[tuple[float, ...], ...]
) -> gs.Tensor:
    """By Horner's rule, for every tap a polynomial of its own."""
    highest, *rest = [to.numbers(np.array(each)[:, None]) for each in coefficients]
    shape: Dims = [to.batch, len(coefficients[0]), to.positions]
    result: gs.Tensor = highest
    for each in rest:
        result = to.add("Add", to.add("Mul", x, result, shape=shape), each, shape=shape)
    return result


def _reflected(to: PlacedReading, tap: gs.Tensor, length: int) -> gs.Tensor:
    """Back and forth between the first and the last element, or between their outer edges."""
    first, span = (0.0, length - 1) if to.aligned else (-0.5, length)
    ahead = to.computed("Sub", tap, first)
    rounds = to.computed("Floor", to.computed("Div", ahead, 2 * span))
    shape, before = list(tap.shape), to.computed("Mul", rounds, 2 * span)
    way = to.add("Sub", ahead, before, shape=shape)
    back = to.computed("Abs", to.computed("Sub", way, span))
    return to.add("Sub", to.numbers(np.array(span + first)), back, shape=shape)


def _joined(to: PlacedReading, outer: _Taps, inner: _Taps, length: int) -> _Taps:
    """Every tap of the axes so far with every one of the next axis."""
    count = outer.count * inner.count

    def pairs(op: str, a: gs.Tensor, b: gs.Tensor) -> gs.Tensor:
        first = to.reshaped(a, [to.batch, outer.count, 1, to.positions])
        second = to.reshaped(b, [to.batch, 1, inner.count, to.positions])
        shape: Dims = [to.batch, outer.count, inner.count, to.positions]
        return to.reshaped(to.add(op, first, second, shape=shape), [to.batch, count, to.positions])

    row = to.add("Mul", outer.index, to.ints([length]), shape=list(outer.index.shape))
    inside, weights = None, None
    if outer.inside is not None and inner.inside is not None:
        inside = pairs("And", outer.inside, inner.inside)
    if outer.weights is not None and inner.weights is not None:
        weights = pairs("Mul", outer.weights, inner.weights)
    return _Taps(pairs("Add", row, inner.index), inside, weights, count)


def _sampled(to: PlacedReading, taps: _Taps) -> gs.Tensor:
    """Read all channels at the taps, and sum."""
    reads, channels = taps.count * to.positions, to.channels
    read: Dims = [to.batch, channels, reads]
    index = to.add(
        "Expand",
        to.reshaped(taps.index, [to.batch, 1, reads]),
        to.ints([1, channels, 1]),
        shape=read,
    )
    image = to.reshaped(to.x, [to.batch, channels, prod(to.lengths)])
    elements = to.add("GatherElements", image, index, shape=read, axis=2)
    if taps.inside is not None:
        zero = to.editor.constant(f"{to.node.name}_outside", np.array(0.0), to.x.dtype)
        inside = to.reshaped(taps.inside, [to.batch, 1, reads])
        elements = to.add("Where", inside, elements, zero, shape=read, dtype=to.x.dtype)
    if taps.weights is not None:
        weights = to.cast(
            to.reshaped(taps.weights, [to.batch, 1, taps.count, to.positions]), to.x.dtype
        )
        shape: Dims = [to.batch, channels, taps.count, to.positions]
        parts = to.reshaped(elements, [to.batch, channels, taps.count, to.positions])
        parts = to.add("Mul", parts, weights, shape=shape)
        summed: Dims = [to.batch, channels, to.positions]
        elements = to.add("ReduceSum", parts, to.ints([2]), shape=summed, keepdims=0)
    return elements
