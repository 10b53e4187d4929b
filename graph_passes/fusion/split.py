"""Take parts of a tensor before its views instead of after them.

    Gather(Transpose(Reshape(x)), i)  ->  Transpose(Reshape(Slice(x)))
    Split(Transpose(Reshape(x)))      ->  Transpose(Reshape(Slice(x))), ...

Exporters compute query, key and value as one product, transpose the whole and then take it apart.
When the part is a range of one dimension of ``x``, the slice is a view of memory, and the views
after it go into the operators that read them: no transpose is left.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core.base import GraphPass, PassResult
from wpk.graph_passes.core.editor import GraphEditor
from wpk.graph_passes.core.kinds import VIEWS, is_anchor, is_elementwise
from wpk.graph_passes.core.query import dims, given, integers, is_op, live_nodes, producer, rank
from wpk.graph_passes.movement.shortest_views import Step, emit, shortest
from wpk.graph_passes.movement.views import Factor, Views, trace


@dataclass(frozen=True)
class _Part:
    """A range of one dimension, and the tensor that it becomes (without the dimension or with)."""

    output: gs.Tensor
    begin: int
    size: int
    dropped: bool


class SplitBeforeViews(GraphPass):
    """Swap Gather of one index, or Split, with the views that make what they take apart."""

    name = "split-before-views"

    def apply(self, graph: gs.Graph) -> PassResult:
        """Rewrite only chains that move elements: others are views of memory anyway."""
        result = PassResult()
        editor = GraphEditor(graph)
        for node in live_nodes(graph, "Gather", "Split"):
            chain = _views_before(node)
            views = trace(chain[0].inputs[0], chain) if chain else None
            if views is None or not views.moves():
                continue
            reason = _split(editor, node, chain[0].inputs[0], views)
            if reason is None:
                result.rewritten += 1
            else:
                result.refuse(node, reason)
        return result


def _views_before(node: gs.Node) -> list[gs.Node]:
    chain: list[gs.Node] = []
    maker = producer(node.inputs[0])
    while maker is not None and is_op(maker, *VIEWS):
        chain.insert(0, maker)
        maker = producer(maker.inputs[0])
    return chain


def _split(editor: GraphEditor, node: gs.Node, source: gs.Tensor, views: Views) -> str | None:
    """Rewrite, or say why not."""
    axis = int(node.attrs.get("axis", 0)) % len(views.target)
    group = views.groups[axis]
    if len(group) != 1 or not _is_outermost(group[0], views):
        return f"axis {axis} is no range of one dimension of '{source.name}'"
    parts = list(_parts(node, views.target[axis]))
    if not parts:
        return f"the parts that {node.op} takes are not constant"
    plans: list[tuple[_Part, list[Step]]] = []
    for part in parts:
        stranger = _reader_by_copy(part.output)
        if stranger is not None:
            return f"{stranger.op} '{stranger.name}' could not read the views in place"
        steps = shortest(_views_of_part(views, axis, part))
        if steps is None:
            return f"no constant target reshapes to {dims(part.output)} for every batch"
        plans.append((part, steps))
    for part, steps in plans:
        emit(editor, _slice(editor, source, group[0], part), part.output, steps)
    return None


def _reader_by_copy(tensor: gs.Tensor) -> gs.Node | None:
    """Return a reader, behind views, that would need a transpose of its own for each part."""
    for reader in tensor.outputs:
        if is_op(reader, *VIEWS):
            found = _reader_by_copy(reader.outputs[0])
            if found is not None:
                return found
        elif not is_anchor(reader) and not is_elementwise(reader):
            return reader
    return None


def _is_outermost(factor: Factor, views: Views) -> bool:
    whole = views.source[factor.axis]
    return isinstance(factor.size, int) and factor.size * factor.step == whole


def _parts(node: gs.Node, size: int | str | None) -> Iterator[_Part]:
    """Yield what ``node`` takes; nothing when that is not known."""
    if not isinstance(size, int):
        return
    if is_op(node, "Gather"):
        index = integers(node.inputs[1])
        if index is not None and rank(node.inputs[1]) == 0:
            yield _Part(node.outputs[0], index[0] % size, 1, dropped=True)
        return
    sizes = integers(given(node, 1)) if given(node, 1) is not None else _equal(node, size)
    begin = 0
    for output, part in zip(node.outputs, sizes or [], strict=False):
        yield _Part(output, begin, part, dropped=False)
        begin += part


def _equal(node: gs.Node, size: int) -> list[int]:
    """Return the sizes of a Split without sizes: equal, the last may be smaller."""
    count = len(node.outputs)
    step = -(-size // count)
    return [min(step, size - index * step) for index in range(count)]


def _views_of_part(views: Views, axis: int, part: _Part) -> Views:
    """Describe the views that are left between the slice of the source and the part."""
    factor = views.groups[axis][0]
    source = list(views.source)
    source[factor.axis] = part.size * factor.step
    left = (Factor(factor.axis, part.size, factor.step),) if part.size > 1 else ()
    groups, target = list(views.groups), list(views.target)
    if part.dropped:
        del groups[axis], target[axis]
    else:
        groups[axis], target[axis] = left, part.size
    return Views(tuple(source), tuple(target), tuple(groups))


def _slice(editor: GraphEditor, source: gs.Tensor, factor: Factor, part: _Part) -> gs.Variable:
    begin, end = part.begin * factor.step, (part.begin + part.size) * factor.step
    bounds = [
        editor.constant(f"{part.output.name}_{what}", np.array([value], np.int64))
        for what, value in (("begin", begin), ("end", end), ("axis", factor.axis))
    ]
    shape = dims(source) or []
    shape[factor.axis] = end - begin
    name = f"{part.output.name}_slice"
    return editor.add("Slice", [source, *bounds], like=source, shape=shape, name=name)
