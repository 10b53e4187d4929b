"""A call of a group as an operator: a model, and the tensors that go in and out of it."""

import hashlib
from dataclasses import replace

import onnx
import onnx_graphsurgeon as gs
from onnx import numpy_helper

from wpk.closed_models import element_type_of
from wpk.graph_passes import called
from wpk.lowering.fallback.closing import closed_model
from wpk.lowering.free_axis import extent_of, joined, sized_extent
from wpk.lowering.partition import element_type
from wpk.lowering.program import Operator
from wpk.lowering.refusal import RefusedError
from wpk.lowering.state import LoweringState
from wpk.lowering.views import View
from wpk.problems import Crossing, Fallback

_exporter = gs.exporters.onnx_exporter.OnnxExporter


def lower_fallback(state: LoweringState, call: gs.Node, note: str) -> None:
    """Lower the call of a group: give its outputs their places, and emit its operator.

    Args:
        state: What was lowered so far.
        call: Of a function that ONNX Runtime executes.
        note: Why no kernel does.

    Raises:
        RefusedError: ONNX Runtime does not execute it either.
    """
    function = called(state.graph, call)
    given = [t for t in call.inputs if not _is_constant(state, t)]
    constants = [_constant(state, t) for t in call.inputs if _is_constant(state, t)]
    placed = [t for t in call.outputs if _has_place(state, t)]
    kept = [t for t in call.outputs if not _has_place(state, t)]
    for tensor in given:
        if tensor.name not in state.kept and state.view(tensor).source in state.context.constants:
            state.copy(state.view(tensor), tensor.name, "a constant that is repeated")
    ports = [gs.Variable(t.name, t.dtype) if t.name in state.kept else t for t in given]
    results = [gs.Variable(t.name, t.dtype, state.sure_dims(t)) for t in placed]
    model = closed_model(function, ports, results, kept, constants)
    views = [_home(state, tensor) for tensor in placed]
    for tensor, info in zip(kept, model.graph.output[len(placed) :], strict=True):
        _keep(state, tensor, info)
    data = model.SerializeToString(deterministic=True)
    digest = hashlib.sha256(data).hexdigest()
    state.models[digest] = data
    problem = Fallback(
        digest,
        tuple(node.op_type for node in model.graph.node),
        tuple(_read(state, tensor) for tensor in given),
        tuple(_crossing(state, *pair) for pair in zip(placed, views, strict=True)),
    )
    names = tuple(node.name for node in function.nodes)
    inputs = tuple(t.name if t.name in state.kept else state.source(state.view(t)) for t in given)
    outputs = tuple(tensor.name for tensor in (*placed, *kept))
    state.operators.append(Operator(call.name, names, problem, inputs, outputs, call.name, note))


def _is_constant(state: LoweringState, tensor: gs.Tensor) -> bool:
    """Tell whether a tensor is a constant, or a view of one."""
    if isinstance(tensor, gs.Constant):
        return True
    return tensor.name in state.views and state.context.values(state.views[tensor.name]) is not None


def _constant(state: LoweringState, tensor: gs.Tensor) -> onnx.TensorProto:
    if isinstance(tensor, gs.Constant):
        given: onnx.TensorProto = _exporter.export_tensor_proto(tensor)
        return given
    values = state.context.values(state.views[tensor.name])
    assert values is not None
    shape = [] if tensor.shape is not None and not list(tensor.shape) else values.shape
    return numpy_helper.from_array(values.reshape(shape), tensor.name)


def _read(state: LoweringState, tensor: gs.Tensor) -> Crossing | None:
    if tensor.name in state.kept:
        return None
    return _crossing(state, tensor, state.view(tensor))


def _crossing(state: LoweringState, tensor: gs.Tensor, view: View) -> Crossing:
    is_scalar = tensor.shape is not None and not list(tensor.shape)
    extents = () if is_scalar else map(extent_of, view.shape)
    shape = tuple(sized_extent(extent, state.free).expression for extent in extents)
    inner, strides = joined(view.source, view.shape, view.strides)
    flat = replace(view, leading=extent_of(inner[0]), shape=inner, strides=strides)
    leading = sized_extent(flat.leading, state.free)
    return Crossing(flat.tensor(), leading, flat.shape[1:], shape)


def _has_place(state: LoweringState, tensor: gs.Tensor) -> bool:
    """Tell whether a tensor can lie in the device's memory: its type is held, and its shape known."""
    try:
        element_type(tensor)
    except RefusedError:
        return False
    return state.sure_shape(tensor) is not None


def _home(state: LoweringState, tensor: gs.Tensor) -> View:
    shape = state.sure_shape(tensor) or (1,)
    home = state.memory.alone(tensor.name, element_type(tensor), shape, extent_of(shape[0]))
    state.views[tensor.name] = home
    return home


def _keep(state: LoweringState, tensor: gs.Tensor, info: onnx.ValueInfoProto) -> None:
    """Leave a tensor in the machine's memory."""
    code = info.type.tensor_type.elem_type
    dtype = element_type_of(code) if tensor.dtype is None else element_type(tensor)
    if dtype is None:
        words = onnx.TensorProto.DataType.Name(code).lower()
        raise RefusedError(f"'{tensor.name}' is of {words}, which cannot leave ONNX Runtime")
    state.kept[tensor.name] = dtype
