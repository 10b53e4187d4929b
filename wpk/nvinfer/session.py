"""A serialized engine, made ready to execute on the GPU whose context is current."""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

from wpk.dtypes import DType
from wpk.errors import LaunchError
from wpk.nvinfer.binding import Binding
from wpk.nvinfer.element_types import ELEMENT_TYPES
from wpk.nvinfer.errors import TensorRTError, new_recorder, shared_logger


@dataclass(frozen=True)
class EngineTensor:
    """An input or output of an engine; a free size is -1."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    is_input: bool


class EngineSession:
    """An engine with one execution context. One thread at a time; not after the GPU's context is gone.

    Attributes:
        tensors: Inputs and outputs, in the engine's order.
    """

    def __init__(self, binding: Binding, data: bytes, *, owns_memory: bool = True) -> None:
        """Deserialize.

        Args:
            binding: Of the version that built the engine.
            data: The engine. It is a program: only what was built here, or is trusted.
            owns_memory: Whether it allocates what it executes in; else each execution is given it.

        Raises:
            TensorRTError: It is of another version or GPU, or damaged; with what TensorRT reported.
        """
        module = binding.module
        self._binding, self._owns_memory = binding, owns_memory
        self._recorder = new_recorder(module)
        self._runtime = module.Runtime(shared_logger(module))
        self._runtime.error_recorder = self._recorder
        self._engine = self._made("load the engine", self._runtime.deserialize_cuda_engine(data))
        self._context = self._new_context()
        self.tensors = tuple(map(self._tensor, range(self._engine.num_io_tensors)))

    def profiled(self, profiler: Any) -> "EngineSession":
        """The same engine with a context of its own, which tells an ``IProfiler`` of every layer.

        Telling costs time, so that this session is to be measured and the other one to be asked.
        """
        other = self.twin()
        other._context.profiler = profiler
        return other

    def twin(self) -> "EngineSession":
        """The same engine with a context of its own: what executes at the same time needs one each."""
        other = copy(self)
        other._context = self._new_context()
        return other

    def resize(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
        """Set the inputs' shapes; give those of all inputs and outputs.

        Raises:
            TensorRTError: No profile of the engine holds them.
        """
        for name, shape in shapes.items():
            if not self._context.set_input_shape(name, tuple(shape)):
                self._refuse(f"take the shape {list(shape)} for input '{name}'")
        missing = self._context.infer_shapes()
        if missing:
            self._refuse(f"tell its shapes without {', '.join(missing)}")
        return {
            each.name: tuple(self._context.get_tensor_shape(each.name)) for each in self.tensors
        }

    @property
    def memory_bytes(self) -> int:
        """Of the memory that each execution is given; 0 where it owns its own."""
        return 0 if self._owns_memory else int(self._engine.device_memory_size_v2)

    def enqueue(self, pointers: Sequence[int], stream: int, memory: int = 0) -> None:
        """Put an execution on a stream. Can be captured, once it was executed with these shapes.

        Args:
            pointers: Addresses of `tensors`, in their order.
            stream: Handle of the stream.
            memory: Address of `memory_bytes` that nobody else uses meanwhile, a multiple of 256.

        Raises:
            LaunchError: TensorRT refuses an address, or does not start.
        """
        if not self._owns_memory:
            self._context.set_device_memory(memory, self.memory_bytes)
        for tensor, address in zip(self.tensors, pointers, strict=True):
            if not self._context.set_tensor_address(tensor.name, address):
                raise self._launch_error(f"does not take {address:#x} for '{tensor.name}'")
        if not self._context.execute_async_v3(stream):
            raise self._launch_error("does not start an execution")

    def layers(self) -> str:
        """What the engine inspector says of the layers, as JSON."""
        inspector = self._engine.create_engine_inspector()
        inspector.execution_context = self._context
        json_format = self._binding.module.LayerInformationFormat.JSON
        return str(inspector.get_engine_information(json_format))

    def close(self) -> None:
        """Let go of it, before the device's context goes."""
        self._context = self._engine = self._runtime = None

    def _tensor(self, index: int) -> EngineTensor:
        engine, mode = self._engine, self._binding.module.TensorIOMode
        name = engine.get_tensor_name(index)
        kind = engine.get_tensor_dtype(name).name
        if kind not in ELEMENT_TYPES:
            raise TensorRTError(
                f"'{name}' of the engine has elements of type {kind}, which wpk does not have",
                fix="export the model with another type there",
            )
        shape = tuple(engine.get_tensor_shape(name))
        is_input = engine.get_tensor_mode(name) == mode.INPUT
        return EngineTensor(name, ELEMENT_TYPES[kind], shape, is_input)

    def _new_context(self) -> Any:
        strategies = self._binding.module.ExecutionContextAllocationStrategy
        strategy = strategies.STATIC if self._owns_memory else strategies.USER_MANAGED
        return self._made("execute the engine", self._engine.create_execution_context(strategy))

    def _made(self, what: str, made: Any) -> Any:
        if made is None:
            self._refuse(what)
        return made

    def _refuse(self, what: str) -> None:
        lines = self._recorder.reported() or ["TensorRT reported nothing"]
        raise TensorRTError(
            f"{self._binding.title} cannot {what}:\n    " + "\n    ".join(lines),
            fix="build the engine with this version of TensorRT, on this GPU",
        )

    def _launch_error(self, what: str) -> LaunchError:
        said = "; ".join(self._recorder.reported()) or "it reported nothing"
        return LaunchError(
            f"{self._binding.title} {what}: {said}",
            fix="look the message up in TensorRT's documentation, or build a plan of wpk's own",
        )
