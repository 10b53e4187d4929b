"""What a node makes of constants: ONNX Runtime's numbers, and onnx's where it has no kernel.

ONNX Runtime is what a whole engine is compared with, so its results are the model's own. onnx's
reference evaluator stands in for kernels that it lacks, and computes what fp32 would have rounded.
"""

from collections.abc import Mapping

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from wpk.dtypes import is_float
from wpk.graph_passes.clean.definitions.modern_forms import FLATTENING_OPS
from wpk.graph_passes.core.exact import exact_values
from wpk.graph_passes.core.query import values
from wpk.graph_passes.core.runtime import open_session, run_session

Array = NDArray[np.generic]

_IR_VERSION = 10
"""What the one-node models say; every ONNX Runtime since 1.18 reads it, whatever the opset."""


MOST_EXACT = 2**16
"""Elements of a result that is computed in float64, too: a scale, a grid of positions, a mask. The
rounding of larger ones, which are weights, is the model's own."""

_FLOATS = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


class NotEvaluatedError(Exception):
    """A node cannot be evaluated; the message says why, in words."""


def node_values(node: gs.Node, opset: int) -> list[Array]:
    """The outputs of a node whose inputs are all constant; empty ones where a name is missing.

    Args:
        node: Of ONNX's own domain, without subgraphs, not random.
        opset: Says which form of the operator it is.

    Raises:
        NotEvaluatedError: Neither evaluator has the operator, or one fails on these numbers.
    """
    model, arrays = _model(node, opset)
    try:
        session = open_session(model.SerializeToString(), threads=1)
        results: list[object] = list(run_session(session, arrays))
    except Exception as error:  # ONNX Runtime raises what pybind11 makes of C++
        results = _by_reference(node, opset, model, arrays, str(error))
    found = []
    for tensor in node.outputs:
        result = np.zeros(0) if tensor.is_empty() else results.pop(0)
        if not isinstance(result, np.ndarray | np.generic) or np.asarray(result).dtype == object:
            raise NotEvaluatedError(
                f"{node.op} gives '{tensor.name}', which is no tensor of numbers"
            )
        found.append(np.asarray(result))
    return found


def exact_node_values(node: gs.Node, opset: int, rounded: list[Array]) -> list[Array]:
    """The outputs of a node before anything is rounded: in float64, from its inputs' exact values.

    Args:
        node: See `node_values`.
        opset: See there.
        rounded: What it gave; stands where it is no floating point number, is big, or cannot be had
            otherwise.
    """
    if all(not _is_float(each) or each.size > MOST_EXACT for each in rounded):
        return rounded
    model, _ = _model(node, opset)
    _widen(model)
    given = {t.name: _widened(exact_values(t)) for t in node.inputs if not t.is_empty()}
    try:
        with np.errstate(all="ignore"):
            found = list(ReferenceEvaluator(model).run(None, given))
    except (
        Exception
    ):  # the evaluator raises whatever NumPy does; then the rounded ones are all there is
        return rounded
    named = iter(found)
    results = [np.zeros(0) if t.is_empty() else np.asarray(next(named)) for t in node.outputs]
    return [
        _widened(wide) if _is_alike(wide, each) else each
        for wide, each in zip(results, rounded, strict=True)
    ]


def _is_alike(wide: Array, rounded: Array) -> bool:
    """Whether a result can stand for a rounded one: in float64, or in the type that the operator names."""
    fits = wide.dtype in (np.dtype(np.float64), rounded.dtype)
    return _is_float(rounded) and fits and wide.shape == rounded.shape


def _widened(array: Array) -> Array:
    return array.astype(np.float64) if _is_float(array) else array


def _is_float(array: Array) -> bool:
    return is_float(array.dtype) or array.dtype == ml_dtypes.bfloat16


def _widen(model: onnx.ModelProto) -> None:
    """Let a model of one node compute in float64, also where it names its type."""
    for node in model.graph.node:
        for attribute in node.attribute:
            is_type = node.op_type == "Cast" and attribute.name == "to"
            if is_type and attribute.i in _FLOATS:
                attribute.i = onnx.TensorProto.DOUBLE
            if attribute.HasField("t") and attribute.t.data_type in _FLOATS:
                wide = _widened(onnx.numpy_helper.to_array(attribute.t))
                attribute.t.CopyFrom(onnx.numpy_helper.from_array(wide))
    for port in (*model.graph.input, *model.graph.output):
        port.type.ClearField("tensor_type")


def _by_reference(
    node: gs.Node, opset: int, model: onnx.ModelProto, arrays: Mapping[str, Array], before: str
) -> list[object]:
    refused = f"ONNX Runtime cannot run {node.op}: {_first_line(before)}"
    if node.op in FLATTENING_OPS and opset < 13:
        raise NotEvaluatedError(f"{refused}; onnx's evaluator has only the form of opset 13")
    try:
        with np.errstate(all="ignore"):  # infinities and NaN of a constant are the model's own
            return list(ReferenceEvaluator(model).run(None, dict(arrays)))
    except Exception as error:  # the evaluator raises whatever NumPy does
        raise NotEvaluatedError(
            f"{refused}; onnx's evaluator neither: {_first_line(str(error))}"
        ) from error


def _model(node: gs.Node, opset: int) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of the node alone, and its inputs."""
    exporter = gs.exporters.onnx_exporter
    tensors = {t.name: t for t in node.inputs if not t.is_empty()}
    inputs = [
        onnx.helper.make_tensor_value_info(t.name, exporter.dtype_to_onnx(t.dtype), t.shape)
        for t in tensors.values()
    ]
    outputs = [onnx.helper.make_empty_tensor_value_info(t.name) for t in node.outputs if t.name]
    proto = exporter.OnnxExporter.export_node(node)
    graph = onnx.helper.make_graph([proto], "folded", inputs, outputs)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", opset)], ir_version=_IR_VERSION
    )
    arrays = {name: array for name, t in tensors.items() if (array := values(t)) is not None}
    return model, arrays


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else "no reason given"
