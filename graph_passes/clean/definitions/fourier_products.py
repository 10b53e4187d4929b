"""Write a discrete Fourier transform of a known length as a product with its matrix.

    DFT(x)  ->  Reshape(MatMul(Reshape(x, [..., n c]), m), [..., k, 2])      c = 1: real x; c = 2: complex x

Real and imaginary parts are numbers of one row, so that one matrix of cosines and sines says the whole
transform. Such transforms stand in encoders of text and sound, whose lengths are short.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, dims, given, integers, is_float

LONGEST = 2048
"""Elements of a transform: the matrix has the square of it, and a fast transform would be far ahead."""


@dataclass(frozen=True)
class _Transform:
    """A DFT of ``length`` elements along ``axis``, of which it gives the first ``kept``."""

    node: gs.Node
    axis: int
    length: int
    kept: int


class FourierProducts(Rule[_Transform]):
    """Replace DFT by MatMul."""

    name = "fourier-products"
    ops = ("DFT",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Transform | Refusal:
        """Match a transform over all of an axis of known size."""
        found = _read(node, graph.opset)
        return Refusal(node.name, found) if isinstance(found, str) else found

    def rewrite(self, editor: GraphEditor, match: _Transform) -> None:
        """Bring the axis beside the parts, multiply, and bring it back."""
        node, to = match.node, NodeParts(editor, match.node)
        x, output = node.inputs[0], node.outputs[0]
        shape = list(dims(x) or [])
        last, parts = len(shape) - 1, int(shape[-1] or 1)
        order = [*(axis for axis in range(last) if axis != match.axis), match.axis, last]
        if order != sorted(order):
            shape = [shape[axis] for axis in order]
            x = to.transposed(x, order)
        outer: Dims = shape[:-2]
        x = to.reshaped(x, [*outer, match.length * parts])
        matrix = _matrix(match, parts, inverse=bool(node.attrs.get("inverse", 0)))
        weights = editor.constant(f"{node.name}_matrix", matrix, output.dtype)
        rows: Dims = [*outer, 2 * match.kept]
        x = to.add("MatMul", x, weights, shape=rows, like=output)
        x = to.reshaped(x, [*outer, match.kept, 2])
        if order != sorted(order):
            back = [order.index(axis) for axis in range(len(order))]
            x = to.transposed(x, back)
        editor.replace(output, x)


def _read(node: gs.Node, opset: int) -> _Transform | str:
    shape = dims(node.inputs[0])
    axes = integers(given(node, 2)) if given(node, 2) is not None else None
    default = 1 if opset < 20 else -2
    axis = int(node.attrs.get("axis", default)) if axes is None else axes[0]
    if shape is None or not all(isinstance(size, int) for size in shape[1:]) or len(shape) < 2:
        return f"'{node.inputs[0].name}' has shape {shape}: all but the batch must be known"
    if given(node, 2) is not None and axes is None:
        return "its axis is not constant"
    axis %= len(shape)
    length, parts = shape[axis], shape[-1]
    if not isinstance(length, int):
        return f"axis {axis} of '{node.inputs[0].name}' is free"
    if given(node, 1) is not None and integers(given(node, 1)) != [length]:
        return "its length is not that of the axis"
    one_sided = bool(node.attrs.get("onesided", 0))
    if (
        parts not in (1, 2)
        or axis == len(shape) - 1
        or (one_sided and (parts == 2 or _inverts(node)))
    ):
        return "it gives real numbers, or half of the numbers of a complex signal"
    if length > LONGEST or not is_float(node.inputs[0]):
        return (
            f"it has {length} elements of {node.inputs[0].dtype} (up to {LONGEST} are multiplied)"
        )
    return _Transform(node, axis, length, length // 2 + 1 if one_sided else length)


def _inverts(node: gs.Node) -> bool:
    return bool(node.attrs.get("inverse", 0))


def _matrix(match: _Transform, parts: int, *, inverse: bool) -> NDArray[np.float64]:
    """What rows of (element, part) are multiplied with to give rows of (frequency, part)."""
    turns = np.outer(np.arange(match.length), np.arange(match.kept)) % match.length
    angles = turns * (2 * np.pi / match.length) * (1 if inverse else -1)
    scale = 1 / match.length if inverse else 1.0
    real, imaginary = np.cos(angles) * scale, np.sin(angles) * scale
    of_real = np.stack([real, imaginary], -1)
    of_imaginary = np.stack([-imaginary, real], -1)
    whole = np.stack([of_real, of_imaginary][:parts], 1)
    return whole.reshape(match.length * parts, 2 * match.kept)
