"""The model's inputs and outputs: their own layout and type, in memory of their own."""

from dataclasses import replace

import onnx_graphsurgeon as gs

from wpk.extent import Extent
from wpk.lowering.free_axis import extent_of, stand_in
from wpk.lowering.partition import element_type
from wpk.lowering.state import LoweringState
from wpk.lowering.views import contiguous_strides


def enter(state: LoweringState, tensor: gs.Tensor) -> None:
    """Give an input of the model its place in memory."""
    shape = tuple(stand_in(size, list(state.free)) for size in tensor.shape or (1,))
    if 0 in shape:
        _make_empty(state, tensor, shape)
        return
    home = state.memory.home(tensor.name, element_type(tensor), shape, extent_of(shape[0]))
    state.views[tensor.name] = home
    if not tensor.shape:
        _make_scalar(state, tensor.name)


def leave(state: LoweringState, tensor: gs.Tensor) -> None:
    """Make sure that a model's output is contiguous and lies in memory that is no input's.

    An output that is an input, by the same name, is what a run is given: there is nothing to compute.
    One that stays in the machine's memory has no place here.
    """
    inputs = {t.name for t in state.graph.inputs}
    if tensor.name in inputs or tensor.name in state.kept:
        return
    if tensor.shape is not None and 0 in tensor.shape:
        _make_empty(state, tensor, tuple(tensor.shape))
        return
    view = state.view(tensor)
    values = state.memory.values
    owned = view.source in values and values[view.source].buffer not in inputs
    contiguous = view.strides == contiguous_strides(view.shape)
    if not owned or not contiguous or view.dtype is not element_type(tensor):
        state.copy(view, tensor.name, "output of the model")
    elif view.source != tensor.name or view.offset:
        state.memory.alias(tensor.name, view, view.shape)
    if tensor.shape is not None and not list(tensor.shape):
        _make_scalar(state, tensor.name)


def _make_empty(state: LoweringState, tensor: gs.Tensor, shape: tuple[int, ...]) -> None:
    """Give a tensor that has no elements the place of one, which is neither read nor written.

    It has no view: where graph passes left a reader, that is refused.
    """
    state.memory.alone(tensor.name, element_type(tensor), (1,), Extent(1))
    value = replace(state.memory.values[tensor.name], logical_shape=shape)
    state.memory.values[tensor.name] = value


def _make_scalar(state: LoweringState, name: str) -> None:
    state.memory.values[name] = replace(state.memory.values[name], logical_shape=())
