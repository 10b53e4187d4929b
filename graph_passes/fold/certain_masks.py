"""Leave out of a mask what holds everywhere.

    And(GreaterOrEqual(i, c), x)  ->  Expand(x, ...)      i counts from c or above: 0, 1, 2, ... >= 0
    And(true, x)                  ->  Expand(x, ...)

Exporters write the mask of an attention so that lets every query see every key: queries are counted,
and none is below 0.
"""

from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.query import Dims, dims, integers, made_by, values
from wpk.graph_passes.movement.gathers.counting import count_of
from wpk.graph_passes.movement.repeats.expanded import expand_target


class _Certain(NamedTuple):
    """An And, the operand that decides, and the shape of the result."""

    node: gs.Node
    decides: gs.Tensor
    shape: Dims


class CertainMasks(Rule[_Certain]):
    """Replace an And of something true by the other operand."""

    name = "certain-masks"
    ops = ("And",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Certain | None:
        """Match an And whose shape is known; of constants it is `constant_folding`'s."""
        del graph
        shape = dims(node.outputs[0])
        if shape is None or None in shape:
            return None
        for one, other in (node.inputs, node.inputs[::-1]):
            if _is_certain(one) and not isinstance(other, gs.Constant):
                return _Certain(node, other, shape)
        return None

    def rewrite(self, editor: GraphEditor, match: _Certain) -> None:
        """Repeat the other operand over the shape of the result."""
        output = match.node.outputs[0]
        if dims(match.decides) == match.shape:
            editor.replace(output, editor.add("Identity", [match.decides], like=output))
            return
        target = expand_target(editor, match.node.name, match.shape)
        if target is not None:
            editor.replace(
                output,
                editor.add("Expand", [match.decides, target], like=output, shape=match.shape),
            )


def _is_certain(tensor: gs.Tensor) -> bool:
    constant = values(tensor)
    if constant is not None:
        return constant.dtype == np.bool_ and constant.size > 0 and bool(constant.all())
    test = made_by(tensor, "GreaterOrEqual")
    if test is None:
        joined = made_by(tensor, "And")
        return joined is not None and all(map(_is_certain, joined.inputs))
    count, least = count_of(test.inputs[0]), integers(test.inputs[1])
    if count is None or least is None or len(least) != 1:
        return False
    return count.start >= least[0] and all(step.factor >= 0 for step in count.steps)
