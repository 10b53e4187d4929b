"""Movements of rows in a body of attention: the order that windows of an image have them in.

A Gather of rows takes an image's rows in the order of its windows, or the result's back. Read as if it moved
nothing, a body is that of attention whose matrices lie one after another; the problem says of the rows of
each what place they have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.lowering.body import OperatorBody
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Symbol
from wpk.lowering.views import View
from wpk.problems import Windows, windows_of


@dataclass(frozen=True)
class Orders:
    """The rows that attention reads, and those that take its result back."""

    before: tuple[NDArray[np.int64], ...]
    behind: NDArray[np.int64]


def in_rows(
    body: OperatorBody, inputs: Mapping[str, Symbol], context: Context
) -> tuple[OperatorBody, Orders | None]:
    """Return a body whose Gathers of rows move nothing, and what they would move; None where it has none.

    Raises:
        RefusedError: They are not one before each operand and one behind the result.
    """
    softmax = next(node for node in body.nodes if node.op == "Softmax")
    reached = {softmax.outputs[0].name}
    nodes = list[gs.Node]()
    before, behind = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
    for node in body.nodes:
        if any(t.name in reached for t in node.inputs):
            reached |= {t.name for t in node.outputs}
        index = _index(node, inputs, context)
        if index is None:
            nodes.append(node)
            continue
        (behind if node.outputs[0].name in reached else before).append(index)
        nodes.append(_standing(node))
    if not before and not behind:
        return body, None
    if not before or len(behind) != 1:
        raise RefusedError("attention whose rows are moved before it or behind it, not both")
    return replace(body, nodes=tuple(nodes)), Orders(tuple(before), behind[0])


def windows_of_orders(orders: Orders | None, tokens: int) -> Windows | None:
    """Return the windows that all rows are moved by; None where none is.

    Raises:
        RefusedError: They are moved by something else.
    """
    if orders is None:
        return None
    first = orders.before[0]
    windows = windows_of(first, tokens)
    back = len(orders.behind) == len(first) and np.array_equal(
        first[orders.behind], np.arange(len(first))
    )
    if (
        windows is None
        or not back
        or not all(np.array_equal(each, first) for each in orders.before)
    ):
        raise RefusedError("attention whose rows are moved, but not as those of windows of images")
    return windows


def _index(
    node: gs.Node, inputs: Mapping[str, Symbol], context: Context
) -> NDArray[np.int64] | None:
    """The rows that a Gather moves; None of a node that is none, or picks one."""
    if node.op != "Gather" or len(node.inputs[1].shape or ()) != 1:
        return None
    index = node.inputs[1]
    symbol = inputs.get(index.name)
    known = index.values if isinstance(index, gs.Constant) else None
    known = context.values(symbol) if known is None and isinstance(symbol, View) else known
    if known is None or node.attrs.get("axis", 0) != 1:
        raise RefusedError("rows of attention that are moved by what is not constant")
    return np.asarray(known, np.int64)


def _standing(node: gs.Node) -> gs.Node:
    """A node that gives what a Gather reads, under the name of what that gives."""
    data, result = node.inputs[0], node.outputs[0]
    inputs, outputs = (gs.Variable(each.name, each.dtype) for each in (data, result))
    return gs.Node("Identity", node.name, {}, [inputs], [outputs])
