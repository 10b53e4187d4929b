"""Questions that passes ask of a graph: who makes, who reads, which values are known."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core.exact import exact_values
from wpk.operators import OperatorKind, of_kind

ONNX_DOMAINS = (None, "", "ai.onnx")
RANDOM_OPS = (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)
REDUCTIONS = of_kind(OperatorKind.REDUCTION)

Dims = list[int | str | None]


FLOAT8 = (onnx.TensorProto.FLOAT8E4M3FN, onnx.TensorProto.FLOAT8E5M2)
"""Floating point of 8 bits that kernels read and write."""


def is_op(node: gs.Node | None, *ops: str) -> bool:
    """Whether ``node`` is one of the standard operators ``ops`` (not a function of that name)."""
    return node is not None and node.op in ops and node.domain in ONNX_DOMAINS


def producer(tensor: gs.Tensor) -> gs.Node | None:
    """Return the node that makes ``tensor``; None for graph inputs, constants, absent inputs."""
    return tensor.inputs[0] if tensor.inputs else None


def made_by(tensor: gs.Tensor, *ops: str) -> gs.Node | None:
    """Return the node that makes ``tensor`` when it is one of ``ops``, else None."""
    node = producer(tensor)
    return node if is_op(node, *ops) else None


def is_graph_output(graph: gs.Graph, tensor: gs.Tensor) -> bool:
    """Tell whether ``tensor`` leaves the graph."""
    return any(output is tensor for output in graph.outputs)


def used_outputs(graph: gs.Graph, node: gs.Node) -> list[gs.Tensor]:
    """Return the outputs of ``node`` that some node reads or that leave the graph."""
    return [t for t in node.outputs if t.outputs or is_graph_output(graph, t)]


def tensors_of(nodes: Iterable[gs.Node]) -> Iterator[gs.Tensor]:
    """Yield what nodes read and make, absent tensors included."""
    for node in nodes:
        yield from node.inputs
        yield from node.outputs


def why_shared(graph: gs.Graph, tensor: gs.Tensor) -> str | None:
    """Say why ``tensor`` cannot vanish into its reader: it is an output, or has other readers."""
    if is_graph_output(graph, tensor):
        return f"'{tensor.name}' is a graph output"
    if len(tensor.outputs) != 1:
        return f"'{tensor.name}' has {len(tensor.outputs)} readers"
    return None


def why_any_shared(graph: gs.Graph, tensors: Iterable[gs.Tensor]) -> str | None:
    """Say why one of the tensors cannot vanish into its reader."""
    reasons = (why_shared(graph, tensor) for tensor in tensors)
    return next((reason for reason in reasons if reason is not None), None)


def why_not_replace(graph: gs.Graph, old: gs.Tensor, new: gs.Tensor) -> str | None:
    """Say why the readers of ``old`` cannot read ``new``: a graph output must keep its name."""
    if not is_graph_output(graph, old):
        return None
    if not new.inputs:
        return f"'{old.name}' is a graph output and '{new.name}' is an input or a constant"
    if is_graph_output(graph, new):
        return f"'{old.name}' and '{new.name}' are both graph outputs"
    return None


def why_not_replace_all(
    graph: gs.Graph, pairs: Iterable[tuple[gs.Tensor, gs.Tensor]]
) -> str | None:
    """Say why the readers of one of the first tensors cannot read the second of its pair."""
    reasons = (why_not_replace(graph, old, new) for old, new in pairs)
    return next((reason for reason in reasons if reason is not None), None)


def pads(window: gs.Node) -> bool:
    """Tell whether a convolution or pooling pads, or computes how much it pads."""
    return any(window.attrs.get("pads", [])) or pads_by_itself(window)


def added_around(pad: gs.Node) -> tuple[list[int], list[int]] | str:
    """Return how many elements a Pad adds in front and behind along every axis, or why nobody knows; less than 0: it cuts."""
    counts, axes_input, count = integers(given(pad, 1)), given(pad, 3), rank(pad.inputs[0])
    if counts is None:
        return f"the padding '{pad.inputs[1].name}' is not constant"
    if count is None:
        return f"the rank of '{pad.inputs[0].name}' is unknown"
    axes = list(range(count)) if axes_input is None else integers(axes_input)
    if axes is None:
        return f"the axes '{pad.inputs[3].name}' are not constant"
    before, after = [0] * count, [0] * count
    for index, axis in enumerate(axes):
        before[axis], after[axis] = counts[index], counts[index + len(axes)]
    return before, after


def zeros_around(pad: gs.Node) -> tuple[list[int], list[int]] | None:
    """Return how many zeros a Pad adds in front and behind along every axis; None where it adds others, or cuts."""
    added, value = added_around(pad), given(pad, 2)
    if isinstance(added, str) or min([*added[0], *added[1]], default=0) < 0:
        return None
    if pad.attrs.get("mode", "constant") != "constant":
        return None
    return added if value is None or uniform(value) == 0.0 else None


def pads_by_itself(window: gs.Node) -> bool:
    """Tell whether a convolution or pooling computes how much it pads."""
    return window.attrs.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID")


def window_numbers(window: gs.Node, name: str, axes: int) -> list[int]:
    """Return what a window over some axes has for each, with what ONNX takes where the node says nothing.

    Args:
        window: A convolution, a pooling, or another operator whose windows lie as theirs.
        name: ``strides``, ``dilations``, ``output_padding``, or ``pads``: in front of all axes, then behind.
        axes: Of its space.
    """
    count = 2 * axes if name == "pads" else axes
    default = 1 if name in ("strides", "dilations") else 0
    return [int(number) for number in window.attrs.get(name) or [default] * count]


def given(node: gs.Node, index: int) -> gs.Tensor | None:
    """Return input ``index`` of ``node``; None when the optional input is absent."""
    if index >= len(node.inputs) or node.inputs[index].is_empty():
        return None
    return node.inputs[index]


def values(tensor: gs.Tensor | None) -> NDArray[np.generic] | None:
    """Return the values of a constant; None for variables and for types NumPy does not have."""
    if not isinstance(tensor, gs.Constant):
        return None
    if isinstance(tensor.dtype, int) or isinstance(tensor.export_dtype, int):
        return None
    array: NDArray[np.generic] = tensor.values
    return array


def holds_floats(tensor: gs.Tensor | None) -> bool:
    """Tell whether `floats` gives values; does not read them."""
    array = values(tensor)
    return array is not None and np.issubdtype(array.dtype, np.floating)


def floats(tensor: gs.Tensor | None) -> NDArray[np.float64] | None:
    """Return the values of a floating-point constant in float64, exact where known, else None."""
    return exact_values(tensor).astype(np.float64) if holds_floats(tensor) else None


def element_type(tensor: gs.Tensor) -> Any:
    """Return a tensor's type as graphsurgeon keeps it for variables."""
    return tensor.export_dtype if isinstance(tensor, gs.Constant) else tensor.dtype


