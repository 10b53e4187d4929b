"""TensorRT as a library: an operator as an engine of its own, built here, put on the stream as a kernel is.

An engine is a program, and a plan's may be a stranger's: none is stored. What is stored is the problem, and the engine
is built again where the plan is loaded, by TensorRT's timing cache, which is kept among wpk's caches: what was timed
once is not timed again, and the same tactics are chosen.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from wpk.candidate import Configuration
from wpk.device import CudaDevice, bindings
from wpk.dtypes import DType
from wpk.errors import EngineError, LaunchError, WpkError
from wpk.libraries.cudnn_description import GRAPH, Description
from wpk.libraries.library import Proposals
from wpk.libraries.tensorrt_network import INPUT, OUTPUT, add_operator
from wpk.libraries.tensorrt_problems import TENSORRT, describe, why_not
from wpk.libraries.tensorrt_timings import TimingFile
from wpk.nvinfer import (
    Binding,
    EngineSession,
    TensorRTError,
    build_failed,
    find_binding,
    network_flags,
    new_recorder,
    shared_logger,
)
from wpk.problems import Problem

_ALIGNMENT = 256
"""Bytes that TensorRT asks addresses to be multiples of; operands elsewhere are copied."""

_MOST_CONTEXTS = 64
"""Of one engine: more than a plan has steps that are the same and may be executed at the same time."""


class TensorRTCandidate:
    """A description's engine: a `wpk.libraries.library.LibraryCandidate`.

    What executes at the same time needs an execution context each. Steps that may do so have scratch memory of their
    own, so that a context belongs to the scratch memory that it executes in. There is one for each step; where calls
    use more places than that, as when they are measured on copies of their memory in turn, a context goes from the place
    that was used first to the next one.

    Attributes:
        library: ``TensorRT`` with its version.
        name: Which description of the problem.
        configuration: The same as a number.
        layout: How the constant operand lies in memory; None where there is none.
    """

    def __init__(
        self, owner: "TensorRT", description: Description, configuration: Configuration
    ) -> None:
        """Name it; nothing is built yet."""
        self._owner, self._description = owner, description
        self._session: EngineSession | None = None
        self._free: list[EngineSession] = []
        self._placed: dict[int, EngineSession] = {}  # by the address of the scratch memory
        tensors = (*description.inputs, description.output)
        self._sizes = [prod(each.dims) * each.dtype.bytes for each in tensors]
        self.library = f"{TENSORRT} {owner.version}"
        self.layout = description.layout
        self.configuration = configuration
        self.name = " ".join(f"{name} {value}" for name, value in configuration)

    def prepare(self) -> str | None:
        """Build the engine, and execute it once: only then it can be captured. Why that fails, in words, or None."""
        try:
            session = self._owner.session(self._description)
            names = [*map(INPUT.format, range(len(self._description.inputs))), OUTPUT]
            self._places = [names.index(each.name) for each in session.tensors]
            self._session = session
            self._add(session)
        except WpkError as error:
            self.close()
            return error.what.splitlines()[0]
        return None

    def add_step(self) -> None:
        """See `LibraryCandidate.add_step`: it gets a context of its own.

        Raises:
            EngineError: There is no memory for it.
            LaunchError: It does not execute.
        """
        if self._session is not None and len(self._free) + len(self._placed) < _MOST_CONTEXTS:
            self._add(self._session.twin())

    @property
    def workspace_bytes(self) -> int:
        """The engine's own memory, and room for each operand that does not lie as TensorRT asks."""
        memory = 0 if self._session is None else self._session.memory_bytes
        return _aligned(memory) + sum(map(_aligned, self._sizes))

    def run(self, pointers: Sequence[int], workspace: int, stream: int) -> None:
        """Put it on a stream: see `LibraryCandidate.run`.

        Raises:
            LaunchError: It is not prepared, or cannot be started.
        """
        if self._session is None:
            raise LaunchError(f"{self.name} is not prepared", fix="call prepare() and heed it")
        self._execute(self._at(workspace), pointers, workspace, stream)

    def close(self) -> None:
        """Let go of the engine."""
        for session in (*self._free, *self._placed.values()):
            session.close()
        self._free.clear()
        self._placed.clear()
        self._session = None

    def _add(self, session: EngineSession) -> None:
        """Take a context that was executed once."""
        self._free.append(session)
        sizes = [*self._sizes, self.workspace_bytes]
        try:
            self._owner.rehearse(partial(self._execute, session), sizes)
        except WpkError:
            self._free.remove(session)
            session.close()
            raise

    def _at(self, workspace: int) -> EngineSession:
        """The context that executes in some scratch memory."""
        session = self._placed.get(workspace)
        if session is None:
            session = self._free.pop() if self._free else self._placed.pop(next(iter(self._placed)))
            self._placed[workspace] = session
        return session

    def _execute(
        self, session: EngineSession, pointers: Sequence[int], workspace: int, stream: int
    ) -> None:
        places, room = [], workspace + _aligned(session.memory_bytes)
        for pointer, size in zip(pointers, self._sizes, strict=True):
            places.append(room if pointer % _ALIGNMENT else pointer)
            room += _aligned(size)
        *inputs, output = zip(pointers, places, self._sizes, strict=True)
        for source, place, size in inputs:
            _copy(place, source, size, stream)
        session.enqueue([places[number] for number in self._places], stream, workspace)
        target, place, size = output
        _copy(target, place, size, stream)


