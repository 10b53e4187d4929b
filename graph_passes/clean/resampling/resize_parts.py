"""Write resampling that has no kernel as selections and products, an axis after the other.

    Resize<mode = "nearest">(x)              ->  Gather of the places that are nearest
    Resize<mode = "cubic">(x), antialias     ->  x times a matrix of weights along the axis
    Resize<... "tf_crop_and_resize">(x)      ->  the same, and the value that stands for what lies outside

The weights are what onnx's evaluator makes of the unit vectors of one axis. Linear and nearest resampling of the
last two of four axes has a kernel and stays; of other numbers of axes see `resize_axes`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import Dims, floats, given, integers, is_float, rank, values

_LONGEST = 4096
"""Elements of an axis: a matrix of weights has at most as many squared, 64 MiB in fp32."""

_OUTSIDE = 2.0
_KERNEL_COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Along:
    """What happens along one axis.

    Attributes:
        axis: Which.
        weights: (output, input) weights.
        outside: Which places of the output lie outside of the input.
    """

    axis: int
    weights: Floats
    outside: NDArray[np.bool_]


@dataclass(frozen=True)
class _Parts:
    node: gs.Node
    axes: list[_Along]


class ResizeParts(Rule[_Parts]):
    """Replace a Resize of other modes, axes and policies than the kernel has."""

    name = "resize-parts"
    ops: ClassVar = ("Resize",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Parts | Refusal | None:
        """Match a Resize that lowering refuses and whose weights are constant."""
        if not is_rare(node):
            return None
        try:
            scales = _scales(node)
            axes = [_along(node, graph.opset, *each) for each in scales]
        except _NotConstantError as error:
            return Refusal(node.name, str(error))
        return _Parts(node, axes)

    def rewrite(self, editor: GraphEditor, match: _Parts) -> None:
        """Write selections or products, then what stands for what lies outside."""
        node, output = match.node, match.node.outputs[0]
        x, shape = node.inputs[0], list(node.inputs[0].shape)
        for each in match.axes:
            shape[each.axis] = len(each.weights)
            x = _resampled(editor, node, x, each, list(shape))
        if any(each.outside.any() for each in match.axes):
            outside = _mask(match.axes, len(shape))
            mask = editor.constant(f"{node.name}_outside", outside, np.bool_)
            value = np.array(float(node.attrs.get("extrapolation_value", 0.0)))
            filled = editor.constant(f"{node.name}_value", value, node.inputs[0].dtype)
            x = editor.add("Where", [mask, filled, x], like=output, shape=list(shape))
        if x is node.inputs[0]:
            x = editor.add("Identity", [x], like=output)
        editor.replace(output, x)


class _NotConstantError(Exception):
    """Why the weights are not known, in words."""


def _text(node: gs.Node, name: str, default: str) -> str:
    value = node.attrs.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


def is_rare(node: gs.Node) -> bool:
    """Whether lowering has no kernel for the node's form."""
    coordinates = _text(node, "coordinate_transformation_mode", "half_pixel")
    return (
        _text(node, "mode", "nearest") == "cubic"
        or bool(node.attrs.get("antialias", 0))
        or node.attrs.get("axes") is not None
        or _text(node, "keep_aspect_ratio_policy", "stretch") != "stretch"
        or coordinates not in _KERNEL_COORDINATES
    )


def _scales(node: gs.Node) -> list[tuple[int, int, int, float | None]]:
    """For every axis that changes: axis, sizes before and behind, scale (None where that is their ratio)."""
    x, output = node.inputs[0], node.outputs[0]
    if rank(x) is None or rank(output) is None:
        raise _NotConstantError(f"the rank of '{x.name}' is not known")
    if not is_float(x) and _text(node, "mode", "nearest") != "nearest":
        raise _NotConstantError(f"'{x.name}' is of type {x.dtype}")
    before, behind = list(x.shape), list(output.shape)
    axes = [int(axis) % len(before) for axis in node.attrs.get("axes", range(len(before)))]
    factors, sizes = floats(given(node, 2)), integers(given(node, 3))
    if factors is not None and factors.size == 0:
        factors = None
    if _crops(node) and given(node, 1) is not None and values(given(node, 1)) is None:
        raise _NotConstantError("the region that it looks at is not constant")
    if factors is None and sizes is None:
        raise _NotConstantError("neither its sizes nor its scales are constant")
    kept = _text(node, "keep_aspect_ratio_policy", "stretch")
    found = []
    for place, axis in enumerate(axes):
        old, new = before[axis], behind[axis]
        scale = None if factors is None else float(factors[place])
        if factors is None and kept != "stretch":
            scale = _common_scale(
                kept, [(before[a], n) for a, n in zip(axes, sizes or [], strict=True)]
            )
        if old == new and scale in (None, 1.0) and not _crops(node):
            continue
        if not isinstance(old, int) or not isinstance(new, int) or max(old, new) > _LONGEST:
            raise _NotConstantError(f"axis {axis} goes from {old} to {new} elements")
        found.append((axis, old, new, scale))
    return found


def _crops(node: gs.Node) -> bool:
    return _text(node, "coordinate_transformation_mode", "") == "tf_crop_and_resize"


