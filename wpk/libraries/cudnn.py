"""cuDNN through nvidia-cudnn-frontend: all that it proposes for a problem, and its other engines.

The fused operator is one graph: product, bias, residual, activation. What the heuristics propose
comes first, then the engines that they did not name, with default settings. Where a graph finds no
engine, an operator may still be computed in parts, which is the caller's decision.
"""

import ctypes
import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from wpk.candidate import Configuration
from wpk.device import INSTALL_GPU_PACKAGES, LEGACY_STREAM, CudaDevice, bindings
from wpk.errors import EngineError, LaunchError
from wpk.libraries.cudnn_description import CUDNN, ENGINE, GRAPH, AttentionNode, Description
from wpk.libraries.cudnn_graph import build_graph, tensor_ids
from wpk.libraries.cudnn_problems import describe, why_not
from wpk.libraries.cudnn_session import CudnnSession, GraphToken, words
from wpk.libraries.library import ALIGNMENT, Proposals
from wpk.problems import Problem

_RAISED = (RuntimeError, ValueError)
"""What the frontend raises of a graph that it refuses, besides its own error."""

_MISFITS = (*_RAISED, KeyError, IndexError, AttributeError, TypeError)
"""What a configuration that does not fit raises too."""

_SHORTCUTS = ("REDUCED_PRECISION_REDUCTION",)
_STRICT_SHORTCUTS = (*_SHORTCUTS, "TENSOR_CORE", "DOWN_CONVERT_INPUTS")
"""Numerical notes of engines that are not asked: sums are fp32, and strict fp32 is never tf32."""


