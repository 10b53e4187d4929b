"""Let attention read one head of keys and values for several heads of queries.

    K = Reshape(Expand(k)), V = Reshape(Expand(v))      k, v of G heads, each repeated R times
    MatMul(softmax(s(MatMul(q, K^T))), V)   ->   the same with heads as [G, R], of k and v themselves

Exact: a product broadcasts what it multiplies. Grouped-query attention is exported so (Ainslie et al.,
"GQA", arXiv 2305.13245): keys and values are then not copied for every head, and the kernel of attention
reads each head of them where it lies.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.kinds import is_elementwise
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    is_graph_output,
    is_op,
    made_by,
    same_dims,
    uniform,
)
from wpk.graph_passes.core.reshape_target import reshape_target
from wpk.graph_passes.fusion.attention import MAX_HEAD
from wpk.graph_passes.movement.chains.views import Factor, trace, views_before

_HEADS, _RANK = 1, 4


@dataclass(frozen=True)
class _Repeated:
    """Heads that stand for several each.

    Attributes:
        heads: Of [batch, groups, 1, rows, columns].
        groups: How many there are.
        times: How often each is repeated.
        is_turned: Whether rows and columns changed places behind the repetition.
    """

    heads: gs.Tensor
    groups: int
    times: int
    is_turned: bool


@dataclass(frozen=True)
class _Attention:
    """An attention of repeated heads.

    Attributes:
        scores: The first product.
        between: Element-wise nodes and the softmax, in order.
        values: The last product.
        keys_repeated: The second operand of the first product.
        values_repeated: The second operand of the last one.
    """

    scores: gs.Node
    between: list[gs.Node]
    values: gs.Node
    keys_repeated: _Repeated
    values_repeated: _Repeated


class GroupedHeads(Rule[_Attention]):
    """Give heads of queries that share keys and values a dimension of their own."""

    name = "grouped-heads"
    ops = ("Softmax",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Attention | Refusal | None:
        """Match a softmax between two products, whose second operands repeat as many heads."""
        before, behind = _back(node.inputs[0]), _forth(node)
        if before is None or behind is None:
            return None
        scores, *links = before
        *others, values = behind
        found = [_repeated(product.inputs[1]) for product in (scores, values)]
        if found[0] is None or found[1] is None:
            return None
        match = _Attention(scores, [*links, node, *others], values, found[0], found[1])
        return refusal(node, _why_not(graph, match)) or match

    def rewrite(self, editor: GraphEditor, match: _Attention) -> None:
        """Write both products, and what stands between them, with one dimension more."""
        scores, values = match.scores, match.values
        made: dict[int, gs.Tensor] = {}
        queries = _apart(editor, scores.inputs[0], match.keys_repeated)
        operand = _operand(editor, match.keys_repeated)
        made[id(scores.outputs[0])] = _written(editor, match, scores, [queries, operand])
        for node in match.between:
            inputs = [
                made[id(tensor)] if id(tensor) in made else _beside(editor, tensor, match)
                for tensor in node.inputs
            ]
            made[id(node.outputs[0])] = _written(editor, match, node, inputs)
        weights, operand = made[id(values.inputs[0])], _operand(editor, match.values_repeated)
        output = values.outputs[0]
        grouped = _written(editor, match, values, [weights, operand])
        target = reshape_target(dims(grouped), dims(output))
        shape = editor.constant(f"{output.name}_heads", np.array(target, np.int64))
        editor.replace(output, editor.add("Reshape", [grouped, shape], like=output))


def _back(tensor: gs.Tensor) -> list[gs.Node] | None:
    """Return the product that makes scores, and the element-wise nodes behind it; None without one."""
    product = made_by(tensor, "MatMul")
    if product is not None:
        return [product]
    node = tensor.inputs[0] if tensor.inputs else None
    if node is None or not is_elementwise(node):
        return None
    for source in node.inputs:
        path = _back(source) if same_dims(dims(source), dims(tensor)) else None
        if path is not None:
            return [*path, node]
    return None


def _forth(softmax: gs.Node) -> list[gs.Node] | None:
    """Return what makes weights of a softmax, and the product that reads them; None without one.

    The weights are rounded, or those that are no numbers become 0: what attention's kernels do.
    """
    nodes: list[gs.Node] = []
    tensor = softmax.outputs[0]
    while True:
        readers = list({id(each): each for each in tensor.outputs}.values())
        if len(readers) == 1 and is_op(readers[0], "MatMul") and readers[0].inputs[0] is tensor:
            return [*nodes, readers[0]]
        step = (
            readers if len(readers) == 1 and is_op(readers[0], "Cast") else _guard(tensor, readers)
        )
        if step is None:
            return None
        nodes.extend(step)
        tensor = step[-1].outputs[0]


def _guard(tensor: gs.Tensor, readers: list[gs.Node]) -> list[gs.Node] | None:
    """Return the nodes of ``Where(IsNaN(p), 0, p)``; None where others read ``p``."""
    test, choice = (
        next((each for each in readers if is_op(each, op)), None) for op in ("IsNaN", "Where")
    )
    if test is None or choice is None or len(readers) != 2:
        return None
    condition, instead, otherwise = choice.inputs
    guards = condition is test.outputs[0] and uniform(instead) == 0.0 and otherwise is tensor
    return [test, choice] if guards else None


def _repeated(tensor: gs.Tensor) -> _Repeated | None:
    """Read a tensor as repeated heads, behind views; None where it is none."""
    chain = views_before(tensor)
    expanded = made_by(chain[0].inputs[0], "Expand") if chain else None
    views = trace(chain[0].inputs[0], chain) if chain else None
    if expanded is None or views is None:
        return None
    heads, wide = dims(expanded.inputs[0]) or [], list(views.source)
    if len(heads) != _RANK + 1 or len(wide) != len(heads) or len(views.target) != _RANK:
        return None
    groups, times = wide[_HEADS], wide[_HEADS + 1]
    if not isinstance(groups, int) or not isinstance(times, int) or times < 2:
        return None
    if not same_dims(heads, [*wide[: _HEADS + 1], 1, *wide[_HEADS + 2 :]]):
        return None
    outer, group, time, row, column = (
        () if size == 1 else (Factor(axis, size),)
        for axis, size in enumerate(wide)
        if size is not None
    )
    for is_turned, matrix in enumerate(((row, column), (column, row))):
        if views.groups == (outer, group + time, *matrix):
            return _Repeated(expanded.inputs[0], groups, times, bool(is_turned))
    return None


def _why_not(graph: gs.Graph, match: _Attention) -> str | None:
    keys, values = match.keys_repeated, match.values_repeated
    softmax = next(node for node in match.between if node.op == "Softmax")
    if softmax.attrs.get("axis", -1) not in (-1, _RANK - 1):
        return "the softmax is not along the last axis"
    if (keys.groups, keys.times) != (values.groups, values.times):
        return f"keys are repeated {keys.times} times, values {values.times} times"
    queries, result = match.scores.inputs[0], match.values.outputs[0]
    if any(len(dims(t) or []) != _RANK for t in (queries, result)):
        return f"queries or results have another number of dimensions than {_RANK}"
    if any(isinstance(t, gs.Constant) for t in (queries, keys.heads, values.heads)):
        return "queries, keys or values are constant"
    heads = [(dims(t) or [])[_HEADS] for t in (queries, result)]
    if heads != [keys.groups * keys.times] * 2:
        return f"there are {heads[0]} heads of queries, and {keys.groups * keys.times} of keys"
    widths = [(dims(t) or [None])[-1] for t in (queries, result)]
    if any(not isinstance(width, int) or width > MAX_HEAD for width in widths):
        return f"heads of {widths[0]} and {widths[1]} elements are not computed in one kernel"
    inner = [match.scores.outputs[0], *(node.outputs[0] for node in match.between)]
    path = {id(tensor) for tensor in inner}
    for node in match.between:
        for tensor in node.inputs:
            if id(tensor) not in path and _beside_dims(tensor, keys) is None:
                return f"'{tensor.name}' of {dims(tensor)} has no place beside groups of heads"
    outside = {id(node) for node in (*match.between, match.values)}
    for tensor in inner:
        if is_graph_output(graph, tensor) or any(id(r) not in outside for r in tensor.outputs):
            return f"'{tensor.name}' is read elsewhere"
    targets = (
        reshape_target(dims(queries), _apart_dims(dims(queries) or [], keys)),
        reshape_target(_apart_dims(dims(result) or [], keys), dims(result)),
    )
    if None in targets:
        return "no constant target takes the heads apart for every batch"
    return None


def _apart_dims(shape: Dims, repeated: _Repeated) -> Dims:
    """A shape of four dimensions whose heads, if there are several, are taken apart into groups."""
    heads: Dims = [1, 1] if shape[_HEADS] == 1 else [repeated.groups, repeated.times]
    return [*shape[:_HEADS], *heads, *shape[_HEADS + 1 :]]


def _beside_dims(tensor: gs.Tensor, repeated: _Repeated) -> Dims | None:
    """The shape in which a tensor stands beside groups of heads; None where it cannot."""
    shape = dims(tensor)
    if tensor.is_empty():
        return []
    if shape is None or len(shape) > _RANK:
        return None
    if len(shape) < _RANK - 1:
        return shape
    padded: Dims = [*[1] * (_RANK - len(shape)), *shape]
    if padded[_HEADS] not in (1, repeated.groups * repeated.times):
        return None
    apart = _apart_dims(padded, repeated)
    return apart if reshape_target(shape, apart) is not None else None


def _beside(editor: GraphEditor, tensor: gs.Tensor, match: _Attention) -> gs.Tensor:
    """A tensor that the softmax's neighbours read, in that shape."""
    shape = _beside_dims(tensor, match.keys_repeated)
    if tensor.is_empty() or shape is None or same_dims(shape, dims(tensor)):
        return tensor
    return _reshaped(editor, tensor, shape)


