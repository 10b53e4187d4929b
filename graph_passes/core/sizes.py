"""Sizes that tensors of shape arithmetic hold: numbers, free dimensions, and products of both.

Concat(Gather(Shape(x), [0]), [1], Slice(Shape(y), [1], [3]))    x: [batch, 4], y: [batch, 8, sequence]
is known to hold batch, 1, 8, sequence
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import Dims, dims, given, integers, is_op, producer

_SAME = ("Squeeze", "Unsqueeze", "Cast", "Identity", "Reshape")


@dataclass(frozen=True)
class Size:
    """A number times free dimensions, each as often as it is named, sorted."""

    factor: int
    free: tuple[str, ...] = ()

    def times(self, other: "Size") -> "Size":
        """Return the product."""
        return Size(self.factor * other.factor, tuple(sorted(self.free + other.free)))


ZERO, ONE, _OPEN = Size(0), Size(1), Size(-1)


def product(sizes: tuple[Size, ...]) -> Size:
    """Return how many places dimensions of these sizes have."""
    total = ONE
    for size in sizes:
        total = total.times(size)
    return total


def known_sizes(shape: Dims | None) -> tuple[Size, ...] | None:
    """Return a shape as sizes; None where a dimension is not known."""
    if shape is None or any(size is None for size in shape):
        return None
    return tuple(Size(1, (n,)) if isinstance(n, str) else Size(int(n or 0)) for n in shape)


def size_of(tensor: gs.Tensor) -> Size | None:
    """Return the one size that a tensor of one element holds; None where it is not known."""
    sizes = sizes_in(tensor)
    return sizes[0] if sizes is not None and len(sizes) == 1 else None


def sizes_in(tensor: gs.Tensor) -> tuple[Size, ...] | None:
    """Return the sizes that a tensor holds; None where one is not known, or is below 0."""
    found = _numbers_in(tensor)
    return None if found is None or any(each.factor < 0 for each in found) else found


def reshaped_sizes(node: gs.Node, own: tuple[Size, ...] | None = None) -> tuple[Size, ...] | None:
    """Return the sizes that a Reshape gives; None where they are not known.

    Args:
        node: The Reshape.
        own: Sizes of what it reads, where its shape does not say them.
    """
    own = known_sizes(dims(node.inputs[0])) if own is None else own
    target = _numbers_in(node.inputs[1])
    if own is None or target is None or sum(each.factor < 0 for each in target) > 1:
        return None
    copies = not node.attrs.get("allowzero", 0)
    if any(each == ZERO and (not copies or place >= len(own)) for place, each in enumerate(target)):
        return None
    given = [own[place] if each == ZERO else each for place, each in enumerate(target)]
    left = divided(product(own), product(tuple(each for each in given if each.factor > 0)))
    if left is None or any(each.factor < 0 and each != _OPEN for each in given):
        return None
    return tuple(left if each == _OPEN else each for each in given)


def divided(whole: Size, part: Size) -> Size | None:
    """Return how often a size holds another one; None where that is no whole number of times."""
    free = list(whole.free)
    for each in part.free:
        if each not in free:
            return None
        free.remove(each)
    if part.factor == 0 or whole.factor % part.factor:
        return None
    return Size(whole.factor // part.factor, tuple(free))


def _numbers_in(tensor: gs.Tensor) -> tuple[Size, ...] | None:
    constant = integers(tensor)
    if constant is not None:
        return tuple(map(Size, constant))
    node = producer(tensor)
    if node is None:
        return None
    if is_op(node, *_SAME):
        return _numbers_in(node.inputs[0]) if len(tensor.shape or ()) < 2 else None
    rule = next((rule for op, rule in _RULES.items() if is_op(node, op)), None)
    return None if rule is None else rule(node)


def _of_shape(node: gs.Node) -> tuple[Size, ...] | None:
    shape = dims(node.inputs[0])
    start, end = int(node.attrs.get("start", 0)), node.attrs.get("end")
    return None if shape is None else known_sizes(shape[start : None if end is None else int(end)])


def _of_gather(node: gs.Node) -> tuple[Size, ...] | None:
    picks = integers(node.inputs[1])
    maker = producer(node.inputs[0])
    if maker is not None and is_op(maker, "Shape") and picks is not None and len(picks) == 1:
        return _one_of_shape(maker, picks[0])  # of a shape whose other sizes need not be known
    found = _numbers_in(node.inputs[0])
    if found is None or picks is None or node.attrs.get("axis", 0):
        return None
    if any(not -len(found) <= pick < len(found) for pick in picks):
        return None
    return tuple(found[pick] for pick in picks)


def _one_of_shape(node: gs.Node, pick: int) -> tuple[Size, ...] | None:
    start, end = int(node.attrs.get("start", 0)), node.attrs.get("end")
    found = (dims(node.inputs[0]) or [])[start : None if end is None else int(end)]
    return known_sizes([found[pick]]) if -len(found) <= pick < len(found) else None


def _of_slice(node: gs.Node) -> tuple[Size, ...] | None:
    found, bounds = _numbers_in(node.inputs[0]), [integers(given(node, index)) for index in (1, 2)]
    step = given(node, 4)
    if found is None or (step is not None and integers(step) != [1]):
        return None
    if any(bound is None or len(bound) != 1 for bound in bounds):
        return None
    start, end = (bound[0] for bound in bounds if bound is not None)
    return found[start:end]


def _of_concat(node: gs.Node) -> tuple[Size, ...] | None:
    found: tuple[Size, ...] = ()
    for each in node.inputs:
        part = _numbers_in(each)
        if part is None:
            return None
        found += part
    return found


def _of_mul(node: gs.Node) -> tuple[Size, ...] | None:
    left, right = (size_of(each) for each in node.inputs)
    return None if left is None or right is None else (left.times(right),)


_RULES: Mapping[str, Callable[[gs.Node], tuple[Size, ...] | None]] = {
    "Shape": _of_shape,
    "Gather": _of_gather,
    "Slice": _of_slice,
    "Concat": _of_concat,
    "Mul": _of_mul,
}
