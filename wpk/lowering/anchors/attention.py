"""Attention: a body of two products with a softmax between them.

Its nodes are read in three pieces, each of which keeps to the grammar of bodies: what makes the
scores, what happens to the weights, and the product of weights and values with the views behind it.
"""

from collections.abc import Mapping, Sequence
from math import prod

import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.expression import Acc, Apply, Expression, Operand, Round, Scalar
from wpk.extent import Extent
from wpk.lowering.anchors.attention_rows import in_rows, windows_of_orders
from wpk.lowering.anchors.base import LoweredProblem, epilogue_of, only_view
from wpk.lowering.anchors.pieces import until
from wpk.lowering.batch_axes import batched
from wpk.lowering.body import OperatorBody, ShapeRule, read_body
from wpk.lowering.context import Context
from wpk.lowering.free_axis import extent_of, is_free
from wpk.lowering.refusal import RefusedError
from wpk.lowering.symbols import Computation, Symbol
from wpk.lowering.views import View, contiguous_strides
from wpk.problems import Attention, Epilogue

_WEIGHTS = "the weights of attention"
_BATCH_AXES = 2


class AttentionBody:
    """A body that is attention, read."""

    def __init__(
        self,
        body: OperatorBody,
        inputs: Mapping[str, Symbol],
        context: Context,
        shapes: Mapping[str, ShapeRule],
    ) -> None:
        """Read the three pieces.

        Raises:
            RefusedError: A piece does not follow the grammar.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        body, orders = in_rows(body, inputs, context)
        softmax, product = _anchors(body)
        scores, weights, p = softmax.inputs[0].name, softmax.outputs[0].name, product.inputs[0].name
        self.context = context
        self.scores = read_body(until(body, scores), inputs, context, shapes)
        if self.scores.anchor is None or self.scores.steps:
            raise RefusedError("scores that are not those of a product, in its shape")
        shape, leading = self.scores.shape, self.scores.leading
        self.weights = View(_WEIGHTS, DType.FP32, leading, shape, contiguous_strides(shape))
        known = {**inputs, weights: self.weights}
        between = read_body(until(body, p, weights), known, context, shapes)
        self.empty_rows_are_zero = _is_guarded(between)
        known = {**inputs, p: self.weights}
        self.result = read_body(until(body, body.output, p), known, context, shapes)
        self.windows = windows_of_orders(orders, int(softmax.inputs[0].shape[-1]) if orders else 0)

    def lower(self, y: View) -> LoweredProblem:
        """Return the problem.

        Args:
            y: The output's memory, seen with the shape of the last product.

        Raises:
            RefusedError: wpk does not carry it.
            NotAViewError: A tensor's memory layout stands in the way.
        """
        first, last = self.scores.anchor, self.result.anchor
        assert first is not None
        assert last is not None
        q, across = (only_view(each, "an operand of the scores") for each in first.inputs[:2])
        rank = len(across.shape)
        k = across.transposed((*range(rank - 2), rank - 1, rank - 2))
        if last.inputs[0] != self.weights:
            raise RefusedError("weights of attention that something else works on")
        v = only_view(last.inputs[1], "the values of attention")
        sharing = _sharing(k, v, y)
        views = (q, k, v, y, *self.scores.operands, *self.result.operands)
        q, k, v, y, *operands = self._in_batches(views, sharing)
        lengths = q.shape[2], k.shape[2]
        free = any(map(is_free, lengths))
        if free and self.result.operands:
            raise RefusedError("tensors behind attention whose rows are free")
        count, is_bare = len(self.scores.operands), _bare(self.result.expression) == Acc()
        masks, of_result = operands[:count], operands[count:]
        problem = Attention(
            precision=self.context.compute_precision(v.dtype),
            batch=(y.leading, y.shape[1]),
            queries=q.shape[2],
            keys=k.shape[2],
            depth=q.shape[3],
            width=v.shape[3],
            q=q.tensor(),
            k=k.tensor(),
            v=v.tensor(),
            scores=Epilogue(self.scores.expression, tuple(mask.tensor() for mask in masks)),
            empty_rows_are_zero=self.empty_rows_are_zero,
            y=y.tensor(),
            free_queries=extent_of(lengths[0]) if free else None,
            free_keys=extent_of(lengths[1]) if free else None,
            sharing=sharing if sharing > 1 else None,
            epilogue=None if is_bare else epilogue_of(self.result, y, of_result),
            windows=self.windows,
        )
        return LoweredProblem(problem, (q, k, v, *operands))

    def _in_batches(self, views: Sequence[View], sharing: int) -> Sequence[View]:
        """Queries, keys, values, the output and operands with two batch axes before each matrix."""
        y = views[3]
        if self.windows is not None:
            axes = prod(y.shape[:-3]), y.shape[-3]
            wide = [view.broadcast((*y.shape[:-2], *view.shape[-2:]), y.leading) for view in views]
            return [view.reshaped((*axes, *view.shape[-2:])) for view in wide]
        if sharing == 1:
            return batched(views, y.shape[:-2], y.leading)
        of_keys = (*y.shape[:-3], 1)
        batches = [of_keys if place in (1, 2) else y.shape[:-2] for place in range(len(views))]
        return [_heads(view, each, y.leading) for view, each in zip(views, batches, strict=True)]


def is_attention(body: OperatorBody) -> bool:
    """Tell whether a body holds a softmax between two products."""
    ops = [node.op for node in body.nodes]
    return ops.count("Softmax") == 1 and ops.count("MatMul") == 2


def _anchors(body: OperatorBody) -> tuple[gs.Node, gs.Node]:
    """The softmax and the product that reads its weights."""
    softmax = next(node for node in body.nodes if node.op == "Softmax")
    before = {node.name for node in until(body, softmax.outputs[0].name).nodes}
    last = [node for node in body.nodes if node.op == "MatMul" and node.name not in before]
    if len(last) != 1:
        raise RefusedError("a softmax that is not between two products")
    return softmax, last[0]


def _is_guarded(weights: Computation) -> bool:
    """Whether weights that are no numbers become 0.

    Raises:
        RefusedError: Something else happens to them.
    """
    expression = _bare(weights.expression)
    if weights.steps or weights.shape != weights.operands[0].shape:
        raise RefusedError("weights of attention that are viewed in another shape")
    if expression == Operand(0):
        return False
    match expression:
        case Apply("Where", (Apply("IsNan", (Operand(0),)), Scalar(0.0), Operand(0))):
            return True
    raise RefusedError("weights of attention that something else works on")


def _bare(expression: Expression) -> Expression:
    """Remove roundings: kernels round weights to what they multiply, and bare results to their type."""
    match expression:
        case Round(dtype, argument) if dtype.is_float:
            return _bare(argument)
        case Apply(operation, arguments):
            return Apply(operation, tuple(_bare(each) for each in arguments))
    return expression


def _sharing(k: View, v: View, y: View) -> int:
    """How many heads read one head of keys and values: those of the last batch axis, which both lack."""
    batch = y.shape[:-2]
    if len(batch) <= _BATCH_AXES:
        return 1
    lacking = (len(each.shape) == len(y.shape) and each.shape[-3] == 1 for each in (k, v))
    return batch[-1] if all(lacking) else 1


def _heads(view: View, batch: tuple[int, ...], leading: Extent) -> View:
    """Return a view with two batch axes before each matrix: the first, and all others."""
    wide = view.broadcast((*batch, *view.shape[-2:]), leading)
    return wide.reshaped((batch[0], prod(batch[1:]), *view.shape[-2:]))
