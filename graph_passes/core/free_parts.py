"""The first rows of a constant, as many as a free dimension says.

    Slice(table, [0], Gather(Shape(ids), [1]), [1])    the positions of a sequence: table[:, :sequence]

Such a Slice has the free dimension's size as long as the constant has so many rows, and a plan takes no
larger ones.
"""

from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import given, integers, is_op, values
from wpk.graph_passes.core.sizes import size_of


class FreePart(NamedTuple):
    """A Slice of a constant: which axis, the free dimension that says how many, and how many there are."""

    axis: int
    dimension: str
    rows: int


def free_part(node: gs.Node | None) -> FreePart | None:
    """Return what a node takes of a constant, if it is such a Slice."""
    if node is None or not is_op(node, "Slice"):
        return None
    constant, starts, ends = values(node.inputs[0]), integers(given(node, 1)), given(node, 2)
    axes, steps = given(node, 3), given(node, 4)
    axis = [0] if axes is None else integers(axes)
    ones = steps is None or integers(steps) == [1]
    if constant is None or starts != [0] or ends is None or axis is None or not ones:
        return None
    size = size_of(ends)
    if size is None or size.factor != 1 or len(size.free) != 1 or constant.ndim == 0:
        return None
    place = axis[0] % constant.ndim
    return FreePart(place, size.free[0], np.shape(constant)[place])
