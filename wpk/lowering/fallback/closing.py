"""A group of nodes as an ONNX model of its own, in types that ONNX Runtime executes."""

from collections.abc import Iterable, Sequence

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from onnx import TensorProto, numpy_helper

from wpk.closed_models import MAX_BYTES, subgraphs, walk
from wpk.graph_passes import RUNTIME_DOMAIN, open_session
from wpk.lowering.refusal import RefusedError

_exporter = gs.exporters.onnx_exporter
_NARROW = (TensorProto.FLOAT16, TensorProto.BFLOAT16)
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "stash_type", "softmax_precision")
_ORT_TYPES = {
    "tensor(float)": TensorProto.FLOAT,
    "tensor(double)": TensorProto.DOUBLE,
    "tensor(float16)": TensorProto.FLOAT16,
    "tensor(bfloat16)": TensorProto.BFLOAT16,
    "tensor(bool)": TensorProto.BOOL,
    "tensor(float8e4m3fn)": TensorProto.FLOAT8E4M3FN,
    "tensor(float8e5m2)": TensorProto.FLOAT8E5M2,
    "tensor(string)": TensorProto.STRING,
    **{f"tensor({n.lower()})": getattr(TensorProto, n) for n in
       ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")},
}  # fmt: skip


def is_fallback(node: gs.Node) -> bool:
    """Tell whether a node calls a function that ONNX Runtime executes."""
    return bool(node.domain == RUNTIME_DOMAIN)


def closed_model(
    function: gs.Function,
    inputs: Sequence[gs.Tensor],
    outputs: Sequence[gs.Tensor],
    kept: Sequence[gs.Tensor],
    constants: Sequence[TensorProto],
) -> onnx.ModelProto:
    """Return a function as a model that ONNX Runtime executes, its outputs typed.

    16-bit floats become fp32 where ONNX Runtime lacks an operator in their type; whoever gives and takes
    the tensors converts them.

    Args:
        function: The nodes.
        inputs: What the model is given, with types and shapes.
        outputs: What it gives first, with types and shapes.
        kept: What it gives then.
        constants: All else that the function reads.

    Raises:
        RefusedError: ONNX Runtime does not execute it, or it is too large for a model.
    """
    nodes = [_exporter.OnnxExporter.export_node(node) for node in function.nodes]
    if sum(each.ByteSize() for each in (*nodes, *constants)) > MAX_BYTES:
        raise RefusedError("its constants take more than 2 GiB, which no ONNX model can hold")
    graph = onnx.helper.make_graph(
        nodes,
        function.name,
        [_exporter.OnnxExporter.export_value_info_proto(each, True) for each in inputs],
        [
            *(_exporter.OnnxExporter.export_value_info_proto(each, True) for each in outputs),
            *(onnx.helper.make_empty_tensor_value_info(each.name) for each in kept),
        ],
        constants,
    )
    opsets = [onnx.helper.make_opsetid("", function.opset)]
    model = onnx.helper.make_model(graph, opset_imports=opsets)
    model.ir_version = onnx.helper.find_min_ir_version_for(opsets, ignore_unknown=True)
    model.producer_name = "wpk"
    return _executed(model)


def _executed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model, or the same in fp32, whichever ONNX Runtime takes; its outputs with their types."""
    reasons = []
    for form in _forms(model):
        try:
            session = open_session(form.SerializeToString())
        except Exception as error:  # onnxruntime's exceptions share no base class
            reasons.append(str(error).splitlines()[0].removeprefix("[ONNXRuntimeError] : ")[:200])
            continue
        for info, told in zip(form.graph.output, session.get_outputs(), strict=True):
            if told.type not in _ORT_TYPES:
                raise RefusedError(f"'{info.name}' is {told.type}, which cannot leave ONNX Runtime")
            info.type.tensor_type.elem_type = _ORT_TYPES[told.type]  # it may know no shape
        return form
    raise RefusedError(f"ONNX Runtime does not execute it either: {reasons[0]}")


def _forms(model: onnx.ModelProto) -> Iterable[onnx.ModelProto]:
    """The model as it is, unless nothing can give it what it reads; and in fp32 where that differs."""
    narrow = _narrow_types(model)
    if TensorProto.BFLOAT16 not in narrow:
        yield model
    if narrow:
        wide = onnx.ModelProto()
        wide.CopyFrom(model)
        _widen(wide.graph)
        yield wide


def _narrow_types(model: onnx.ModelProto) -> set[int]:
    """The 16-bit types of its inputs and constants, and of what its nodes say."""
    kinds = {each.type.tensor_type.elem_type for each in model.graph.input}
    kinds |= {each.data_type for each in model.graph.initializer}
    for node in walk(model.graph):
        kinds |= {each.i for each in node.attribute if each.name in _TYPE_ATTRIBUTES}
        kinds |= {each.t.data_type for each in node.attribute if each.HasField("t")}
    return kinds.intersection(_NARROW)


def _widen(graph: onnx.GraphProto) -> None:
    """Write fp32 for every 16-bit type, in subgraphs, too."""
    for info in (*graph.input, *graph.output, *graph.value_info):
        if info.type.tensor_type.elem_type in _NARROW:
            info.type.tensor_type.elem_type = TensorProto.FLOAT
    for tensor in graph.initializer:
        _widen_constant(tensor)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _NARROW:
                attribute.i = TensorProto.FLOAT
            if attribute.HasField("t"):
                _widen_constant(attribute.t)
        for inner in subgraphs(node):
            _widen(inner)


def _widen_constant(tensor: TensorProto) -> None:
    if tensor.data_type in _NARROW:
        values = numpy_helper.to_array(tensor).astype(np.float32)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
