"""Tensors that are known before a run: constants, and what follows from them."""

from collections.abc import Iterable

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import is_op, made_by, producer, static_shape


def is_constant(tensor: gs.Tensor) -> bool:
    """Tell whether a tensor is a constant, or an optional input that is absent."""
    return isinstance(tensor, gs.Constant) or bool(tensor.is_empty())


def stored(tensor: gs.Tensor) -> gs.Tensor | None:
    """Return what a Constant node holds that makes ``tensor``, as bodies have them; else the tensor."""
    maker = made_by(tensor, "Constant")
    return tensor if maker is None else maker.attrs.get("value")


def follows_from_constants(
    tensor: gs.Tensor, also: Iterable[gs.Tensor] = (), *, free_sizes: bool = False
) -> bool:
    """Tell whether only constants and sizes go into a tensor.

    Args:
        tensor: It may be made by any number of nodes.
        also: Tensors that are known, too.
        free_sizes: Whether sizes that a run chooses are known.
    """
    waiting, seen = [tensor], {id(each) for each in also}
    while waiting:
        each = waiting.pop()
        if is_constant(each) or id(each) in seen:
            continue
        seen.add(id(each))
        maker = producer(each)
        if maker is None:
            return False
        is_size = is_op(maker, "Shape", "Size")
        if not is_size or not (free_sizes or static_shape(maker.inputs[0]) is not None):
            waiting.extend(maker.inputs)
    return True
