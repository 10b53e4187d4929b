"""A simulated TensorRT, written by us: its engines are models, which ONNX Runtime executes.

It proves nothing of the real one; it shows that wpk goes its way from a model to an engine, and finds what is planted
here. An engine computes the model without plugins, whichever operators are plugins in it; plugin nodes are looked into.
"""

import ctypes
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime

from wpk.spec import operator_id

PLUGIN = "WpkKernel"


@dataclass
class Plan:
    """What the simulation does.

    Attributes:
        plain: The model without plugins, which all engines compute.
        native: Microseconds of TensorRT's own layers by a part of their name; 10 for others.
        plugin: Microseconds of plugins by operator; 5 for others.
        wrong: Added to every element of an output.
        refused: Operators of ONNX that the parser does not know.
        unbuildable: Operators whose plugins are not built.
    """

    plain: onnx.ModelProto | None = None
    native: dict[str, float] = field(default_factory=dict)
    plugin: dict[str, float] = field(default_factory=dict)
    wrong: float = 0.0
    refused: frozenset[str] = frozenset()
    unbuildable: frozenset[str] = frozenset()
    built: list[frozenset[str]] = field(default_factory=list)
    seconds: float = 0.0


def simulated_tensorrt(plan: Plan) -> Any:
    """A module like ``tensorrt``, in the form of TensorRT 11."""
    module: Any = ModuleType("tensorrt")
    module.__version__ = "11.0.0"

    class Severity(Enum):
        INTERNAL_ERROR, ERROR, WARNING, INFO, VERBOSE = range(5)

    module.ILogger = type("ILogger", (), {"Severity": Severity, "__init__": lambda self: None})
    for name in ("IErrorRecorder", "IProgressMonitor", "IProfiler"):
        setattr(module, name, type(name, (), {"__init__": lambda self: None}))
    enums = {
        "NetworkDefinitionCreationFlag": ["STRONGLY_TYPED"],
        "ProfilingVerbosity": ["DETAILED"],
        "BuilderFlag": ["TF32", "VERSION_COMPATIBLE", "EDITABLE_TIMING_CACHE"],
        "TensorIOMode": ["NONE", "INPUT", "OUTPUT"],
        "LayerInformationFormat": ["ONELINE", "JSON"],
        "ExecutionContextAllocationStrategy": ["STATIC", "ON_PROFILE_CHANGE", "USER_MANAGED"],
        "DataType": ["FLOAT", "HALF", "INT64"],
    }
    for name, members in enums.items():
        setattr(module, name, IntEnum(name, members, start=0))
    module.Builder = lambda logger: _Builder(plan, partial(logger.log, Severity.VERBOSE))
    module.OnnxParser = lambda network, logger: _Parser(plan, network)
    module.Runtime = lambda logger: _Runtime(plan, module)
    registry = _Registry()
    module.get_plugin_registry = lambda: registry
    return module


class _Registry:
    def __init__(self) -> None:
        self._loaded = False

    def get_creator(self, name: str, version: str, namespace: str) -> object | None:
        assert (name, version, namespace) == (PLUGIN, "1", "")
        return object() if self._loaded else None

    def load_library(self, path: str) -> object:
        self._loaded = path.endswith(".so")
        return object()


class _Parser:
    def __init__(self, plan: Plan, network: Any) -> None:
        self._plan, self._network = plan, network
        self._unknown: list[int] = []

    num_subgraphs = 1

    def supports_model_v2(self, model: bytes, path: str) -> bool:
        nodes = onnx.load_model_from_string(model).graph.node
        self._count = len(nodes)
        self._unknown = [i for i, node in enumerate(nodes) if node.op_type in self._plan.refused]
        return not self._unknown

    def get_subgraph_nodes(self, number: int) -> list[int]:
        assert number == 0
        return [index for index in range(self._count) if index not in self._unknown]

    @property
    def num_errors(self) -> int:
        return len(self._unknown)

    def get_error(self, number: int) -> Any:
        index = self._unknown[number]
        return SimpleNamespace(
            node=lambda: index,
            node_name=lambda: "",
            node_operator=lambda: "",
            desc=lambda: "unknown",
        )

    def parse_from_file(self, path: str) -> bool:
        model = onnx.load(path)
        nodes = model.graph.node
        self._unknown = [i for i, node in enumerate(nodes) if node.op_type in self._plan.refused]
        if self._unknown:
            return False
        for node in model.graph.node:
            if node.op_type == PLUGIN:
                look_into(node)
        self._network.model = model
        ports = [_port(each) for each in (*model.graph.input, *model.graph.output)]
        self._network.ports = ports
        self._network.num_inputs = len(model.graph.input)
        self._network.num_outputs = len(model.graph.output)
        self._network.num_layers = 0
        return True


def look_into(node: onnx.NodeProto) -> None:
    """Refuse a plugin node that the plugin's creator would refuse."""
    held = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert held["plugin_version"] == b"1"
    assert held["plugin_namespace"] == b""
    assert held["spec"].data_type == onnx.TensorProto.INT8
    assert operator_id(held["spec"].raw_data).encode() == held["id"]


def _port(info: onnx.ValueInfoProto) -> Any:
    tensor = info.type.tensor_type
    shape = tuple(dim.dim_value or -1 for dim in tensor.shape.dim)
    name = {1: "FLOAT", 10: "HALF", 7: "INT64"}[tensor.elem_type]
    return SimpleNamespace(name=info.name, shape=shape, dtype=SimpleNamespace(name=name))