class CudnnCandidate:
    """One engine configuration for one problem: a `wpk.libraries.library.LibraryCandidate`.

    Attributes:
        library: ``cuDNN`` with its version.
        name: cuDNN's own name: the engine's number, and the numbers and values of its knobs. No other
            candidate of the same version is called so.
        configuration: The description, the engine's number, and its knobs by name: enough to make it
            again.
        layout: How the constant operand lies in memory (`wpk.libraries.constant_layouts`); None
            where there is none.
    """

    def __init__(
        self,
        owner: "Cudnn",
        token: GraphToken,
        index: int,
        description: Description,
        configuration: Configuration,
    ) -> None:
        """Name the proposal ``index`` of a graph that has its plans."""
        self._owner = owner
        self._token = token
        self._index = index
        self._ids = tensor_ids(description)
        self._prepared = False
        self.library = f"{CUDNN} {owner.version}"
        self.layout = description.layout
        self.configuration = configuration
        self.name: str = token.graph.get_plan_name_at_index(index)

    def prepare(self) -> str | None:
        """Build the plan, which may compile it and take a second; why that fails, in words, or None."""
        try:
            self._token.graph.build_plan_at_index(self._index)
        except (self._owner.error, *_RAISED) as error:
            return words(error)
        self._prepared = True
        return None

    def add_step(self) -> None:
        """Do nothing: a plan of cuDNN keeps nothing from one call to another."""

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory that `run` needs, once prepared."""
        return int(self._token.graph.get_workspace_size_plan_at_index(self._index))

    def run(self, pointers: Sequence[int], workspace: int, stream: int) -> None:
        """Put it on a stream: see `LibraryCandidate.run`.

        Raises:
            LaunchError: It is not prepared, cannot be started, or an address is not aligned.
        """
        if not self._prepared:
            raise LaunchError(f"{self.name} is not prepared", fix="call prepare() and heed it")
        wrong = next((p for p in (*pointers, workspace) if p % ALIGNMENT), None)
        if wrong is not None:
            raise LaunchError(
                f"{self.name} is given address {wrong:#x}; cuDNN takes multiples of {ALIGNMENT}",
                fix="choose a generated kernel for this operator",
            )
        try:
            self._owner.use(stream)
            self._token.graph.execute_plan_at_index(
                dict(zip(self._ids, pointers, strict=True)),
                workspace,
                self._index,
                handle=self._owner.handle,
            )
        except (self._owner.error, RuntimeError) as error:
            raise LaunchError(
                f"{self.library} cannot start {self.name}: {words(error)}",
                fix="choose another implementation of this operator",
            ) from error


class Cudnn:
    """cuDNN on one GPU, in the context that the device made current.

    Attributes:
        version: Of the library, e.g. ``9.28.0``.
        handle: The frontend's handle.
        error: What the frontend raises for graphs that it does not support.
    """

    def __init__(self, device: CudaDevice) -> None:
        """Load the library.

        Raises:
            EngineError: The library or its frontend is not installed, or does not start.
        """
        self._frontend = _frontend()
        try:
            self.version = _version(self._frontend.backend_version())
            self._session = CudnnSession(self._frontend, device.active(), _settle)
        except RuntimeError as error:
            raise EngineError(
                f"cuDNN does not start on {device.name}: {words(error)}",
                fix="check that nvidia-cudnn-cu13 fits the driver: nvidia-smi",
            ) from error
        self.error: type[Exception] = self._frontend.cudnnGraphNotSupportedError
        self.handle = self._session.handle

    def close(self) -> None:
        """Let go of all graphs and the handle; before the device is closed.

        Candidates cannot run any more. Also done when the process ends.
        """
        self._session.close()

    def offer(self, problem: Problem) -> Proposals:
        """What cuDNN's heuristics propose for a problem, then engines that they passed over."""
        reason = why_not(problem)
        if reason is not None:
            return Proposals((), (reason,))
        candidates: list[CudnnCandidate] = []
        refusals: list[str] = []
        for number, description in enumerate(describe(problem)):
            try:
                candidates += self._proposals(number, description)
            except (self.error, *_RAISED) as error:
                refusals.append(words(error))
        return Proposals(tuple(candidates), tuple(refusals))

    def _proposals(self, number: int, description: Description) -> list[CudnnCandidate]:
        """All plans of one graph.

        Raises:
            RuntimeError: There are none.
        """
        token = self._graph(description)
        token.graph.create_execution_plans(self._heuristics())
        if not isinstance(description.node, AttentionNode):  # cuDNN 9.19 may end the process there
            self._add_engines(token)
        token.graph.deselect_numeric_notes(self._notes(description))
        found = []
        for index in range(token.graph.get_execution_plan_count()):
            engine, knobs = token.graph.get_engine_and_knobs_at_index(index)
            configuration = _configuration(number, engine, knobs)
            found.append(CudnnCandidate(self, token, index, description, configuration))
        if not found:
            raise RuntimeError(f"cuDNN {self.version} has no plan for it")
        return found

    def candidate(self, problem: Problem, configuration: Configuration) -> CudnnCandidate:
        """Return the implementation that a configuration names.

        Raises:
            EngineError: This version has no such implementation.
        """
        given = dict(configuration)
        try:
            number, engine = given.pop(GRAPH), given.pop(ENGINE)
            description = describe(problem)[number]
            knobs = {getattr(self._frontend.knob_type, n): value for n, value in given.items()}
            token = self._graph(description)
            token.graph.create_execution_plan(engine, knobs)
        except (*_MISFITS, self.error) as error:
            raise EngineError(
                f"cuDNN {self.version} has no implementation {dict(configuration)}: {words(error)}",
                fix="optimize the model again with the cuDNN that is installed",
            ) from error
        token.graph.deselect_numeric_notes(self._notes(description))
        index = token.graph.get_execution_plan_count() - 1
        return CudnnCandidate(self, token, index, description, configuration)

    def _graph(self, description: Description) -> GraphToken:
        """The operation graph, without plans."""
        token = self._session.hold(build_graph(self._frontend, self.handle, description))
        token.graph.validate()
        token.graph.build_operation_graph()
        return token

    def _add_engines(self, token: GraphToken) -> None:
        """Append a plan with default settings for every engine that no heuristic named."""
        plans = range(token.graph.get_execution_plan_count())
        named = {token.graph.get_engine_and_knobs_at_index(plan)[0] for plan in plans}
        for engine in range(token.graph.get_engine_count()):
            if engine not in named:
                with suppress(self.error, RuntimeError):  # it does not compute this graph
                    token.graph.create_execution_plan(engine, {})

    def use(self, stream: int) -> None:
        """Send what runs next to a stream."""
        self._frontend.set_stream(handle=self.handle, stream=stream)

    def _heuristics(self) -> list[Any]:
        mode = self._frontend.heur_mode
        return [mode.A, mode.B, mode.FALLBACK]

    def _notes(self, description: Description) -> list[Any]:
        names = _STRICT_SHORTCUTS if description.strict else _SHORTCUTS
        return [getattr(self._frontend.numerical_note, name) for name in names]


def _configuration(number: int, engine: int, knobs: Mapping[Any, int]) -> Configuration:
    named = sorted((knob.name, int(value)) for knob, value in knobs.items())
    return ((GRAPH, number), (ENGINE, int(engine)), *named)


def _version(number: int) -> str:
    """92800 is 9.28.0."""
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def _settle() -> None:
    """Wait for the streams that take turns; a kernel that failed has ended too."""
    driver = bindings()
    driver.cuStreamSynchronize(driver.CUstream(LEGACY_STREAM))


def _frontend() -> Any:
    _load_library()
    try:
        import cudnn
    except ImportError as error:
        raise EngineError(
            f"cuDNN needs nvidia-cudnn-frontend, which cannot be imported: {error}",
            fix=INSTALL_GPU_PACKAGES,
        ) from error
    return cudnn


def _load_library() -> None:
    """Load the wheel's library first: the frontend looks for it in one of Python's folders only."""
    try:
        spec = importlib.util.find_spec("nvidia.cudnn")
    except ModuleNotFoundError:
        return  # the frontend finds one that the system has, or says that there is none
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        for path in sorted((Path(folder) / "lib").glob("libcudnn.so.*")):
            ctypes.CDLL(str(path))
