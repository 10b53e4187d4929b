"""A TensorRT module whose engines compute eagerly on the host's memory: a double of ours, no proof of TensorRT."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from support.devices import eager_tensorrt
from wpk.dtypes import DType
from wpk.libraries.tensorrt_network import OUTPUT
from wpk.nvinfer import ELEMENT_TYPES

MEMORY = 300
"""Bytes that an engine asks for."""


def eager_module(version: str = "10.13.3.9") -> Any:
    """The module; ``built`` lists the timing caches that builds were given, ``executed`` contexts with their memory."""
    module: Any = ModuleType("tensorrt")
    module.__version__ = version
    for name in vars(eager_tensorrt.Module):
        if not name.startswith("_"):
            setattr(module, name, getattr(eager_tensorrt.Module, name))
    severity = IntEnum("Severity", ["INTERNAL_ERROR", "ERROR", "WARNING", "INFO", "VERBOSE"])
    module.ILogger = type("ILogger", (), {"Severity": severity})
    module.IErrorRecorder = type("IErrorRecorder", (), {})
    enums = {
        "NetworkDefinitionCreationFlag": ["STRONGLY_TYPED"],
        "BuilderFlag": ["TF32"],
        "TensorIOMode": ["NONE", "INPUT", "OUTPUT"],
        "ExecutionContextAllocationStrategy": ["STATIC", "ON_PROFILE_CHANGE", "USER_MANAGED"],
    }
    for name, members in enums.items():
        setattr(module, name, IntEnum(name, members, start=0))  # type: ignore[misc]
    module.built, module.refuses, module.networks = [], False, []
    module.executed = []
    module.Builder = lambda logger: _Builder(module)
    module.Runtime = lambda logger: SimpleNamespace(
        deserialize_cuda_engine=lambda data: _Engine(module, module.networks[int(data)])
    )
    return module


class _Builder:
    def __init__(self, module: Any) -> None:
        self._module = module

    def create_network(self, flags: int) -> Any:
        assert flags == 1
        return eager_tensorrt.Network({})

    def create_builder_config(self) -> Any:
        config = SimpleNamespace(set_flag=lambda flag: None, clear_flag=lambda flag: None)
        config.create_timing_cache = lambda data: None if data == b"broken" else data
        config.set_timing_cache = lambda data, ignore: self._given(config, data)
        config.get_timing_cache = lambda: SimpleNamespace(serialize=lambda: config.cache + b"+")
        return config

    def _given(self, config: Any, data: bytes | None) -> bool:
        config.cache = data
        return data is not None

    def build_serialized_network(self, network: Any, config: Any) -> bytes | None:
        self._module.built.append(config.cache)
        if self._module.refuses:
            return None
        self._module.networks.append(network)
        return str(len(self._module.networks) - 1).encode()


class _Engine:
    device_memory_size_v2 = MEMORY

    def __init__(self, module: Any, network: Any) -> None:
        self._module, self.network = module, network
        self.executed = module.executed
        self.names = [OUTPUT, *network.inputs]
        self.num_io_tensors = len(self.names)

    def tensor(self, name: str) -> Any:
        return self.network.output if name == OUTPUT else self.network.inputs[name]

    def get_tensor_name(self, index: int) -> str:
        return str(self.names[index])

    def get_tensor_dtype(self, name: str) -> Any:
        return self.tensor(name).dtype

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensor(name).declared or ())

    def get_tensor_mode(self, name: str) -> Any:
        modes = self._module.TensorIOMode
        return modes.OUTPUT if name == OUTPUT else modes.INPUT

    def create_execution_context(self, strategy: Any) -> Any:
        assert strategy.name == "USER_MANAGED"
        return _Context(self)


class _Context:
    def __init__(self, engine: _Engine) -> None:
        self._engine = engine
        self._addresses: dict[str, int] = {}
        self._memory = 0

    def set_device_memory(self, memory: int, size: int) -> None:
        assert size == MEMORY
        assert memory % 256 == 0
        self._memory = memory

    def set_tensor_address(self, name: str, address: int) -> bool:
        self._addresses[name] = address
        return address % 256 == 0

    def execute_async_v3(self, stream: int) -> bool:
        assert stream == 7
        self._engine.executed.append((self, self._memory))
        ctypes.memset(self._memory, 0xFF, MEMORY)
        network = self._engine.network
        for name, tensor in network.inputs.items():
            tensor.held = _array(self._addresses[name], tensor).astype(np.float64)
        result = _in_memory(network.output, network.output.array)
        _array(self._addresses[OUTPUT], network.output, result.shape)[...] = result
        return True


def _dtype(tensor: Any) -> DType:
    return ELEMENT_TYPES[tensor.dtype.name]


def _array(address: int, tensor: Any, shape: tuple[int, ...] | None = None) -> Any:
    """What lies at an address, as the network has it."""
    is_image = tensor.allowed_formats != 1
    dtype = np.dtype(_dtype(tensor).numpy)
    if shape is None:
        declared = tensor.declared
        shape = tuple(declared[axis] for axis in (0, 2, 3, 1)) if is_image else tuple(declared)
    count = int(np.prod(shape)) * dtype.itemsize
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * count).from_address(address))
    found = memory.view(dtype).reshape(shape)
    return found.transpose(0, 3, 1, 2) if is_image and tensor.is_network_input else found


def _in_memory(tensor: Any, array: Any) -> Any:
    return array.transpose(0, 2, 3, 1) if tensor.allowed_formats != 1 else array
