"""Error bounds of recurrent operators: see `wpk.checks.error_bounds`.

What is rounded at one step goes through all later ones. Bounds on that by norms of R grow beyond every
use within a few steps, where the states themselves forget. So the recurrence is executed in float64
with roundings drawn at every step, of random signs and each of the size of its bound, and shows
itself how far they move its states: at each step by `SAFETY` times what they move any element by.
"""

from collections.abc import Callable
from math import sqrt

import numpy as np

from wpk.checks.bounded import Call, Floats, U
from wpk.checks.bounds.sums import SAFETY
from wpk.checks.float64_nodes import Array
from wpk.checks.reference.recurrent import evaluate_recurrent
from wpk.operators import SPECIAL_ROUNDINGS

_TRIES = 4
_SUBNORMAL = 2.0**-25
"""Half the distance between the smallest fp16 numbers."""


def recurrence(call: Call) -> Floats:
    """Return how far the output that is asked for may be off."""
    attributes = {each.name: call.attribute(each.name, None) for each in call.node.attribute}
    exact = np.asarray(call.y, np.float64)
    place = [i for i, name in enumerate(call.node.output) if name][call.place]
    along = int(bool(call.attribute("layout", 0))) if place == 0 else None
    largest = np.zeros([n if axis == along else 1 for axis, n in enumerate(exact.shape)])
    others = tuple(axis for axis in range(exact.ndim) if axis != along)
    for seed in range(_TRIES):
        draw = _Draw(call, np.random.default_rng(seed))
        moved = evaluate_recurrent(call.node.op_type, draw.inputs(), attributes, draw)
        change = np.abs(moved[place] - exact)
        np.maximum(largest, np.nan_to_num(change.max(others, keepdims=True)), out=largest)
    return np.broadcast_to(SAFETY * largest, exact.shape).copy()


class _Draw:
    """Draws what a step's arithmetic may be off by."""

    def __init__(self, call: Call, rng: np.random.Generator) -> None:
        self._call, self._rng = call, rng
        self._u, self._of_product = call.roundoff, call.multiply_roundoff
        self._least = _SUBNORMAL if self._of_product > max(U, self._u) else 0.0

    def inputs(self) -> list[Array | None]:
        """The inputs, those that are not exact moved by their errors."""
        given = enumerate(self._call.inputs)
        return [None if ball is None else self._input(index, ball.value) for index, ball in given]

    def product(self, value: Floats, size: Callable[[], Floats], terms: int) -> Floats:
        """See `wpk.checks.reference.recurrent.Disturbance`; what is multiplied is rounded before (`state`).

        Tensor cores truncate the sum of every eight products.
        """
        cut = terms / 4 if self._of_product != self._u else 0.0
        return self._moved(value, self._u * (sqrt(terms) + cut) * size())

    def sum(self, value: Floats, *parts: Floats) -> Floats:
        """See `Disturbance`: a rounding for each part."""
        return self._moved(value, self._u * sum((np.abs(each) for each in parts), np.zeros(())))

    def function(self, value: Floats) -> Floats:
        """See `Disturbance`: right to a few roundings of it, and to one of 1."""
        return self._moved(value, self._u * (SPECIAL_ROUNDINGS * np.abs(value) + 1.0))

    def state(self, value: Floats) -> Floats:
        """See `Disturbance`."""
        return self._moved(value, self._of_product * np.abs(value) + self._least)

    def _input(self, index: int, value: Array) -> Array:
        return self._moved(value, self._call.error(index)) if self._call.errs(index) else value

    def _moved(self, value: Array, size: Floats) -> Floats:
        signs = self._rng.choice((-1.0, 1.0), value.shape)
        moved: Floats = np.asarray(value, np.float64) + signs * size
        return moved