def _common_scale(policy: str, pairs: list[tuple[Any, int]]) -> float:
    ratios = [new / old for old, new in pairs if isinstance(old, int)]
    return min(ratios) if policy == "not_larger" else max(ratios)


def _along(
    node: gs.Node, opset: int, axis: int, size: int, count: int, scale: float | None
) -> _Along:
    """The weights along an axis, from its unit vectors."""
    if _is_disputed(node, size, scale):
        raise _NotConstantError("ONNX's tests and ONNX Runtime differ for corners of a fraction")
    attributes = {key: node.attrs[key] for key in node.attrs if key not in _OF_ALL_AXES}
    parameters: dict[str, NDArray[Any]] = {"roi": _roi(node, axis)}
    if scale is None or int(np.float32(size) * np.float32(scale)) != count:
        parameters["sizes"] = np.array([size, count], np.int64)
    else:
        parameters["scales"] = np.array([1.0, scale])
    weights = _evaluated(opset, attributes, parameters, np.eye(size), 0.0).T
    seen = _evaluated(opset, attributes, parameters, np.zeros((size, size)), _OUTSIDE)[0]
    if len(weights) != count:
        raise _NotConstantError(f"axis {axis} has {count} elements, its scale gives {len(weights)}")
    return _Along(axis, weights, seen == _OUTSIDE)


_OF_ALL_AXES = ("axes", "keep_aspect_ratio_policy", "extrapolation_value")


def _is_disputed(node: gs.Node, size: int, scale: float | None) -> bool:
    aligned = _text(node, "coordinate_transformation_mode", "") == "align_corners"
    return aligned and scale is not None and abs(size * scale - round(size * scale)) > 1e-3


def _roi(node: gs.Node, axis: int) -> NDArray[Any]:
    """The part of two axes to look at: all of the first, and of the second what is asked for."""
    region = values(given(node, 1))
    if region is None or region.size == 0:
        return np.array([0.0, 0.0, 1.0, 1.0], np.float64)
    ranks = len(node.inputs[0].shape)
    axes = [int(each) % ranks for each in node.attrs.get("axes", range(ranks))]
    if axis not in axes:
        return np.array([0.0, 0.0, 1.0, 1.0], np.float64)
    flat, place = region.reshape(-1).astype(np.float64), axes.index(axis)
    return np.array([0.0, flat[place], 1.0, flat[place + len(axes)]])


def _evaluated(
    opset: int,
    attributes: Mapping[str, Any],
    parameters: Mapping[str, NDArray[Any]],
    x: Floats,
    outside: float,
) -> Floats:
    """What onnx's evaluator makes of a matrix along its second axis."""
    names = ["x", *(name if name in parameters else "" for name in ("roi", "scales", "sizes"))]
    resize = onnx.helper.make_node(
        "Resize", names, ["y"], extrapolation_value=outside, **dict(attributes)
    )
    ports = [onnx.helper.make_value_info(name, onnx.TypeProto()) for name in names if name]
    y = onnx.helper.make_value_info("y", onnx.TypeProto())
    graph = onnx.helper.make_graph([resize], "weights", ports, [y])
    evaluator = ReferenceEvaluator(graph, opsets={"": opset})
    (operator,) = evaluator.rt_nodes_
    operator.cubic_coeff_a = float(operator.cubic_coeff_a)  # else onnx computes in fp32
    (found,) = evaluator.run(None, {"x": x, **parameters})
    return np.asarray(found, np.float64)


def _resampled(
    editor: GraphEditor, node: gs.Node, x: gs.Tensor, along: _Along, shape: Dims
) -> gs.Tensor:
    """``x`` with an axis resampled, of this shape."""
    output, axis, last = node.outputs[0], along.axis, len(shape) - 1
    if _text(node, "mode", "nearest") == "nearest":
        index = editor.constant(f"{node.name}_places", along.weights.argmax(axis=1))
        return editor.add("Gather", [x, index], like=output, shape=shape, attrs={"axis": axis})
    if axis == last:
        weights = editor.constant(f"{node.name}_weights", along.weights.T, x.dtype)
        return editor.add("MatMul", [x, weights], like=output, shape=shape)
    order = [*(i for i in range(last + 1) if i != axis), axis]
    turned = editor.add(
        "Transpose", [x], like=output, shape=[x.shape[i] for i in order], attrs={"perm": order}
    )
    weights = editor.constant(f"{node.name}_weights", along.weights.T, x.dtype)
    product = editor.add("MatMul", [turned, weights], like=output, shape=[shape[i] for i in order])
    back = [order.index(i) for i in range(last + 1)]
    return editor.add("Transpose", [product], like=output, shape=shape, attrs={"perm": back})


def _mask(axes: list[_Along], count: int) -> NDArray[np.bool_]:
    """Where any axis lies outside, of a shape that broadcasts over ``count`` axes."""
    whole = np.zeros((1,) * count, np.bool_)
    for each in axes:
        shape = [1] * count
        shape[each.axis] = len(each.outside)
        whole = whole | each.outside.reshape(shape)
    return whole