class TensorRT:
    """TensorRT on one GPU: a `wpk.libraries.library.OpenLibrary`.

    Attributes:
        version: As its module states it, e.g. ``10.13.3.9``.
    """

    def __init__(self, device: CudaDevice) -> None:
        """Load the library.

        Raises:
            EngineError: It is not installed, or TensorRT for RTX is, which competes as a whole engine only.
        """
        try:
            self._binding = find_binding()
        except TensorRTError as error:
            raise EngineError(error.what, fix=error.fix) from error
        if self._binding.rtx:
            raise EngineError(
                f"{self._binding.title} is installed, which computes no single operators here",
                fix="install the full TensorRT: pip install tensorrt",
            )
        self.version = self._binding.version
        self._device = device
        self._made: list[TensorRTCandidate] = []
        self._timings = TimingFile(self.version, device.name)

    def close(self) -> None:
        """Let go of all engines."""
        while self._made:
            self._made.pop().close()

    def offer(self, problem: Problem) -> Proposals:
        """One engine for each description of a problem; TensorRT searches within."""
        reason = why_not(problem)
        if reason is not None:
            return Proposals((), (reason,))
        numbers = range(len(describe(problem)))
        return Proposals(tuple(self.candidate(problem, ((GRAPH, n),)) for n in numbers), ())

    def candidate(self, problem: Problem, configuration: Configuration) -> TensorRTCandidate:
        """Return the implementation that a configuration names.

        Raises:
            EngineError: There is none.
        """
        descriptions = describe(problem) if why_not(problem) is None else ()
        number = dict(configuration).get(GRAPH, -1)
        if len(configuration) != 1 or not 0 <= number < len(descriptions):
            raise EngineError(
                f"TensorRT {self.version} has no implementation {dict(configuration)}",
                fix="optimize the model again with this version of wpk",
            )
        self._made.append(TensorRTCandidate(self, descriptions[number], configuration))
        return self._made[-1]

    def session(self, description: Description) -> EngineSession:
        """A description's engine, ready to execute in memory that it is given.

        Raises:
            TensorRTError: TensorRT does not build it.
        """
        data = build_operator(self._binding, description, self._timings)
        return EngineSession(self._binding, data, owns_memory=False)

    def rehearse(
        self, execute: Callable[[Sequence[int], int, int], None], sizes: Sequence[int]
    ) -> None:
        """Execute on memory that is given back.

        Args:
            execute: Given addresses of the operands and of scratch memory, and a stream.
            sizes: Of the operands, and of scratch memory.

        Raises:
            LaunchError: It does not start, or fails.
        """
        addresses = [self._device.allocate(max(1, size)) for size in sizes]
        try:
            execute(addresses[:-1], addresses[-1], self._device.work_stream)
            self._device.synchronize()
        finally:
            for address in addresses:
                self._device.free(address)


def build_operator(binding: Binding, description: Description, timings: TimingFile) -> bytes:
    """Build the engine of one operator.

    Raises:
        TensorRTError: TensorRT refuses; with what it reported.
    """
    module = binding.module
    recorder = new_recorder(module)
    builder = module.Builder(shared_logger(module))
    network = builder.create_network(network_flags(binding))
    builder.error_recorder = recorder
    kept = add_operator(binding, network, description)
    config = builder.create_builder_config()
    is_fp32 = description.inputs[0].dtype is DType.FP32
    change = config.set_flag if is_fp32 and not description.strict else config.clear_flag
    change(module.BuilderFlag.TF32)
    timings.open(config)
    serialized = builder.build_serialized_network(network, config)
    del kept
    if serialized is None:
        raise build_failed(f"{binding.title} built no engine", recorder.reported())
    timings.keep(config)
    return bytes(serialized)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _copy(target: int, source: int, size: int, stream: int) -> None:
    if target != source:
        driver = bindings()
        (status,) = driver.cuMemcpyDtoDAsync(target, source, size, driver.CUstream(stream))
        if int(status):
            raise LaunchError(f"an operand cannot be copied: {status}", fix="see CUDA's errors")
