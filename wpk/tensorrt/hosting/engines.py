"""Engines that hold generated kernels in place of some operators: built, placed on the GPU, measured."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median

from wpk.device import CudaDevice, Patience, Subject, time_side_by_side
from wpk.execution import Replay
from wpk.nvinfer import (
    Arrays,
    Binding,
    EngineCalls,
    EngineSession,
    PlacedEngine,
    new_profiler,
)
from wpk.progress import Progress, silent
from wpk.tensorrt.build import BuiltEngine, Request, build
from wpk.tensorrt.choosing import (
    EngineInformation,
    Profile,
    parse_engine,
    profile_of_reports,
)
from wpk.tensorrt.hosting.plugin_nodes import with_plugins
from wpk.tensorrt.operators import PluginOperator
from wpk.trial import Regime

WHOLE = Patience(least=100, most=500, noise=0.002, seconds=1.0)
"""For one measurement of a whole engine."""

PROFILED = 20
"""Executions of one profile."""


@dataclass(frozen=True)
class HostedEngine:
    """An engine that was built, on the GPU.

    Attributes:
        built: Its bytes, and what it serves.
        placed: With memory for its inputs and outputs.
        replaced: Its operators that are plugins.
    """

    built: BuiltEngine
    placed: PlacedEngine
    replaced: frozenset[str]


class EngineBuilder:
    """Builds engines of one network for one GPU: a `wpk.tensorrt.choosing.Builder`."""

    def __init__(
        self,
        binding: Binding,
        request: Request,
        plugins: Mapping[str, PluginOperator],
        device: CudaDevice,
        calls: EngineCalls,
        inputs: Arrays,
        progress: Progress = silent,
    ) -> None:
        """Remember what to build of.

        Args:
            binding: TensorRT, with the plugin library loaded where there are plugins.
            request: The network without plugins.
            plugins: By operator.
            device: The GPU, opened with ``calls`` as its libraries.
            calls: What executes engines there.
            inputs: To measure on; arrays by name.
            progress: Told of each build.
        """
        self._binding, self._request, self._plugins = binding, request, plugins
        self._device, self._calls, self._inputs = device, calls, inputs
        self._progress = progress
        self._built: list[HostedEngine] = []

    def build(self, replaced: frozenset[str]) -> HostedEngine:
        """The engine in which these operators are plugins.

        Raises:
            TensorRTError: TensorRT did not build it, or cannot load it.
        """
        plugins = {name: self._plugins[name] for name in sorted(replaced)}
        request = replace(self._request, model=with_plugins(self._request.model, plugins))
        with self._device.active():
            built = build(self._binding, request, self._progress)
            session = EngineSession(self._binding, built.data)
        placed = PlacedEngine(session, self._device, self._calls, self._inputs)
        self._built.append(HostedEngine(built, placed, replaced))
        return self._built[-1]

    def close(self) -> None:
        """Let go of all engines that were built."""
        while self._built:
            self._built.pop().placed.close()


class EngineProfiler:
    """Inspects and measures them: a `wpk.tensorrt.choosing.Profiler`."""

    def __init__(self, binding: Binding, device: CudaDevice) -> None:
        """Measure on a device."""
        self._device = device
        self._profiler = new_profiler(binding.module)

    def information(self, engine: HostedEngine) -> EngineInformation:
        """What the inspector says of it."""
        return parse_engine(engine.placed.layers())

    def profile(self, engine: HostedEngine) -> Profile:
        """Times of its layers, each the median of several executions."""
        return profile_of_reports(engine.placed.profiled(self._profiler, PROFILED))

    def latency(self, engine: HostedEngine) -> float:
        """Seconds of a whole execution, as a graph, behind another one."""
        return seconds_of(self._device, engine.placed.replay)


def seconds_of(device: CudaDevice, replay: Replay) -> float:
    """Seconds of a whole engine, captured, behind another execution: the median of many."""
    subject = Subject(replay, 1, replay.replay, Regime.WARM)
    (timing,) = time_side_by_side(device, [subject], WHOLE)
    return median(timing.seconds)
