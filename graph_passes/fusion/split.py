"""Take parts of a tensor before its views instead of after them.

    Gather(Transpose(Reshape(x)), i)  ->  Transpose(Reshape(Slice(x)))
    Split(Transpose(Reshape(x)))      ->  Transpose(Reshape(Slice(x))), ...

Exporters compute query, key and value as one product, transpose the whole and then take it apart.
When the part is a range of one dimension of ``x``, or of a factor of one, which a Reshape before the
slice then makes a dimension, the slice is a view of memory, and the views after it go into the operators
that read them: no transpose is left.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.kinds import VIEWS, is_anchor, is_elementwise
from wpk.graph_passes.core.query import Dims, dims, given, integers, is_op, rank
from wpk.graph_passes.core.reshape_target import reshape_target
from wpk.graph_passes.movement.chains.shortest_views import Step, emit, shortest
from wpk.graph_passes.movement.chains.views import Factor, Views, trace, views_before

_ALIGNED = 8
"""Elements of 16 bits, the narrowest that are computed with, that the widest access moves."""


@dataclass(frozen=True)
class _Part:
    """A range of one dimension, and the tensor that it becomes (without the dimension or with)."""

    output: gs.Tensor
    begin: int
    size: int
    dropped: bool


@dataclass(frozen=True)
class _Parts:
    """The parts of a tensor behind views, and the dimension of the source that they are ranges of.

    Attributes:
        source: What the views start from.
        target: The Reshape that makes the factor the outermost of a dimension; None where it is.
        shape: The source's, behind the Reshape.
        factor: The dimension, as far as the views leave it together.
        steps: For each part the views behind its slice.
    """

    source: gs.Tensor
    target: list[int] | None
    shape: Dims
    factor: Factor
    steps: list[tuple[_Part, list[Step]]]


class SplitBeforeViews(Rule[_Parts]):
    """Swap Gather of one index, or Split, with the views that make what they take apart."""

    name = "split-before-views"
    ops = ("Gather", "Split")

    def match(self, graph: gs.Graph, node: gs.Node) -> _Parts | Refusal | None:
        """Match only behind chains that move elements: others are views of memory anyway."""
        chain = views_before(node.inputs[0])
        views = trace(chain[0].inputs[0], chain) if chain else None
        if views is None or not views.moves():
            return None
        return _ranges(node, chain[0].inputs[0], views)

    def rewrite(self, editor: GraphEditor, match: _Parts) -> None:
        """Slice the source for each part, and view the slice."""
        source = match.source
        if match.target is not None:
            name = f"{source.name}_apart"
            sizes = editor.constant(f"{name}_shape", np.array(match.target, np.int64))
            source = editor.add(
                "Reshape", [source, sizes], like=source, shape=match.shape, name=name
            )
        for part, steps in match.steps:
            slice_of_source = _slice(editor, source, match.factor, part)
            emit(editor, slice_of_source, part.output, steps)


def _ranges(node: gs.Node, source: gs.Tensor, views: Views) -> _Parts | Refusal:
    """Read the parts that a node takes as ranges of a dimension of ``source``."""
    axis = int(node.attrs.get("axis", 0)) % len(views.target)
    target = None
    parts = list(_parts(node, views.target[axis]))
    if len(views.groups[axis]) == 1 and not _is_outermost(views.groups[axis][0], views):
        views = _apart(views, views.groups[axis][0], parts)
        target = reshape_target(dims(source), list(views.source))
    group = views.groups[axis]
    if len(group) != 1 or not _is_outermost(group[0], views):
        return Refusal(node.name, f"axis {axis} is no range of one dimension of '{source.name}'")
    if target is None and len(views.source) != len(dims(source) or []):
        reason = f"no constant target takes '{source.name}' apart for every batch"
        return Refusal(node.name, reason)
    if not parts:
        return Refusal(node.name, f"the parts that {node.op} takes are not constant")
    found: list[tuple[_Part, list[Step]]] = []
    for part in parts:
        stranger = _reader_by_copy(part.output)
        if stranger is not None:
            reason = f"{stranger.op} '{stranger.name}' could not read the views in place"
            return Refusal(node.name, reason)
        steps = shortest(_views_of_part(views, axis, part))
        if steps is None:
            reason = f"no constant target reshapes to {dims(part.output)} for every batch"
            return Refusal(node.name, reason)
        found.append((part, steps))
    return _Parts(source, target, list(views.source), group[0], found)


def _apart(views: Views, factor: Factor, parts: Sequence[_Part]) -> Views:
    """Describe the same views of the source with ``factor`` the outermost of a dimension.

    Only where sizes are known, and where every part begins at an aligned address, in every row where the rows of an
    image may come to lie in another order: others would be copied.
    """
    whole = views.source[factor.axis]
    if not isinstance(whole, int) or not isinstance(factor.size, int):
        return views
    is_row = factor.axis == len(views.source) - 1
    begins = [part.begin for part in parts] if is_row else [1]
    if any(begin * factor.step % _ALIGNED for begin in begins):
        return views
    inside = factor.size * factor.step

    def moved(other: Factor) -> Factor:
        if other.axis < factor.axis:
            return other
        if other.axis == factor.axis and other.step >= inside:
            return replace(other, step=other.step // inside)
        return replace(other, axis=other.axis + 1)

    front, back = views.source[: factor.axis], views.source[factor.axis + 1 :]
    source = (*front, whole // inside, inside, *back)
    groups = tuple(tuple(moved(each) for each in group) for group in views.groups)
    return Views(source, views.target, groups)


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
