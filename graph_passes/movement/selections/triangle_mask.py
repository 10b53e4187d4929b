"""Write a Trilu as the choice that it is.

    Trilu(x, k)  ->  Where(mask, x, 0)        mask[i, j] = j - i >= k, or <= k where the lower part stays

The mask is a constant, so that the choice joins what is computed around it.
"""

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import NewConstant, Refusal, Replacement, ReplacementRule
from wpk.graph_passes.core.query import dims, element_type, given, integers

_MOST_ELEMENTS = 2**24
"""A mask of more would swell the plan."""


class TriangleMask(ReplacementRule):
    """Replace each Trilu of matrices of a known size."""

    name = "triangle-mask"
    ops = ("Trilu",)

    def match(self, graph: gs.Graph, node: gs.Node) -> Replacement | Refusal | None:
        """Match a Trilu at a constant diagonal."""
        del graph
        x = node.inputs[0]
        shape, dtype = dims(x), element_type(x)
        diagonal = given(node, 1)
        places = [0] if diagonal is None else integers(diagonal)
        if shape is None or places is None or not all(isinstance(n, int) for n in shape[-2:]):
            return Refusal(node.name, "its diagonal, or the size of its matrices, is not known")
        rows, columns = (int(n) for n in shape[-2:] if n is not None)
        if dtype is None or isinstance(dtype, int) or rows * columns > _MOST_ELEMENTS:
            return Refusal(node.name, f"a mask of {rows} x {columns} elements of type {dtype}")
        distance = np.arange(columns) - np.arange(rows)[:, None]
        keeps = distance >= places[0] if node.attrs.get("upper", 1) else distance <= places[0]
        mask = NewConstant(f"{node.name}_mask", keeps)
        if np.dtype(dtype) == np.bool_:
            return Replacement(node.outputs[0], "And", [mask, x])
        zero = NewConstant(f"{node.name}_zero", np.zeros((), dtype))
        return Replacement(node.outputs[0], "Where", [mask, x, zero])
