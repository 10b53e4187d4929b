"""TensorRT as a library: an operator as an engine of its own, built here, put on the stream as a kernel is.

An engine is a program, and a plan's may be a stranger's: none is stored. What is stored is the problem, and the engine
is built again where the plan is loaded, by TensorRT's timing cache, which is kept among wpk's caches: what was timed
once is not timed again, and the same tactics are chosen.
"""

import logging
import os
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

from wpk.build import default_cache_folder
from wpk.candidate import Configuration
from wpk.device import CudaDevice, bindings
from wpk.dtypes import DType
from wpk.errors import EngineError, LaunchError, WpkError
from wpk.libraries.cudnn_description import GRAPH, Description
from wpk.libraries.library import Proposals
from wpk.libraries.tensorrt_network import INPUT, OUTPUT, add_operator
from wpk.libraries.tensorrt_problems import TENSORRT, describe, why_not
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

_LOG = logging.getLogger(__name__)

_ALIGNMENT = 256
"""Bytes that TensorRT asks addresses to be multiples of; operands elsewhere are copied."""


class TensorRTCandidate:
    """A description's engine: a `wpk.libraries.library.LibraryCandidate`.

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
            self._owner.rehearse(self, [*self._sizes, self.workspace_bytes])
        except WpkError as error:
            return error.what.splitlines()[0]
        return None

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
        session = self._session
        if session is None:
            raise LaunchError(f"{self.name} is not prepared", fix="call prepare() and heed it")
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

    def close(self) -> None:
        """Let go of the engine."""
        if self._session is not None:
            self._session.close()
            self._session = None


class TensorRT:
    """TensorRT on one GPU: a `wpk.libraries.library.OpenLibrary`.

    Attributes:
        version: As its module states it, e.g. ``10.13.3.9``.
    """

    def __init__(self, device: CudaDevice) -> None:
        """Load the library, and what it timed before.

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
        """Let go of all engines, and keep what was timed."""
        while self._made:
            self._made.pop().close()
        self._timings.keep()

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

    def rehearse(self, candidate: TensorRTCandidate, sizes: Sequence[int]) -> None:
        """Execute on memory that is given back, workspace last.

        Raises:
            LaunchError: It does not start, or fails.
        """
        addresses = [self._device.allocate(max(1, size)) for size in sizes]
        try:
            candidate.run(addresses[:-1], addresses[-1], self._device.work_stream)
            self._device.synchronize()
        finally:
            for address in addresses:
                self._device.free(address)


class TimingFile:
    """What TensorRT has timed, of one version on one GPU, in the user's cache folder."""

    def __init__(self, version: str, gpu: str) -> None:
        """Read it; nothing of it need exist yet."""
        name = "".join(each if each.isalnum() else "_" for each in gpu)
        self.path: Path = default_cache_folder() / f"tensorrt-{version}-{name}.timing"
        try:
            self.data = self.path.read_bytes()
        except OSError:
            self.data = b""
        self._read = self.data

    def open(self, config: Any) -> None:
        """Give it to a build; TensorRT begins anew where it cannot read it."""
        if not config.set_timing_cache(config.create_timing_cache(self.data), False):
            config.set_timing_cache(config.create_timing_cache(b""), False)

    def take(self, config: Any) -> None:
        """Take what a build has timed, besides."""
        self.data = bytes(config.get_timing_cache().serialize())

    def keep(self) -> None:
        """Write it, if anything was timed; a folder that cannot be written is told of, and costs time only."""
        if self.data == self._read:
            return
        part = self.path.with_suffix(f".{os.getpid()}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            part.write_bytes(self.data)
            part.replace(self.path)
        except OSError as error:
            _LOG.warning("what TensorRT timed is not kept: %s: %s", self.path, error.strerror)
        self._read = self.data


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
    timings.take(config)
    return bytes(serialized)


def _aligned(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _copy(target: int, source: int, size: int, stream: int) -> None:
    if target != source:
        driver = bindings()
        (status,) = driver.cuMemcpyDtoDAsync(target, source, size, driver.CUstream(stream))
        if int(status):
            raise LaunchError(f"an operand cannot be copied: {status}", fix="see CUDA's errors")
