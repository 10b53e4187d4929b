"""Parse a model, build an engine, serialize it."""

import re
from dataclasses import dataclass
from typing import Any

import onnx

from wpk.dtypes import Precision
from wpk.nvinfer import (
    Binding,
    TensorRTError,
    build_failed,
    heard,
    network_flags,
    new_recorder,
    shared_logger,
)
from wpk.options import TensorRTOptions
from wpk.progress import Progress, silent
from wpk.shape_ranges import SizeRange
from wpk.targets import Target
from wpk.tensorrt.autotuning import TunedOperator, parse_autotuning
from wpk.tensorrt.configuration import (
    configure,
    keep_timing_cache,
    open_timing_cache,
    require_target,
)
from wpk.tensorrt.model_file import model_file
from wpk.tensorrt.nan_guards import cast_in_front
from wpk.tensorrt.profiles import ANY_BATCH, Shapes, add_profile, batch_shapes
from wpk.tensorrt.progress import new_monitor

_NODE = re.compile(r"\[ONNX Layer: ([^\]]*)\]")
"""What the parser writes into the metadata of the layers that it makes of a node."""


@dataclass(frozen=True)
class Request:
    """What is to be built.

    Attributes:
        model: Without functions, typed (`wpk.tensorrt.exported`).
        target: The GPU to build for.
        precision: What multiplications of fp32 tensors may use; other types are in the model.
        options: What else was asked.
        batches: Sizes of the batch, where it is free.
    """

    model: onnx.ModelProto
    target: Target
    precision: Precision
    options: TensorRTOptions
    batches: SizeRange = ANY_BATCH


@dataclass(frozen=True)
class Tensor:
    """An input or output of a network; a free size is -1."""

    name: str
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Layer:
    """A layer of the network as it was parsed, before TensorRT fuses.

    Attributes:
        name: Of the ONNX node that it comes from, or one of TensorRT's own.
        kind: Its type, e.g. ``CONVOLUTION``.
        node: The ONNX node that it says it comes from; empty where it does not.
    """

    name: str
    kind: str
    node: str


@dataclass(frozen=True)
class BuiltEngine:
    """A serialized engine and what it serves.

    Attributes:
        data: The bytes of the engine.
        inputs: In the network's order.
        outputs: Likewise.
        profile: Shapes by input, where the network has free sizes.
        layers: Of the network.
        tuned: What TensorRT timed for its operators; nothing where it does not tell, or knew the times already.
    """

    data: bytes
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    profile: dict[str, Shapes]
    layers: tuple[Layer, ...]
    tuned: tuple[TunedOperator, ...]


def build(binding: Binding, request: Request, progress: Progress = silent) -> BuiltEngine:
    """Build an engine.

    Raises:
        TargetError: TensorRT for RTX does not build for the target.
        TensorRTError: TensorRT refuses the model, an option or a profile, or fails; with all that
            it reported.
        OutputError: The timing cache cannot be written.
    """
    require_target(binding, request.target)
    recorder = new_recorder(binding.module)
    monitor = new_monitor(binding.module, progress)
    # What TensorRT is given must outlive what it was given to: here, the locals of a call.
    return _built(binding, request, recorder, monitor)


def _built(binding: Binding, request: Request, recorder: Any, monitor: Any) -> BuiltEngine:
    module = binding.module
    logger = shared_logger(module)
    builder = module.Builder(logger)
    network = builder.create_network(network_flags(binding))
    # Not before: TensorRT for RTX 1.7 crashes when a network that inherited a recorder is released.
    builder.error_recorder = recorder
    _parse(binding, network, logger, request.model)
    inputs = tuple(_tensor(network.get_input(i)) for i in range(network.num_inputs))
    outputs = tuple(_tensor(network.get_output(i)) for i in range(network.num_outputs))
    config = builder.create_builder_config()
    configure(binding, config, request.options, request.precision, request.target)
    open_timing_cache(config, request.options)
    shapes = {tensor.name: tensor.shape for tensor in inputs}
    profile = batch_shapes(shapes, request.batches)
    add_profile(builder, config, profile)
    config.progress_monitor = monitor
    with heard(module) as said:
        serialized = builder.build_serialized_network(network, config)
    monitor.raise_kept()
    if serialized is None:
        raise build_failed(f"{binding.title} built no engine", recorder.reported())
    keep_timing_cache(config, request.options)
    tuned = parse_autotuning("\n".join(said))
    return BuiltEngine(bytes(serialized), inputs, outputs, profile, _layers(network), tuned)


def _parse(binding: Binding, network: Any, logger: Any, model: onnx.ModelProto) -> None:
    parser = binding.module.OnnxParser(network, logger)
    taken = onnx.ModelProto()
    taken.CopyFrom(model)
    cast_in_front(taken.graph)
    with model_file(taken) as path:
        if parser.parse_from_file(str(path)):
            return
    errors = [parser.get_error(index) for index in range(parser.num_errors)]
    raise TensorRTError(
        f"{binding.title} cannot take this model:\n    "
        + "\n    ".join(map(_parser_words, errors)),
        fix="build a plan of wpk's own (--engine wpk), or change what is listed in the model",
    )


def _parser_words(refusal: Any) -> str:
    """A parser's error in one line: node, operator, reason."""
    where = (
        f"node '{refusal.node_name()}' ({refusal.node_operator()})"
        if refusal.node_name()
        else "model"
    )
    return f"{where}: {' '.join(refusal.desc().split())}"


def _tensor(tensor: Any) -> Tensor:
    return Tensor(tensor.name, tensor.dtype.name.lower(), tuple(tensor.shape))


def _layers(network: Any) -> tuple[Layer, ...]:
    layers = (network.get_layer(index) for index in range(network.num_layers))
    return tuple(Layer(each.name, each.type.name, _node(each.metadata)) for each in layers)


def _node(metadata: str) -> str:
    """The ONNX node in what the parser notes at a layer."""
    found = _NODE.search(metadata)
    return found[1] if found else ""
