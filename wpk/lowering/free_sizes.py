"""Sizes at which free dimensions must be checked: beyond every constant that meets them.

A slice of four rows is the whole batch up to four, and a batch of one fits whatever is broadcast. So
a model is looked at with its tuned size, with a small odd one, and with an odd one above every number
that some node holds against the free axis.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes import Dims, dims, given, integers, is_op, made_by
from wpk.model_checks import MAX_ELEMENTS

_USUAL = (1, 3)
"""The tuned size, and one that no tile divides."""

_LEAST = 17
"""The largest size is at least this: above the 16 elements that the widest accesses move."""


def sizes_to_check(graph: gs.Graph) -> tuple[int, ...]:
    """Return the sizes, ascending.

    Args:
        graph: The model as loaded, before any pass, with its shapes inferred.
    """
    most = max(constants_that_meet(graph).values(), default=0) + 1
    return (*_USUAL, max(_LEAST, most + (most % 2 == 0)))


Assignment = Mapping[str, int]
"""A size for each free dimension."""


def assignments(
    sizes: Sequence[int], names: Iterable[str], limits: Mapping[str, tuple[int, int]]
) -> tuple[Assignment, ...]:
    """Return sizes for all free dimensions together, each within its limits.

    Several dimensions get different sizes, in turn, so that one that is taken for another shows.
    """
    found: list[Assignment] = []
    for turn in range(len(sizes)):
        dims = {
            name: _clipped(
                sizes[(turn + number) % len(sizes)], *limits.get(name, (1, MAX_ELEMENTS))
            )
            for number, name in enumerate(names)
        }
        if dims and dims not in found:
            found.append(dims)
    return tuple(found)


def _clipped(size: int, smallest: int, largest: int) -> int:
    return min(max(size, smallest), largest)


def constants_that_meet(graph: gs.Graph) -> dict[str, int]:
    """Return the largest number that meets a free axis in each node, by the node's name.

    Bounds that mean "to the end" do not count, and a size of 1 fits every batch.
    """
    found = {}
    for node in graph.nodes:
        numbers = [abs(number) for number in _numbers(node)]
        real = [number for number in numbers if 1 < number < MAX_ELEMENTS]
        if real:
            found[node.name] = max(real)
    return found


def _numbers(node: gs.Node) -> Iterator[int]:
    shape = dims(node.inputs[0]) if node.inputs else None
    places = {i for i, size in enumerate(shape or []) if isinstance(size, str)}
    rule = next((rule for op, rule in _RULES.items() if is_op(node, op)), None)
    if rule is not None:
        yield from rule(node, shape or [], places) if places else ()
    elif not is_op(node, *_BY_CHANNEL):
        yield from _broadcast(node)


def _broadcast(node: gs.Node) -> Iterator[int]:
    """Fixed sizes where another shape, counted from the back, has a free one."""
    shapes = _laid_together(node)
    for back in range(1, max(map(len, shapes), default=0) + 1):
        sizes = [shape[-back] for shape in shapes if len(shape) >= back]
        if any(isinstance(size, str) for size in sizes):
            yield from (size for size in sizes if isinstance(size, int))


def _laid_together(node: gs.Node) -> list[Dims]:
    """Return the shapes that broadcasting lays beside each other; of products those before the matrices."""
    if is_op(node, "MatMul"):
        return [shape[:-2] for shape in _shapes(node.inputs)]
    if is_op(node, "Gemm"):
        return _shapes([*node.outputs, *node.inputs[2:]])
    return _shapes(node.inputs)


def _shapes(tensors: Iterable[gs.Tensor]) -> list[Dims]:
    return [shape for t in tensors if not t.is_empty() and (shape := dims(t)) is not None]


def _slice(node: gs.Node, shape: Dims, places: set[int]) -> Iterator[int]:
    starts, ends = _integers(node, 1) or [], _integers(node, 2) or []
    axes = _integers(node, 3) or list(range(len(starts)))
    for start, end, axis in zip(starts, ends, axes, strict=False):
        if axis % len(shape) in places:
            yield from (start, end)


def _target(node: gs.Node, shape: Dims, places: set[int]) -> Iterator[int]:
    """Return the leading number of a target shape; the others stand for inner axes."""
    del shape, places
    yield from (_integers(node, 1) or [])[:1]


def _aligned(node: gs.Node, shape: Dims, places: set[int]) -> Iterator[int]:
    """Return the numbers of a target shape that is counted from the back."""
    target = _integers(node, 1) or []
    ahead = len(target) - len(shape)
    yield from (n for i, n in enumerate(target) if i - ahead in places)


def _pads(node: gs.Node, shape: Dims, places: set[int]) -> Iterator[int]:
    pads = _integers(node, 1) or []
    axes = _integers(node, 3) or list(range(len(shape)))
    for i, axis in enumerate(axes):
        if axis % len(shape) in places:
            yield from pads[i :: len(axes)]


def _along_axis(node: gs.Node, shape: Dims, places: set[int]) -> Iterator[int]:
    """Return indices, sizes of parts or a count along an axis, and the sizes of what lies beside it."""
    default = -1 if node.op == "TopK" else 0
    axis = int(node.attrs.get("axis", default)) % len(shape)
    if axis not in places:
        return
    for index, tensor in enumerate(node.inputs[1:], start=1):
        if node.op != "Concat":
            yield from _integers(node, index) or []
            continue
        size = (dims(tensor) or [None] * (axis + 1))[axis]
        yield from [size] if isinstance(size, int) else []


def _integers(node: gs.Node, index: int) -> list[int] | None:
    """The numbers of an input: a constant, or what a Constant node gives."""
    tensor = given(node, index)
    maker = made_by(tensor, "Constant") if tensor is not None else None
    if maker is None:
        return integers(tensor)
    value = next(iter(maker.attrs.values()))
    return integers(value) if isinstance(value, gs.Constant) else np.ravel(value).tolist()


_BY_CHANNEL = (
    *("BatchNormalization", "Conv", "ConvTranspose", "GroupNormalization"),
    *("InstanceNormalization", "LayerNormalization"),
)
"""Operators whose other inputs are weights, whose shapes are not laid beside the batch."""

_RULES: Mapping[str, Callable[[gs.Node, Dims, set[int]], Iterator[int]]] = {
    "Slice": _slice,
    "Reshape": _target,
    "Expand": _aligned,
    "Tile": _aligned,
    "Pad": _pads,
    "Gather": _along_axis,
    "Split": _along_axis,
    "Concat": _along_axis,
    "TopK": _along_axis,
}
