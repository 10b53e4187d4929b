"""Selections of boxes: a body of one NonMaxSuppression, and what writes its rows where they have a place."""

from collections.abc import Mapping

import numpy as np

from wpk.extent import Extent
from wpk.lowering.anchors.base import LoweredProblem, constant_values, only_view
from wpk.lowering.body import OperatorBody
from wpk.lowering.context import Context
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Symbol
from wpk.lowering.views import View
from wpk.problems import BoxSelection

_OPERATOR = "NonMaxSuppression"


def is_box_selection(body: OperatorBody) -> bool:
    """Tell whether a body is what `wpk.graph_passes` makes of a NonMaxSuppression."""
    return len(body.nodes) > 1 and any(node.op == _OPERATOR for node in body.nodes)


class BoxSelectionBody:
    """A body that is a selection, read.

    Attributes:
        shape: Of what it gives: a row for each box that may be selected.
        leading: The first extent of that.
    """

    def __init__(self, body: OperatorBody, inputs: Mapping[str, Symbol], context: Context) -> None:
        """Find the operator among what places its rows.

        Raises:
            RefusedError: It is something else.
        """
        self._node = next(node for node in body.nodes if node.op == _OPERATOR)
        self._inputs, self._context = inputs, context
        self._boxes, self._scores = self._operand(0), self._operand(1)
        if self._boxes.leading.free or self._scores.leading.free:
            raise RefusedError("boxes of a free batch")
        self.shape = tuple(int(n) for n in body.nodes[-1].outputs[0].shape)
        self.leading = Extent(self.shape[0])

    def lower(self, y: View) -> LoweredProblem:
        """Return the problem.

        Args:
            y: The output's memory.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        batch, classes, count = self._scores.shape
        most = self.shape[0] // (batch * classes)
        overlap, threshold = (self._number(place) for place in (3, 4))
        problem = BoxSelection(
            centred=bool(self._node.attrs.get("center_point_box", 0)),
            overlap=overlap or 0.0,
            threshold=threshold,
            batch_size=Extent(batch),
            classes=classes,
            count=count,
            most=most,
            boxes=self._boxes.tensor(),
            scores=self._scores.tensor(),
            y=y.reshaped((batch, classes, most, 3)).tensor(),
        )
        return LoweredProblem(problem, (self._boxes, self._scores))

    def _operand(self, place: int) -> View:
        return only_view(self._inputs.get(self._node.inputs[place].name), f"input {place}")

    def _number(self, place: int) -> float | None:
        """The value of a constant input; None where it is not given."""
        tensor = self._node.inputs[place] if place < len(self._node.inputs) else None
        if tensor is None or tensor.is_empty():
            return None
        if tensor.name in self._inputs:
            values = constant_values(self._inputs[tensor.name], self._context, f"input {place}")
        else:
            values = np.asarray(tensor.values)
        return float(values.reshape(-1)[0]) if values.size else None
