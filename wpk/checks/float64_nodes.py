"""Evaluate ONNX nodes one at a time in float64 through `onnx.reference.ReferenceEvaluator`."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
import onnx.reference.ops  # else imported when it is first needed, perhaps beside threads
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference_ops import REFERENCE_OPS
from wpk.dtypes import DType

Array = NDArray[np.generic]

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)


def widened(array: Array) -> Array:
    """Floating point as float64, the array itself where it is; anything else as it is."""
    if array.dtype.kind == "f" or array.dtype.name == "bfloat16":
        return array.astype(np.float64, copy=False)
    return array


class NodeEvaluator:
    """One node of a model, ready to be evaluated on several inputs.

    Casts to a floating point type give float64: the reference rounds only where values lie in
    memory, which is its caller's business.

    Attributes:
        node: The node as it is evaluated.
        cast_type: The 16-bit type that it casts to, if it does.
    """

    def __init__(self, node: onnx.NodeProto, opsets: Mapping[str, int]) -> None:
        """Prepare.

        Args:
            node: A node of ONNX's own domain.
            opsets: Versions of the domains.
        """
        self.node = _widened_node(node)
        self.cast_type = _cast_type(node)
        self.inputs = [name for name in node.input if name]
        self._evaluator = ReferenceEvaluator(
            _graph_of(self.node), opsets=dict(opsets), new_ops=list(REFERENCE_OPS)
        )

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """The node's outputs.

        Args:
            arrays: One for each input; None where an optional one is missing.
        """
        feed = {
            name: array
            for name, array in zip(self.node.input, arrays, strict=True)
            if name and array is not None
        }
        with np.errstate(all="ignore"):
            outputs = self._evaluator.run(None, feed)
        return [widened(np.asarray(output)) for output in outputs]


def _cast_type(node: onnx.NodeProto) -> DType | None:
    """The 16-bit type that a Cast rounds to; None for anything else."""
    if node.op_type != "Cast":
        return None
    target = next(a.i for a in node.attribute if a.name == "to")
    return {TensorProto.FLOAT16: DType.FP16, TensorProto.BFLOAT16: DType.BF16}.get(target)


def _graph_of(node: onnx.NodeProto) -> onnx.GraphProto:
    names = dict.fromkeys(name for name in node.input if name)
    undefined = onnx.TypeProto()
    return onnx.helper.make_graph(
        [node],
        "node",
        [onnx.helper.make_value_info(name, undefined) for name in names],
        [onnx.helper.make_value_info(name, undefined) for name in node.output if name],
    )


def _widened_node(node: onnx.NodeProto) -> onnx.NodeProto:
    wide = onnx.NodeProto()
    wide.CopyFrom(node)
    for attribute in wide.attribute:
        if node.op_type == "Cast" and attribute.name == "to" and attribute.i in _FLOATS:
            attribute.i = TensorProto.DOUBLE
        elif attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type in _FLOATS:
            values = widened(numpy_helper.to_array(attribute.t))
            attribute.t.CopyFrom(numpy_helper.from_array(values))
    return wide
