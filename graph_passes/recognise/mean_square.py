"""The root of a mean of squares, and what is divided by it: the middle of a normalisation of rows.

v / sqrt(mean(v^2) + eps)    also v * (1 / sqrt(...)); a constant over the rows' axes may follow
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import (
    dims,
    is_graph_output,
    made_by,
    rank,
    same_dims,
    split_constant,
    uniform,
)
from wpk.graph_passes.core.reductions import reduced_axes
from wpk.graph_passes.recognise.norm_of_rows import row_shape


@dataclass(frozen=True)
class MeanSquare:
    """A quotient of values and the root of the mean of their squares.

    Attributes:
        values: What is squared, and divided.
        axes: Along which the mean goes.
        epsilon: Added to the mean.
        nodes: Those inside, save the last.
        quotient: The last node.
    """

    values: gs.Tensor
    axes: list[int]
    epsilon: float
    nodes: list[gs.Node]
    quotient: gs.Node


def divided_by_root(root: gs.Node) -> MeanSquare | None:
    """Match from ``sqrt(mean(v^2) + eps)`` both ways."""
    shifted = made_by(root.inputs[0], "Add")
    sides = split_constant(shifted) if shifted is not None else None
    epsilon = uniform(sides[1]) if sides is not None else None
    mean = made_by(sides[0], "ReduceMean") if sides is not None else None
    square = made_by(mean.inputs[0], "Pow", "Mul") if mean is not None else None
    if shifted is None or epsilon is None or mean is None or square is None:
        return None
    squared_twice = square.op == "Mul" and square.inputs[0] is square.inputs[1]
    if not squared_twice and (square.op != "Pow" or uniform(square.inputs[1]) != 2.0):
        return None
    values, axes = square.inputs[0], reduced_axes(mean)
    if axes is None or not mean.attrs.get("keepdims", 1):
        return None
    nodes = [square, mean, shifted, root]
    quotient = _quotient(root, values, nodes)
    return quotient and MeanSquare(values, axes, epsilon, nodes, quotient)


def _quotient(root: gs.Node, values: gs.Tensor, nodes: list[gs.Node]) -> gs.Node | None:
    """Find v / sqrt or v * (1 / sqrt); appends the reciprocal to ``nodes``."""
    for reader in root.outputs[0].outputs:
        if reader.op == "Div" and reader.inputs[0] is values:
            return reader
        one_over = reader.op == "Div" and uniform(reader.inputs[0]) == 1.0
        if reader.op == "Reciprocal" or one_over:
            for product in reader.outputs[0].outputs:
                if product.op == "Mul" and any(t is values for t in product.inputs):
                    nodes.append(reader)
                    return product
    return None


def why_not_rows(
    graph: gs.Graph, x: gs.Tensor, axes: list[int], nodes: list[gs.Node], last: gs.Node
) -> str | None:
    """Say why the nodes are not a normalisation of ``x`` along its last axes that one node can replace.

    Args:
        graph: Holds the nodes.
        x: What is normalised.
        axes: Along which.
        nodes: Those inside, which vanish.
        last: The node that gives the normalised values.
    """
    dimensions = rank(x) or 0
    if not axes or axes != list(range(dimensions - len(axes), dimensions)):
        return f"it normalises axes {axes} of {dimensions}, which are not the last ones"
    return _why_not_one_node(graph, x, axes, nodes, last)


def why_not_rows_or_channels(
    graph: gs.Graph, x: gs.Tensor, axes: list[int], nodes: list[gs.Node], last: gs.Node
) -> str | None:
    """As `why_not_rows`, of a normalisation along the last axes or along the channels of images or sequences."""
    if axes == [1] and (rank(x) or 0) > 2:
        return _why_not_one_node(graph, x, axes, nodes, last)
    return why_not_rows(graph, x, axes, nodes, last)


def _why_not_one_node(
    graph: gs.Graph, x: gs.Tensor, axes: list[int], nodes: list[gs.Node], last: gs.Node
) -> str | None:
    if isinstance(x.dtype, int):
        return f"'{x.name}' has a type that NumPy lacks"
    if row_shape(x, axes) is None:
        return f"the normalised dimensions of '{x.name}' are free"
    if not same_dims(dims(x), dims(last.outputs[0])):
        return f"'{last.outputs[0].name}' has another shape than '{x.name}'"
    inside = {id(node) for node in [*nodes, last]}
    for node in nodes:
        tensor = node.outputs[0]
        if is_graph_output(graph, tensor) or any(id(r) not in inside for r in tensor.outputs):
            return f"'{tensor.name}' inside the pattern is read elsewhere"
    return None