class _Builder:
    def __init__(self, plan: Plan, say: Callable[[str], None]) -> None:
        self._plan, self._say = plan, say
        self._flags: set[str] = set()

    def create_network(self, flags: int) -> Any:
        assert flags == 1
        network = SimpleNamespace()
        network.get_input = lambda i: network.ports[i]
        network.get_output = lambda i: network.ports[network.num_inputs + i]
        return network

    def create_builder_config(self) -> Any:
        return SimpleNamespace(
            set_flag=lambda flag: self._flags.add(flag.name),
            clear_flag=lambda flag: None,
            add_optimization_profile=lambda profile: 0,
        )

    def create_optimization_profile(self) -> Any:
        return SimpleNamespace(set_shape=lambda *shapes: None)

    def build_serialized_network(self, network: Any, config: Any) -> bytes | None:
        model: onnx.ModelProto = network.model
        plugins = frozenset(node.name for node in model.graph.node if node.op_type == PLUGIN)
        self._plan.built.append(plugins)
        if plugins & self._plan.unbuildable:
            return None
        if "EDITABLE_TIMING_CACHE" in self._flags:
            for node in model.graph.node:
                self._tell_tactics(node)
        return b"ftrt" + model.SerializeToString()

    def _tell_tactics(self, node: onnx.NodeProto) -> None:
        """What 10.8 and newer log of an operator, in the form of documents.py."""
        kind = "of a plugin" if node.op_type == PLUGIN else "native"
        self._say(f"Autotuning op {node.name}(key: 0x1f):")
        for number, milliseconds in ((1, 0.004), (2, 0.003)):
            row = f"{milliseconds}, 1.0, 0.9, {kind} {number}, 0xa{number}, "
            self._say(f"    {number}, {row}")
        self._say("The selected tactic is (tactic hash, cost(in ms)):0xa2, 0.003")


class _Runtime:
    def __init__(self, plan: Plan, module: Any) -> None:
        self._plan, self._module = plan, module

    def deserialize_cuda_engine(self, data: bytes) -> "_Engine | None":
        if not data.startswith(b"ftrt"):
            return None
        return _Engine(self._plan, self._module, onnx.load_model_from_string(data[4:]))


class _Engine:
    def __init__(self, plan: Plan, module: Any, model: onnx.ModelProto) -> None:
        self.plan, self.module, self.model = plan, module, model
        self.ports = [_port(each) for each in (*model.graph.input, *model.graph.output)]
        self.num_io_tensors = len(self.ports)
        self.layers = [(node.name, self._microseconds(node)) for node in model.graph.node]

    def _microseconds(self, node: onnx.NodeProto) -> float:
        if node.op_type == PLUGIN:
            return self.plan.plugin.get(node.name, 5.0)
        found = [time for part, time in self.plan.native.items() if part in node.name]
        return found[0] if found else 10.0

    def get_tensor_name(self, index: int) -> str:
        return str(self.ports[index].name)

    def _of(self, name: str) -> Any:
        return next(each for each in self.ports if each.name == name)

    def get_tensor_dtype(self, name: str) -> Any:
        return self._of(name).dtype

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(self._of(name).shape)

    def get_tensor_mode(self, name: str) -> Any:
        modes = self.module.TensorIOMode
        is_input = any(each.name == name for each in self.model.graph.input)
        return modes.INPUT if is_input else modes.OUTPUT

    def create_execution_context(self, strategy: Any) -> "_Context":
        assert strategy.name == "STATIC"
        return _Context(self)

    def create_engine_inspector(self) -> Any:
        layers = [
            {"Name": name, "LayerType": "kgen", "Inputs": [], "Outputs": []}
            for name, _ in self.layers
        ]
        text = json.dumps({"Layers": layers, "I/O Tensors": []})
        return SimpleNamespace(get_engine_information=lambda form: text)


class _Context:
    profiler: Any = None

    def __init__(self, engine: _Engine) -> None:
        self._engine = engine
        self._addresses: dict[str, int] = {}
        self._shapes: dict[str, tuple[int, ...]] = {}
        plain = engine.plan.plain
        assert plain is not None
        self._session = onnxruntime.InferenceSession(plain.SerializeToString())

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self._shapes[name] = shape
        return True

    def infer_shapes(self) -> list[str]:
        outputs = self._execute({n: np.ones(s, self._dtype(n)) for n, s in self._shapes.items()})
        self._shapes.update({name: array.shape for name, array in outputs.items()})
        return []

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return self._shapes[name]

    def set_tensor_address(self, name: str, address: int) -> bool:
        self._addresses[name] = address
        return address % 16 == 0

    def execute_async_v3(self, stream: int) -> bool:
        assert stream == 7
        inputs = {name: self._array(name).copy() for name in self._names(is_input=True)}
        for name, array in self._execute(inputs).items():
            self._array(name)[...] = array + np.asarray(self._engine.plan.wrong, array.dtype)
        for layer, microseconds in self._engine.layers:
            self._engine.plan.seconds += microseconds * 1e-6
            if self.profiler is not None:
                self.profiler.report_layer_time(layer, microseconds * 1e-3)
        return True

    def _names(self, *, is_input: bool) -> list[str]:
        graph = self._engine.model.graph
        return [each.name for each in (graph.input if is_input else graph.output)]

    def _execute(self, inputs: dict[str, Any]) -> dict[str, Any]:
        names = self._names(is_input=False)
        return dict(zip(names, self._session.run(names, inputs), strict=True))

    def _dtype(self, name: str) -> Any:
        return {"FLOAT": np.float32, "HALF": np.float16, "INT64": np.int64}[
            self._engine.get_tensor_dtype(name).name
        ]

    def _array(self, name: str) -> Any:
        dtype, shape = np.dtype(self._dtype(name)), self._shapes[name]
        size = int(np.prod(shape)) * dtype.itemsize
        memory = (ctypes.c_uint8 * size).from_address(self._addresses[name])
        return np.frombuffer(memory, dtype).reshape(shape)
