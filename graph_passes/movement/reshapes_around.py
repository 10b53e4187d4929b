"""Remove two Reshapes of which the second takes the first back.

    Reshape(f(Reshape(x)))  ->  f(x)        f: element-wise nodes of one tensor and scalars

Exact: what is done to each element does not depend on where it lies. Classifiers of scikit-learn are
written so, with the names of classes as a row in between; a free batch would be that row's length.
"""

from itertools import dropwhile
from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import is_elementwise
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    is_op,
    producer,
    same_dims,
    why_any_shared,
)
from wpk.graph_passes.movement.reshape_chains import RESHAPES


class _Detour(NamedTuple):
    """The second Reshape, the nodes before it, first to last, and what the first one reads."""

    last: gs.Node
    nodes: list[gs.Node]
    source: gs.Tensor


class ReshapesAround(Rule[_Detour]):
    """Let element-wise nodes read what was reshaped for them alone."""

    name = "reshapes-around"
    ops = RESHAPES

    def match(self, graph: gs.Graph, node: gs.Node) -> _Detour | Refusal | None:
        """Match a Reshape that gives the shape from before another."""
        nodes: list[gs.Node] = []
        tensor = node.inputs[0]
        while (maker := _of_one_tensor(tensor)) is not None:
            nodes.insert(0, maker)
            tensor = next(outside_inputs(maker))
        first = producer(tensor)
        if not nodes or first is None or not is_op(first, *RESHAPES):
            return None
        source = first.inputs[0]
        if not same_dims(dims(source), dims(node.outputs[0])) or not _fit(nodes, source):
            return None
        reason = why_any_shared(graph, [each.outputs[0] for each in nodes])
        return refusal(node, reason) or _Detour(node, nodes, source)

    def rewrite(self, editor: GraphEditor, match: _Detour) -> None:
        """Write the nodes for the source."""
        tensor = match.source
        for node in match.nodes:
            read = next(outside_inputs(node))
            inputs = [tensor if each is read else each for each in node.inputs]
            output, shape = node.outputs[0], dims(match.source)
            tensor = editor.add(node.op, inputs, like=output, shape=shape, attrs=node.attrs)
        editor.replace(match.last.outputs[0], tensor)


def _of_one_tensor(tensor: gs.Tensor) -> gs.Node | None:
    """The element-wise node that makes a tensor, if it reads one tensor and scalars.

    The tensor has its shape; scalars of more dimensions may have put some of one element in front.
    """
    node = producer(tensor)
    if node is None or not is_elementwise(node):
        return None
    read = list(outside_inputs(node))
    alone = len(read) == 1 and not isinstance(read[0], gs.Constant)
    return node if alone and same_dims(_inner(read[0]), _inner(tensor)) else None


def _inner(tensor: gs.Tensor) -> Dims | None:
    """The shape without dimensions of one element in front."""
    shape = dims(tensor)
    return None if shape is None else list(dropwhile(lambda size: size == 1, shape))


def _fit(nodes: list[gs.Node], source: gs.Tensor) -> bool:
    """Whether no scalar has more dimensions than the source, so that none are added."""
    scalars = [t for node in nodes for t in node.inputs if isinstance(t, gs.Constant)]
    return all(len(scalar.shape) <= len(source.shape) for scalar in scalars)
