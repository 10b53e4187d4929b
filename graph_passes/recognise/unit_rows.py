"""Recognise rows that are divided by their length, as cosine attention has them.

    x / max(sqrt(sum(x^2)), eps)    ->  RMSNormalization(x, 1 / sqrt(K), eps^2 / K)     K elements a row

RMSNormalization divides by ``sqrt(sum(x^2) + eps^2)``, up to ``eps^2 / (2 sum(x^2))`` of itself the same. In fp16
a row of another length than 0 is at least 2^-24 long, and where that is much longer than ``eps`` nothing that fp32
could show is left of the difference. It is then one operator, or part of the product that alone reads it.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.clean.definitions.modern_forms import ModernForms
from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.kinds import RMS_NORM
from wpk.graph_passes.core.query import given, made_by, split_constant, uniform
from wpk.graph_passes.core.reductions import reduced_axes
from wpk.graph_passes.movement.chains.reshape_chains import permutation
from wpk.graph_passes.recognise.mean_square import why_not_rows
from wpk.graph_passes.recognise.norm_of_rows import row_shape, write_norm
from wpk.graph_passes.recognise.rms_norm import RMS_NORM_OPSET, why_too_old

_SHORTEST = 2.0**-24
"""The least positive number of fp16."""

_LARGEST_EPSILON = _SHORTEST * 2.0**-12
"""A row is then at least 2^12 times as long, and ``eps^2 / (2 sum(x^2))`` at most 2^-25: half of fp32's roundoff."""


@dataclass(frozen=True)
class UnitRows:
    """Rows divided by their length.

    Attributes:
        values: What is divided.
        axes: Along which the squares are summed.
        epsilon: The least divisor.
        nodes: Those that vanish, save the last.
        quotient: The last.
    """

    values: gs.Tensor
    axes: list[int]
    epsilon: float
    nodes: list[gs.Node]
    quotient: gs.Node


class RecognizeUnitRows(Rule[UnitRows]):
    """Replace a division of rows by their length by one node."""

    name = "recognize-unit-rows"
    ops = ("ReduceL2",)
    in_double = False

    def __init__(self, storage: DType) -> None:
        """Make the pass.

        Args:
            storage: Of tensors. Only fp16 has no rows so short that the divisor's limit shows.
        """
        self._is_half = storage is DType.FP16

    def match(self, graph: gs.Graph, node: gs.Node) -> UnitRows | Refusal | None:
        """Look behind a length for its limit, and for what is divided by it."""
        found = _divided_by(node) if self._is_half else None
        return found and (refusal(found.quotient, _why_not(graph, found)) or found)

    def rewrite(self, editor: GraphEditor, match: UnitRows) -> None:
        """Write RMSNormalization with one scale for all elements."""
        ModernForms(RMS_NORM_OPSET).apply(editor.graph)
        output = match.quotient.outputs[0]
        shape = row_shape(match.values, match.axes) or []
        count = float(np.prod(shape))
        scale = editor.constant(
            f"{output.name}_scale", np.full(shape, count**-0.5), match.values.dtype
        )
        squared = match.epsilon**2 / count
        write_norm(editor, RMS_NORM, match.values, match.axes, squared, scale, None, match.quotient)


def _divided_by(length: gs.Node) -> UnitRows | None:
    axes = reduced_axes(length)
    if axes is None or not length.attrs.get("keepdims", 1):
        return None
    values, nodes = length.inputs[0], [length]
    for limit in length.outputs[0].outputs:
        epsilon = _least(limit)
        if epsilon is None:
            continue
        for reader in limit.outputs[0].outputs:
            between = [limit]
            if reader.op == "Expand" and len(reader.outputs[0].outputs) == 1:
                between.append(reader)
                reader = reader.outputs[0].outputs[0]
            if reader.op == "Div" and reader.inputs[0] is values:
                return UnitRows(values, axes, epsilon, [*nodes, *between], reader)
    return None


def _least(node: gs.Node) -> float | None:
    """What a node limits its input to from below, if it does nothing else."""
    if node.op == "Clip":
        return uniform(given(node, 1)) if given(node, 2) is None else None
    sides = split_constant(node) if node.op == "Max" else None
    return None if sides is None else uniform(sides[1])


def _why_not(graph: gs.Graph, found: UnitRows) -> str | None:
    if not 0.0 <= found.epsilon <= _LARGEST_EPSILON:
        return (
            f"rows of '{found.values.name}' may be as short as their limit {found.epsilon:g} is, "
            f"which is more than {_LARGEST_EPSILON:g}"
        )
    turned = made_by(found.values, "Transpose")
    perm = permutation(turned) if turned is not None else None
    if perm is not None and perm[-1] != len(perm) - 1:
        return f"the elements of a row of '{found.values.name}' are not side by side"
    return why_not_rows(
        graph, found.values, found.axes, found.nodes, found.quotient
    ) or why_too_old(graph)
