"""Remove two Reshapes of which the second takes the first back.

    Reshape(f(Reshape(x)))  ->  f(x)        f: element-wise nodes of one tensor and constants

Exact: what is done to each element does not depend on where it lies. Constants get the shape that broadcasts
to the same elements of x. Classifiers of scikit-learn are written so, with the names of classes as a row in
between; a free batch would be that row's length. Swin Transformers part their batch of windows to mask them.
"""

import math
from itertools import dropwhile
from typing import NamedTuple

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
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
            tensor = _variables(maker)[0]
        first = producer(tensor)
        if not nodes or first is None or not is_op(first, *RESHAPES):
            return None
        source = first.inputs[0]
        if not same_dims(dims(source), dims(node.outputs[0])):
            return None
        constants = [t for each in nodes for t in each.inputs if isinstance(t, gs.Constant)]
        if any(_shape_for(constant, tensor, source) is None for constant in constants):
            return None
        reason = why_any_shared(graph, [each.outputs[0] for each in nodes])
        return refusal(node, reason) or _Detour(node, nodes, source)

    def rewrite(self, editor: GraphEditor, match: _Detour) -> None:
        """Write the nodes for the source."""
        tensor = match.source
        for node in match.nodes:
            inputs = [
                _constant(editor, each, node.outputs[0], match.source)
                if isinstance(each, gs.Constant)
                else each
                if each.is_empty()
                else tensor
                for each in node.inputs
            ]
            output, shape = node.outputs[0], dims(match.source)
            tensor = editor.add(node.op, inputs, like=output, shape=shape, attrs=node.attrs)
        editor.replace(match.last.outputs[0], tensor)


def _of_one_tensor(tensor: gs.Tensor) -> gs.Node | None:
    """The element-wise node that makes a tensor, if it reads one tensor, of its shape, and constants.

    Scalars of more dimensions may have put some of one element in front.
    """
    node = producer(tensor)
    if node is None or not is_elementwise(node):
        return None
    read = _variables(node)
    return node if len(read) == 1 and same_dims(_inner(read[0]), _inner(tensor)) else None


def _variables(node: gs.Node) -> list[gs.Tensor]:
    return [t for t in node.inputs if not t.is_empty() and not isinstance(t, gs.Constant)]


def _inner(tensor: gs.Tensor) -> Dims | None:
    """The shape without dimensions of one element in front."""
    shape = dims(tensor)
    return None if shape is None else list(dropwhile(lambda size: size == 1, shape))


def _constant(
    editor: GraphEditor, constant: gs.Constant, between: gs.Tensor, source: gs.Tensor
) -> gs.Tensor:
    """The constant as it is read beside the source."""
    shape = _shape_for(constant, between, source)
    if shape is None or shape == list(constant.shape):
        return constant
    name = editor.new_name(f"{constant.name}_around")
    return moved_constant(name, constant, lambda array: array.reshape(shape))


def _shape_for(constant: gs.Constant, between: gs.Tensor, source: gs.Tensor) -> list[int] | None:
    """The shape with which a constant of ``between`` is broadcast alike to the source; None if none is."""
    have, wanted = dims(between), dims(source)
    own = list(constant.shape)
    if have is None or wanted is None:
        return None
    if all(size == 1 for size in own):
        return own if len(own) <= len(wanted) else None
    if not all(isinstance(size, int) for size in (*have, *wanted)) or len(own) > len(have):
        return None
    return _regrouped([1] * (len(have) - len(own)) + own, have, wanted)


def _regrouped(own: list[int], have: Dims, wanted: Dims) -> list[int] | None:
    """Regroup the sizes of a constant as a Reshape from ``have`` to ``wanted`` regroups dimensions."""
    result: list[int] = []
    sizes = [(int(size or 0), mine) for size, mine in zip(have, own, strict=True) if size != 1]
    goals = [int(size or 0) for size in wanted]
    for goal in goals:
        if goal == 1:
            result.append(1)
            continue
        if not sizes or goal == 0:
            return None
        merged = [sizes.pop(0)]
        while math.prod(size for size, _ in merged) < goal and sizes:
            merged.append(sizes.pop(0))
        rest, left = divmod(math.prod(size for size, _ in merged), goal)
        spread = [mine == size for size, mine in merged]
        if left or (any(spread) and not all(spread)):
            return None
        result.append(goal if all(spread) else 1)
        if rest > 1:  # the dimension is parted: what is left of it goes to the next sizes
            sizes.insert(0, (rest, rest if all(spread) else 1))
    return result if not sizes else None