def _apart(editor: GraphEditor, queries: gs.Tensor, repeated: _Repeated) -> gs.Tensor:
    return _reshaped(editor, queries, _apart_dims(dims(queries) or [], repeated))


def _reshaped(editor: GraphEditor, tensor: gs.Tensor, shape: Dims) -> gs.Tensor:
    target = np.array(reshape_target(dims(tensor), shape), np.int64)
    sizes = editor.constant(f"{tensor.name}_groups", target)
    return editor.add("Reshape", [tensor, sizes], like=tensor, shape=shape)


def _operand(editor: GraphEditor, repeated: _Repeated) -> gs.Tensor:
    """Heads of keys or values as a product reads them."""
    if not repeated.is_turned:
        return repeated.heads
    shape = dims(repeated.heads) or []
    turned = [*shape[:-2], shape[-1], shape[-2]]
    attrs = {"perm": [0, 1, 2, 4, 3]}
    return editor.add("Transpose", [repeated.heads], like=repeated.heads, shape=turned, attrs=attrs)


def _written(
    editor: GraphEditor, match: _Attention, node: gs.Node, inputs: Sequence[gs.Tensor]
) -> gs.Variable:
    """A node with heads in groups."""
    output = node.outputs[0]
    shape = _apart_dims(dims(output) or [], match.keys_repeated)
    attrs = dict(node.attrs)
    if node.op == "Softmax":
        attrs["axis"] = -1
    return editor.add(node.op, inputs, like=output, shape=shape, attrs=attrs)
