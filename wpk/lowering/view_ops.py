"""ONNX operators that only change how memory is seen, read as functions on views."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.dtypes import DType, from_numpy
from wpk.lowering.free_axis import broadcast_shapes, is_free
from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import View
from wpk.model_checks import MAX_ELEMENTS

Parameters = Sequence[NDArray[Any] | None]

OPERATORS = {
    "Transpose",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Expand",
    "Slice",
    "Identity",
}


def parameters(
    node: gs.Node, values: Callable[[gs.Tensor], NDArray[Any] | None]
) -> list[NDArray[Any] | None]:
    """Return the inputs behind the first one: None where one is left out.

    Args:
        node: A view operator.
        values: The values of a tensor; None where they are not constant.

    Raises:
        RefusedError: One is not constant.
    """
    found: list[NDArray[Any] | None] = []
    for index, tensor in enumerate(node.inputs[1:], start=1):
        known = values(tensor) if tensor.name else None
        if tensor.name and known is None:
            raise RefusedError(f"{node.op}: input {index + 1} ('{tensor.name}') must be constant")
        found.append(known)
    return found


def read(node: gs.Node, shape: tuple[int, ...], parameters: Parameters) -> Callable[[View], View]:
    """Return what the node does to a view of the given shape.

    Raises:
        RefusedError: A parameter is not constant, or means something that strides cannot say.
    """
    match node.op:
        case "Identity":
            return lambda view: view
        case "Transpose":
            perm = [int(p) for p in node.attrs.get("perm", range(len(shape))[::-1])] or [0]
            return lambda view: view.transposed(perm)
        case "Expand":
            return _expand(shape, _ints(node, parameters, 0))
        case "Slice":
            return _slice(node, shape, parameters)
    new = new_shape(node, shape, parameters)
    return lambda view: view.reshaped(new)


def new_shape(node: gs.Node, shape: tuple[int, ...], parameters: Parameters) -> tuple[int, ...]:
    """Return the shape after Reshape, Flatten, Squeeze or Unsqueeze; scalars have shape (1,)."""
    match node.op:
        case "Reshape":
            return _reshape(shape, _ints(node, parameters, 0), bool(node.attrs.get("allowzero", 0)))
        case "Flatten":
            axis = int(node.attrs.get("axis", 1))
            axis = axis + len(shape) if axis < 0 else axis
            return (prod(shape[:axis]), prod(shape[axis:]))
        case "Squeeze":
            return _squeezed(shape, _axes(node, parameters, len(shape)))
        case "Unsqueeze":
            given = node.attrs["axes"] if "axes" in node.attrs else _ints(node, parameters, 0)
            if node.inputs[0].shape is not None and not list(node.inputs[0].shape):
                shape = ()  # a scalar, which has shape (1,) in memory
            rank = len(shape) + len(given)
            places = {int(a) % rank for a in given}
            rest = iter(shape)
            return tuple(1 if i in places else next(rest) for i in range(rank))
    raise RefusedError(f"{node.op} is no view operator")


def _ints(node: gs.Node, parameters: Parameters, index: int) -> list[int]:
    values = parameters[index] if index < len(parameters) else None
    if values is None:
        raise RefusedError(f"{node.op} without its input {index + 2}")
    return [int(v) for v in np.asarray(values).reshape(-1)]


def _axes(node: gs.Node, parameters: Parameters, rank: int) -> list[int] | None:
    given = node.attrs.get("axes")
    if given is None and parameters and parameters[0] is not None:
        given = np.asarray(parameters[0]).reshape(-1)
    return None if given is None else [int(a) % rank for a in given]


def _reshape(shape: tuple[int, ...], target: list[int], allow_zero: bool) -> tuple[int, ...]:
    new = [shape[i] if n == 0 and not allow_zero else n for i, n in enumerate(target)]
    if -1 in new:
        new[new.index(-1)] = prod(shape) // max(1, prod(n for n in new if n != -1))
    if prod(new) != prod(shape):
        raise RefusedError(
            f"Reshape from {shape} to {tuple(target)} changes the number of elements"
        )
    return tuple(new) or (1,)


def _squeezed(shape: tuple[int, ...], axes: list[int] | None) -> tuple[int, ...]:
    if axes is None and any(is_free(n) for n in shape):
        raise RefusedError("Squeeze of all axes of size 1, of which a free one may be one")
    drop = [i for i, n in enumerate(shape) if n == 1] if axes is None else axes
    if any(shape[i] != 1 for i in drop):
        raise RefusedError(f"Squeeze of axes {drop} of shape {shape}, which are not all of size 1")
    return tuple(n for i, n in enumerate(shape) if i not in drop) or (1,)


def _expand(shape: tuple[int, ...], target: list[int]) -> Callable[[View], View]:
    new = broadcast_shapes(shape, tuple(target))

    def apply(view: View) -> View:
        same = view.shape[0] == new[0] and len(view.shape) == len(new)
        return view.broadcast(new, view.leading if same else type(view.leading)(new[0]))

    return apply


def _slice(node: gs.Node, shape: tuple[int, ...], parameters: Parameters) -> Callable[[View], View]:
    starts, ends = _ints(node, parameters, 0), _ints(node, parameters, 1)
    axes = _ints(node, parameters, 2) if _has(parameters, 2) else list(range(len(starts)))
    steps = _ints(node, parameters, 3) if _has(parameters, 3) else [1] * len(starts)
    cuts = []
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise RefusedError("Slice with starts, ends, axes and steps of different lengths")
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 1:
            raise RefusedError("Slice with a negative step")
        size = shape[axis]
        begin = 0 if start <= -MAX_ELEMENTS else start
        first, stop, _ = slice(begin, size if end >= MAX_ELEMENTS else end, step).indices(size)
        cuts.append((axis % len(shape), first, max(0, -(-(stop - first) // step)), step))
    if any(count == 0 for _, _, count, _ in cuts):
        raise RefusedError("Slice that is empty")

    def apply(view: View) -> View:
        for axis, first, count, step in cuts:
            if (first, count, step) != (0, view.shape[axis], 1):
                view = view.sliced(axis, first, count, step)
        return view

    return apply


def _has(parameters: Parameters, index: int) -> bool:
    return index < len(parameters) and parameters[index] is not None


def cast_target(node: gs.Node) -> DType:
    """Return the element type that a Cast makes.

    Raises:
        RefusedError: wpk has no such type.
    """
    to = node.attrs["to"]
    code = int(to) if isinstance(to, int) else onnx.helper.np_dtype_to_tensor_dtype(np.dtype(to))
    if not code or code not in onnx.TensorProto.DataType.values():
        raise RefusedError(f"Cast to type {code}, which ONNX does not have")
    target = from_numpy(np.dtype(onnx.helper.tensor_dtype_to_np_dtype(code)))
    if target is None:
        raise RefusedError(f"Cast to {onnx.TensorProto.DataType.Name(code)}")
    return target
