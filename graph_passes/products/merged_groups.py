"""Give a convolution half as many groups where these have so few channels that no tensor core multiplies them.

    Conv(x, w, groups = g)  ->  Conv(x, w', groups = g / k)        w': zeros between the channels of different groups

Exact for finite numbers: what is added is multiplied with 0. Kernels for groups read four channels at a time
(`conv_grouped`); of two channels (DLA-X-C has 32 such groups) each thread would sum its own. Depthwise convolutions have kernels
of their own.
"""

from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.query import is_float, rank, static_shape

_TOGETHER = {2: 2, 3: 4}
"""How many groups become one, by the channels that a group reads: they then read a multiple of four."""

Array = NDArray[np.generic]


class _Groups(NamedTuple):
    """A convolution, and how many of its groups become one."""

    node: gs.Node
    weight: gs.Constant
    together: int


class MergedGroups(Rule[_Groups]):
    """Fill the matrices of neighbouring groups up with zeros to one."""

    name = "merged-groups"
    ops = ("Conv",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Groups | None:
        """Match groups of two or three channels."""
        del graph
        groups, weight = int(node.attrs.get("group", 1)), node.inputs[1]
        shape = static_shape(weight)
        if (
            not isinstance(weight, gs.Constant)
            or shape is None
            or rank(node.inputs[0]) not in (3, 4)
        ):
            return None
        together = _TOGETHER.get(shape[1], 1)
        if together == 1 or groups % together or not is_float(weight):
            return None
        return _Groups(node, weight, together)

    def rewrite(self, editor: GraphEditor, match: _Groups) -> None:
        """Write the weights anew."""
        node, weight, together = match
        groups = int(node.attrs["group"])
        outputs = weight.shape[0] // groups
        merged = moved_constant(
            editor.new_name(f"{weight.name}_merged"),
            weight,
            lambda array: _merged(array, outputs, together),
        )
        node.inputs = [node.inputs[0], merged, *node.inputs[2:]]
        node.attrs["group"] = groups // together


def _merged(array: Array, outputs: int, together: int) -> Array:
    """Weights of as many groups together: each output has zeros for the channels of other groups."""
    depth = array.shape[1]
    whole = np.zeros((array.shape[0], depth * together, *array.shape[2:]), array.dtype)
    for row in range(array.shape[0]):
        begin = row // outputs % together * depth
        whole[row, begin : begin + depth] = array[row]
    return whole
