"""What a node makes of constants: ONNX Runtime's numbers, and onnx's where it has no kernel.

ONNX Runtime is what a whole engine is compared with, so its results are the model's own. onnx's
reference evaluator stands in for kernels that it lacks.
"""

from collections.abc import Mapping

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator

from wpk.graph_passes.clean.modern_forms import FLATTENING_OPS
from wpk.graph_passes.core.query import values
from wpk.graph_passes.core.runtime import open_session

Array = NDArray[np.generic]

_IR_VERSION = 10
"""What the one-node models say; every ONNX Runtime since 1.18 reads it, whatever the opset."""


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
        results = list(open_session(model.SerializeToString(), threads=1).run(None, arrays))
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