def type_number(tensor: gs.Tensor) -> int:
    """Return the number that ONNX has for a tensor's type, which is known."""
    own = element_type(tensor)
    return int(own if isinstance(own, int) else onnx.helper.np_dtype_to_tensor_dtype(np.dtype(own)))


def is_float(tensor: gs.Tensor) -> bool:
    """Tell whether the type is a floating-point one that NumPy has."""
    dtype = tensor.dtype
    return not (dtype is None or isinstance(dtype, int)) and np.issubdtype(dtype, np.floating)


def integers(tensor: gs.Tensor | None) -> list[int] | None:
    """Return the values of an integer constant, flattened, else None."""
    array = values(tensor)
    if array is None or not np.issubdtype(array.dtype, np.integer):
        return None
    return [int(value) for value in array.reshape(-1)]


def uniform(tensor: gs.Tensor | None) -> float | None:
    """Return the one value that every element of a constant number has, else None."""
    array = values(tensor)
    if array is None or array.size == 0 or not np.issubdtype(array.dtype, np.number):
        return None
    first = array.reshape(-1)[0]
    return float(first) if bool((array == first).all()) else None


def dims(tensor: gs.Tensor) -> Dims | None:
    """Return the shape as far as it is known: numbers, symbols, None; None without a rank."""
    return None if tensor.shape is None else list(tensor.shape)


def static_shape(tensor: gs.Tensor) -> list[int] | None:
    """Return the shape when every dimension is a number, else None."""
    shape = dims(tensor)
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        return None
    return [int(dim) for dim in shape if isinstance(dim, int)]


def rank(tensor: gs.Tensor) -> int | None:
    """Return the number of dimensions, if known."""
    return None if tensor.shape is None else len(tensor.shape)


def same_dims(a: Dims | None, b: Dims | None) -> bool:
    """Tell whether two shapes are known to be equal: equal numbers, or the same symbol."""
    if a is None or b is None or len(a) != len(b):
        return False
    return all(x is not None and x == y for x, y in zip(a, b, strict=True))


def close(a: float | None, b: float, relative: float = 1e-6) -> bool:
    """Tell whether a constant read from a float32 graph is the number ``b`` (6 digits are kept)."""
    return a is not None and math.isclose(a, b, rel_tol=relative, abs_tol=0.0)


def split_constant(node: gs.Node) -> tuple[gs.Tensor, gs.Tensor] | None:
    """Split the operands of a binary node into (variable, constant), in whichever order."""
    if len(node.inputs) != 2:
        return None
    first, second = node.inputs
    if isinstance(second, gs.Constant) and not isinstance(first, gs.Constant):
        return first, second
    if isinstance(first, gs.Constant) and not isinstance(second, gs.Constant):
        return second, first
    return None


def live_nodes(graph: gs.Graph, *ops: str) -> Iterator[gs.Node]:
    """Yield the nodes of these operators while a pass edits: those that it detached are left out.

    Goes over a copy of the list; nodes added meanwhile wait for the next round.
    """
    for node in list(graph.nodes):
        if is_op(node, *ops) and node.outputs:
            yield node
