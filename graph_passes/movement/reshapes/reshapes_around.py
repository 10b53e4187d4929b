"""Remove two Reshapes of which the second takes the first back.

    Reshape(f(Reshape(x)))  ->  f(x)        f: element-wise nodes of one tensor and constants

Exact: what is done to each element does not depend on where it lies. Constants get the shape that broadcasts
to the same elements of x. Classifiers of scikit-learn are written so, with the names of classes as a row in
between; a free batch would be that row's length. Swin Transformers part their batch of windows to mask them: in front
of a softmax, a constant that is the same for each image is repeated for all of them, so that attention is one kernel.
"""

import math
from itertools import dropwhile
from typing import NamedTuple

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

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
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES


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
        repeats = _is_read_by_softmax(node.outputs[0])
        if any(_fitted(constant, tensor, source, repeats) is None for constant in constants):
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


def _is_read_by_softmax(tensor: gs.Tensor) -> bool:
    """Whether it holds scores: numbers of which nothing but a softmax along the last axis is computed."""
    readers = list(tensor.outputs)
    return len(readers) == 1 and is_op(readers[0], "Softmax")


def _constant(
    editor: GraphEditor, constant: gs.Constant, between: gs.Tensor, source: gs.Tensor
) -> gs.Tensor:
    """The constant as it is read beside the source."""
    fit = _fitted(constant, between, source, repeats=True)
    if fit is None or fit.shape == list(constant.shape):
        return constant
    name = editor.new_name(f"{constant.name}_around")
    return moved_constant(name, constant, fit.moved)


class _Fit(NamedTuple):
    """How a constant is read beside the source.

    Attributes:
        own: Its sizes, one for each dimension between the Reshapes.
        repeated: Likewise, where it is repeated along some of them.
        shape: What these elements are viewed in.
    """

    own: list[int]
    repeated: list[int]
    shape: list[int]

    def moved(self, array: NDArray[np.generic]) -> NDArray[np.generic]:
        return np.broadcast_to(array.reshape(self.own), self.repeated).reshape(self.shape)


def _fitted(
    constant: gs.Constant, between: gs.Tensor, source: gs.Tensor, repeats: bool
) -> _Fit | None:
    """How a constant of ``between`` is broadcast alike to the source; None if it is not.

    Args:
        constant: What is read beside ``between``.
        between: What the first Reshape makes of the source.
        source: What it reads.
        repeats: Whether it may be repeated along a part of what is one dimension of the source.
    """
    have, wanted = dims(between), dims(source)
    own = list(constant.shape)
    if have is None or wanted is None:
        return None
    if all(size == 1 for size in own):
        return _Fit(own, own, own) if len(own) <= len(wanted) else None
    if not all(isinstance(size, int) for size in (*have, *wanted)) or len(own) > len(have):
        return None
    return _regrouped([1] * (len(have) - len(own)) + own, have, wanted, repeats)


def _regrouped(own: list[int], have: Dims, wanted: Dims, repeats: bool) -> _Fit | None:
    """Regroup the sizes of a constant as a Reshape from ``have`` to ``wanted`` regroups dimensions."""
    repeated, result = list(own), list[int]()
    left = [(axis, int(size or 0)) for axis, size in enumerate(have) if size != 1]
    spread = {axis: own[axis] == size for axis, size in left}
    for goal in (int(size or 0) for size in wanted):
        if goal == 1:
            result.append(1)
            continue
        if not left or goal == 0:
            return None
        merged = [left.pop(0)]
        while math.prod(size for _, size in merged) < goal and left:
            merged.append(left.pop(0))
        rest, over = divmod(math.prod(size for _, size in merged), goal)
        along = [spread[axis] for axis, _ in merged]
        if over:
            return None
        if any(along) and not all(along):
            same = [axis for axis, _ in merged if not spread[axis]]
            whole = all(size == have[axis] for axis, size in merged if axis in same)
            if not repeats or rest > 1 or not whole:
                return None
            for axis in same:
                repeated[axis] = int(have[axis] or 0)
        result.append(goal if any(along) else 1)
        if rest > 1:  # the dimension is parted: what is left of it goes to the next sizes
            axis, _ = merged[-1]
            left.insert(0, (axis, rest))
    return _Fit(own, repeated, result) if not left else None
