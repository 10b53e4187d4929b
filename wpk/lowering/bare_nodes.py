"""Nodes outside functions that are views, or copies where no view says it."""

import math

import numpy as np
import onnx_graphsurgeon as gs

from wpk.extent import Extent
from wpk.graph_passes import ONNX_DOMAINS, is_op
from wpk.lowering import view_ops
from wpk.lowering.free_axis import free_among
from wpk.lowering.free_rows import spread, take_first, take_free_part
from wpk.lowering.partition import element_type
from wpk.lowering.refusal import RefusedError
from wpk.lowering.shape_values import expanded
from wpk.lowering.state import LoweringState
from wpk.lowering.views import NotAViewError, View

ALIASES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Slice")


def lower_bare(state: LoweringState, node: gs.Node) -> bool:
    """Lower a node that needs no kernel, or only copies; False for any other node.

    Raises:
        RefusedError: wpk does not carry it.
        NotAViewError: A tensor's memory layout stands in the way.
    """
    if node.domain not in ONNX_DOMAINS:
        return False
    match node.op:
        case "Concat":
            _concat(state, node)
            return True
        case "Split":
            _split(state, node)
            return True
        case "Expand":
            return _expand(state, node)
        case "Gather":
            return _pick(state, node)
    return node.op in ALIASES and _alias(state, node)


def _concat(state: LoweringState, node: gs.Node) -> None:
    """Copy the inputs of a concatenation that do not already lie in its output."""
    parts = [state.view(t) for t in node.inputs]
    output = node.outputs[0]
    axis = int(node.attrs["axis"]) % len(parts[0].shape)
    leading = next((p.leading for p in parts if p.leading.free), parts[0].leading)
    if any(free_among(part.shape, [axis]) for part in parts if len(part.shape) > axis):
        raise RefusedError("Concat along the free dimension")
    if any(0 in part.shape for part in parts):
        raise RefusedError("Concat with an empty tensor")
    sizes = {part.shape[:axis] + part.shape[axis + 1 :] for part in parts}
    if len(sizes) > 1:
        raise RefusedError(f"Concat of shapes {', '.join(str(part.shape) for part in parts)}")
    total = sum(part.shape[axis] for part in parts)
    shape = (*parts[0].shape[:axis], total, *parts[0].shape[axis + 1 :])
    leading = Extent(total) if axis == 0 else leading
    home = state.memory.home(output.name, element_type(output), shape, leading)
    state.views[output.name] = home
    start = 0
    for tensor, part in zip(node.inputs, parts, strict=True):
        place = home.sliced(axis, start, part.shape[axis])
        start += part.shape[axis]
        if not _lies_at(state, part, place):
            name = f"{tensor.name}_to_{output.name}"
            state.copy_to(part, place, name, "a part of a concatenation")


def _lies_at(state: LoweringState, part: View, place: View) -> bool:
    values = state.memory.values
    if part.source not in values:
        return False
    a, b = values[part.source], values[place.source]
    where = [v.offset + w.offset * v.dtype.bytes for v, w in ((a, part), (b, place))]
    return a.buffer == b.buffer and where[0] == where[1] and _steps(part) == _steps(place)


def _steps(view: View) -> list[int]:
    """The strides along axes that have more than one element."""
    return [stride for size, stride in zip(view.shape, view.strides, strict=True) if size != 1]


def _split(state: LoweringState, node: gs.Node) -> None:
    """Make the parts of a Split views where they align, else copies."""
    source = state.view(node.inputs[0])
    axis = int(node.attrs.get("axis", 0)) % len(source.shape)
    start = 0
    for tensor, count in zip(node.outputs, _parts(state, node, source.shape[axis]), strict=True):
        part = source.sliced(axis, start, count)
        start += count
        if not tensor.name:
            continue
        if part.tensor().alignment >= min(16, source.tensor().alignment):
            state.views[tensor.name] = part
        else:
            state.copy(part, tensor.name, "a part of a split that does not align")


def _parts(state: LoweringState, node: gs.Node, size: int) -> list[int]:
    given = node.attrs.get("split")
    if given is None and len(node.inputs) > 1 and node.inputs[1].name:
        given = state.context.values(state.view(node.inputs[1]))
        if given is None:
            raise RefusedError("Split whose sizes are not constant")
    if given is not None:
        parts = [int(n) for n in np.asarray(given).reshape(-1)]
        if len(parts) != len(node.outputs) or sum(parts) != size or min(parts) < 1:
            raise RefusedError(f"Split of {size} into {parts}")
        return parts
    step = math.ceil(size / len(node.outputs))
    parts = [min(step, size - i * step) for i in range(len(node.outputs))]
    if min(parts) < 1:
        raise RefusedError(f"Split of {size} into {len(parts)} parts, some of which are empty")
    return parts


def _alias(state: LoweringState, node: gs.Node) -> bool:
    """Make the output another view of the input; return False where that needs a copy."""
    if is_op(node, "Slice") and node.outputs[0].name in state.plain:
        return False
    if take_free_part(state, node):
        return True
    parameters = view_ops.parameters(node, lambda t: state.context.values(state.view(t)))
    source = state.view(node.inputs[0])
    try:
        view = view_ops.read(node, source.shape, parameters)(source)
    except NotAViewError as obstacle:
        if obstacle.source not in state.plain and obstacle.source in state.memory.slots:
            raise
        return False
    if node.op == "Slice" and view.tensor().alignment < min(16, source.tensor().alignment):
        return False
    state.views[node.outputs[0].name] = view
    return True


def _expand(state: LoweringState, node: gs.Node) -> bool:
    """Expand of a constant: a view with stride 0; of rows by a free dimension a copy."""
    if spread(state, node):
        return True
    view, output = state.view(node.inputs[0]), node.outputs[0]
    if state.context.values(view) is None:
        return False
    state.views[output.name] = expanded(view, output.shape, state.free)
    return True


def _pick(state: LoweringState, node: gs.Node) -> bool:
    """Gather of one constant index: a slice without its axis; False for any other Gather."""
    index = node.inputs[1]
    if not isinstance(index, gs.Constant) or list(index.shape or []) != []:
        return False
    source = state.view(node.inputs[0])
    axis = int(node.attrs.get("axis", 0)) % len(source.shape)
    at = int(np.asarray(index.values).reshape(()))
    if free_among(source.shape, [axis]) is not None:
        return at == 0 and axis == 1 and take_first(state, node, source)
    size = source.shape[axis]
    if not -size <= at < size:
        raise RefusedError(f"Gather of element {at} of {size}")
    rest = (*source.shape[:axis], *source.shape[axis + 1 :]) or (1,)
    state.views[node.outputs[0].name] = source.sliced(axis, at % size, 1).reshaped(rest)
    return True
