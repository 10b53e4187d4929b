"""Evaluate ONNX nodes one at a time in float64 through `onnx.reference.ReferenceEvaluator`."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.reference.ops  # else imported when it is first needed, perhaps beside threads
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from wpk.blocks import by_blocks
from wpk.checks.node_parts import evaluated
from wpk.checks.reference.operators import REFERENCE_OPS
from wpk.dtypes import DType, is_float
from wpk.lowering.flat_graph import read_names
from wpk.reused_memory import empty

Array = NDArray[np.generic]

_FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)

_TYPES = (("Cast", "to"), ("Attention", "softmax_precision"))
"""Attributes that name the type in which a node gives or computes numbers."""


def widened(array: Array) -> Array:
    """Return floating point numbers as float64, without a copy where they are; anything else as it is."""
    if not is_float(array.dtype) and array.dtype.name != "bfloat16":
        return array
    if array.dtype == np.float64 or not array.flags.c_contiguous:
        return np.asarray(array, np.float64)
    wide, flat = empty(array.shape, np.float64), array.reshape(-1)
    written = wide.reshape(-1)
    by_blocks(flat.size, lambda block: np.copyto(written[block], flat[block]))
    return wide


class NodeEvaluator:
    """One node of a model, ready to be evaluated on several inputs.

    Everything is float64. Where values lie in memory they round, which is the caller's business; at
    casts only if it is asked for.

    Attributes:
        node: The node as it is evaluated.
        cast_type: The narrower type that it casts to, if it does.
        opset: Version of ONNX's own domain.
    """

    def __init__(
        self,
        node: onnx.NodeProto,
        opsets: Mapping[str, int],
        *,
        narrows: bool = False,
        in_double: bool = False,
    ) -> None:
        """Prepare.

        Args:
            node: A node of ONNX's own domain.
            opsets: Versions of the domains.
            narrows: Whether a cast rounds to the 16-bit type that it names, as kernels do.
            in_double: Whether it is computed in fp64, from which a cast to fp32 rounds as well.
        """
        self.node = _widened_node(node)
        apart = told_apart(self.node)
        self.cast_type = cast_type(node, in_double=in_double)
        self._narrow = self.cast_type if narrows else None
        self._names = read_names(apart)
        self.inputs = [name for name in read_names(node) if name]
        self.opset = opsets[""]
        self._outputs = [name for name in apart.output if name]
        self._evaluator = ReferenceEvaluator(
            _graph_of(apart), opsets=dict(opsets), new_ops=[*REFERENCE_OPS]
        )
        (self._operator,) = self._evaluator.rt_nodes_
        _widen_attributes(self._operator, apart)

    def __call__(self, arrays: Sequence[Array | None]) -> list[Array]:
        """The node's outputs, computed on all cores where that pays.

        Args:
            arrays: One for each of `read_names`; None where an optional input is missing.
        """
        keeps_all = _keeps_all(self.node, arrays)
        if keeps_all and self._narrow is None:
            return [each for each in arrays if each is not None]
        return evaluated(self.node, arrays, self._narrowed if keeps_all else self._part)

    def _part(self, arrays: Sequence[Array | None]) -> list[Array]:
        with np.errstate(all="ignore"):
            return self._narrowed(self._computed(arrays))

    def _narrowed(self, outputs: Sequence[Array | None]) -> list[Array]:
        """The outputs, rounded where it is a cast that rounds."""
        found = [np.asarray(each) for each in outputs]
        if self._narrow is not None:
            with np.errstate(all="ignore"):
                found = [each.astype(self._narrow.numpy) for each in found]
        return [widened(each) for each in found]

    def _computed(self, arrays: Sequence[Array | None]) -> Sequence[Array]:
        """The outputs that have a name; those of a node without subgraphs take a sixth of the time without the evaluator around it."""
        if self._operator.need_context():
            named = zip(self._names, arrays, strict=True)
            results: Any = self._evaluator.run(None, {n: a for n, a in named if a is not None})
            return list(results)
        found = dict(zip(self._operator.output, self._operator.run(*arrays), strict=False))
        return [found[name] for name in self._outputs]


def _keeps_all(node: onnx.NodeProto, arrays: Sequence[Array | None]) -> bool:
    """Whether a node gives its operand as it is: a cast to a floating point type of what is float64 already."""
    if node.op_type != "Cast" or arrays[0] is None or arrays[0].dtype != np.float64:
        return False
    return int(next(a.i for a in node.attribute if a.name == "to")) == TensorProto.DOUBLE


def told_apart(node: onnx.NodeProto) -> onnx.NodeProto:
    """Return a node that reads each of its inputs by a name of its own, so that each can be given an array."""
    apart = onnx.NodeProto()
    apart.CopyFrom(node)
    for place, name in enumerate(node.input):
        if name and name in node.input[:place]:
            apart.input[place] = f"{name}, input {place}"
    return apart


def _widen_attributes(operator: OpRun, node: onnx.NodeProto) -> None:
    """Let an operator compute with its attributes in float64; onnx gives it numbers of fp32, defaults too."""
    for name, value in list(vars(operator).items()):
        if isinstance(value, np.float32):
            setattr(operator, name, float(value))
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.FLOAT and hasattr(operator, attribute.name):
            setattr(operator, attribute.name, float(attribute.f))


def cast_type(node: onnx.NodeProto, *, in_double: bool = False) -> DType | None:
    """Return the 16-bit type that a Cast rounds to, or fp32 in fp64; None for anything else."""
    if node.op_type != "Cast":
        return None
    types = {TensorProto.FLOAT16: DType.FP16, TensorProto.BFLOAT16: DType.BF16}
    if in_double:
        types[TensorProto.FLOAT] = DType.FP32
    return types.get(next(a.i for a in node.attribute if a.name == "to"))


def _graph_of(node: onnx.NodeProto) -> onnx.GraphProto:
    """Return a graph of one node; its inputs need no types, since they are fed by their names."""
    results = [onnx.helper.make_value_info(n, onnx.TypeProto()) for n in node.output if n]
    return onnx.helper.make_graph([node], "node", [], results)


def _widened_node(node: onnx.NodeProto) -> onnx.NodeProto:
    wide = onnx.NodeProto()
    wide.CopyFrom(node)
    for attribute in wide.attribute:
        if (node.op_type, attribute.name) in _TYPES and attribute.i in _FLOATS:
            attribute.i = TensorProto.DOUBLE
        elif attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type in _FLOATS:
            values = widened(numpy_helper.to_array(attribute.t))
            attribute.t.CopyFrom(numpy_helper.from_array(values))
        elif attribute.type == onnx.AttributeProto.GRAPH:
            _widen_graph(attribute.g)
    return wide


def _widen_graph(graph: onnx.GraphProto) -> None:
    for tensor in graph.initializer:
        if tensor.data_type in _FLOATS:
            values = widened(numpy_helper.to_array(tensor))
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
    for node in graph.node:
        node.CopyFrom(_widened_node(node))
