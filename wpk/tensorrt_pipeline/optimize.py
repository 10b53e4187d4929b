"""From a model to an engine of TensorRT.

The full TensorRT hosts generated kernels where they win; TensorRT for RTX, which takes none, competes with a plan of
wpk's own as a whole.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import input_ports, provenance
from wpk.checks import (
    Interface,
    PassProof,
    check_foreign_engine,
    proven,
    require_inputs,
    require_right,
    scope_of,
)
from wpk.codec import encode
from wpk.device import CudaDevice
from wpk.dtypes import Precision
from wpk.engine import random_inputs
from wpk.errors import TargetError
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.lowering.program import Program
from wpk.nvinfer import EngineCalls, EngineSession, PlacedEngine
from wpk.options import BuildOptions, SearchOptions, TensorRTOptions, keywords, split_options
from wpk.pipeline import optimize
from wpk.plan import Check, CheckMode, PlanBundle, Provenance, write_plan
from wpk.progress import Progress, silent
from wpk.search.loop import OnRivals, choose_target, share_of
from wpk.shape_ranges import SizeRange
from wpk.tensorrt import (
    ANY_BATCH,
    Binding,
    BuiltEngine,
    Request,
    TensorRTError,
    build,
    describe,
    exported,
    find_binding,
    operator_names,
    operator_of,
    require_target,
    write_engine,
)
from wpk.tensorrt.choosing import Choices, Network, choose
from wpk.tensorrt.hosting import (
    EngineBuilder,
    EngineProfiler,
    load_plugins,
    without_implementation,
)
from wpk.tensorrt.operators import PluginOperator
from wpk.tensorrt_pipeline.outcome import TensorRTOutcome
from wpk.tensorrt_pipeline.plugins import count_forms, make_plugins
from wpk.tensorrt_pipeline.whole_engines import own_against

Arrays = Mapping[str, NDArray[np.generic]]

NO_PLUGINS = "none"
"""In place of a plugin library: TensorRT's own layers only."""


def optimize_tensorrt(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    tensorrt: TensorRTOptions | None = None,
    cache: str | os.PathLike[str] | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Arrays] = (),
    progress: Progress = silent,
    **options: Any,
) -> TensorRTOutcome:
    """Turn an ONNX model into a serialized engine of the TensorRT that is installed, and a JSON that tells of it.

    Args:
        model: The ONNX file; external data lies beside it.
        output: The engine to write; ``OUTPUT.json`` appears beside it, both only after every check has passed.
        tensorrt: How TensorRT builds, and which plugin library it loads.
        cache: As for `wpk.optimize`; so are ``check``, ``inputs``, ``progress`` and ``options``.
        check: The engine is executed where the target's GPU is, and its outputs compared with ONNX Runtime's.
        inputs: See there.
        progress: Told of every stage.
        options: See there; what searching may cost is divided among the operators.

    Returns:
        What was written. Where TensorRT for RTX built the engine, it may be a plan of wpk's own, if that is
        faster.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    tensorrt = tensorrt or TensorRTOptions()
    binding = find_binding()
    build_options, search = split_options(options)
    precision = Precision(build_options.precision)
    target = choose_target(build_options.target, precision)
    require_target(binding, target)
    lowered = lower_model(
        Path(model),
        build_options.shapes,
        precision,
        build_options.skip_passes,
        progress,
        clusters=False,  # a squeeze may take two steps, and a plugin is one
    )
    _require_one_free(lowered.program)
    scope = scope_of(check, inputs)
    require_inputs(inputs, input_ports(lowered.program))
    job = _Job(
        binding=binding,
        lowered=lowered,
        request=Request(
            exported(lowered.graph), target, precision, tensorrt, _batches(lowered.program)
        ),
        proof=None if scope is None else proven(lowered, scope, progress),
        build=replace(build_options, target=target.name),
        search=search,
        cache=cache,
        progress=progress,
    )
    return job.native(Path(output)) if binding.rtx else job.hosting(Path(output))


def _require_one_free(program: Program) -> None:
    """Refuse several free dimensions, for which no profile is made.

    Raises:
        TensorRTError: There are several.
    """
    if len(program.free) > 1:
        raise TensorRTError(
            f"several dimensions are free: {', '.join(program.free)}; one, the batch, may be",
            fix="decide the others with --shapes, or use --engine wpk",
        )


def _batches(program: Program) -> SizeRange:
    """The sizes of the batch: the limits that were asked for, else TensorRT's."""
    for name, (smallest, largest) in program.limits.items():
        return SizeRange(smallest, program.free[name], largest)
    return ANY_BATCH


@dataclass(frozen=True)
class _Job:
    """What an engine is made of, for, and checked on; see `optimize_tensorrt`."""

    binding: Binding
    lowered: LoweredModel
    request: Request
    proof: PassProof | None
    build: BuildOptions
    search: SearchOptions
    cache: str | os.PathLike[str] | None
    progress: Progress

    def hosting(self, output: Path) -> TensorRTOutcome:
        """TensorRT's engine with generated kernels in it, on the GPU that it finds."""
        library = self.request.options.plugin_library
        if library is None:
            raise TensorRTError(
                "no plugin library is given, through which generated kernels take part",
                fix="give --plugin-library libwpk_tensorrt.so (docs/tensorrt.md says how it is built), or "
                "ask for TensorRT's own layers only: --plugin-library none",
            )
        if not self._gpu_is_here():
            raise TargetError(
                f"{self.binding.title} builds for the GPU that it finds, and this machine has no "
                f"{self.request.target.description}",
                fix="build on a machine with that GPU, or build a plan of wpk's own (--engine wpk)",
            )
        plugins: dict[str, PluginOperator] = {}
        refused = dict.fromkeys(operator_names(self.lowered.graph), "not asked for")
        if str(library) != NO_PLUGINS:
            load_plugins(self.binding, library)
            plugins, refused = self._plugins()
        network = self._network(frozenset(plugins))
        calls = EngineCalls()
        with CudaDevice(libraries=calls) as device:
            builder = EngineBuilder(
                self.binding,
                self.request,
                plugins,
                device,
                calls,
                self._drawn(self._sizes()[1:2]),
                self.progress,
            )
            try:
                profiler = EngineProfiler(self.binding, device)
                engine, choices = choose(builder, profiler, network)
                checks = self._checked(engine.built, device, calls)
            finally:
                builder.close()
        description = self._described(engine.built, checks, choices, refused)
        write_engine(output, engine.built, description)
        return TensorRTOutcome(output, description, _hosting_remark(choices, plugins))

    def native(self, output: Path) -> TensorRTOutcome:
        """TensorRT for RTX's engine, or wpk's own plan where both can be measured and that is faster."""
        library = self.request.options.plugin_library
        if library is not None and str(library) != NO_PLUGINS:
            load_plugins(self.binding, library)
        engine = build(self.binding, self.request, self.progress)
        if not self._gpu_is_here():
            description = self._described(engine, self._proven(), None, {})
            write_engine(output, engine, description)
            where = self.request.target.description
            return TensorRTOutcome(
                output,
                description,
                f"the engine was neither executed nor compared: there is no {where} here",
            )
        calls = EngineCalls()
        with tempfile.TemporaryDirectory(prefix="wpk-plan-") as folder:
            own = self._optimized(self.lowered.source.path, Path(folder, "own.plan"), self.search)
            with CudaDevice(libraries=calls) as device:
                checks = self._checked(engine, device, calls)
                session = EngineSession(self.binding, engine.data)
                with PlacedEngine(session, device, calls, random_inputs(own.plan, 0)) as placed:
                    times = own_against(own, placed, device)
        remark = f"wpk's own plan takes {times.seconds * 1e6:.1f} µs, TensorRT's engine {times.rival * 1e6:.1f} µs"
        if times.is_won:
            write_plan(output, own)
            return TensorRTOutcome(output, None, remark)
        description = self._described(engine, checks, None, {})
        write_engine(output, engine, description)
        return TensorRTOutcome(output, description, remark)

    def _gpu_is_here(self) -> bool:
        try:
            return choose_target("auto", Precision.FP32) == self.request.target
        except TargetError:
            return False

    def _plugins(self) -> tuple[dict[str, PluginOperator], dict[str, str]]:
        """Each operator as a plugin; what the search may cost is divided among them.

        An operator stays one: the other forms that it may have are TensorRT's to find.
        """
        model, names = self.request.model, operator_names(self.lowered.graph)
        search = share_of(self.search, max(1, count_forms(model, names)))
        search = replace(search, forms="fixed")

        def optimizing(path: Path, output: Path) -> list[PlanBundle]:
            rivals: dict[str, PlanBundle] = {}
            best = self._optimized(path, output, search, rivals.update)
            return [best, *(each for each in rivals.values() if not _same_work(each, best))]

        return make_plugins(model, names, optimizing, self.progress)

    def _optimized(
        self,
        path: Path,
        output: Path,
        search: SearchOptions,
        on_rivals: OnRivals | None = None,
    ) -> PlanBundle:
        """A plan of wpk's own, its kernels executed and compared if anything is."""
        own = replace(
            self.build, shapes=self.build.shapes if path == self.lowered.source.path else {}
        )
        return optimize(
            path,
            output,
            cache=self.cache,
            check=CheckMode.OFF if self.proof is None else CheckMode.QUICK,
            on_rivals=on_rivals,
            **keywords(own, search),
        )

    def _network(self, replaceable: frozenset[str]) -> Network:
        model, operators = self.request.model, operator_names(self.lowered.graph)
        owners = {node.name: operator_of(node.name, operators) for node in model.graph.node}
        nodes = {
            operator: frozenset(name for name, owner in owners.items() if owner == operator)
            for operator in operators
        }
        lacking = without_implementation(self.binding, model)
        required = {owners[name] or name for name in lacking}
        bare = frozenset(name for name, owner in owners.items() if owner is None)
        return Network(nodes, bare, replaceable, frozenset(required))

    def _sizes(self) -> tuple[int, ...]:
        """Of the free dimension: the smallest, the fastest and the largest; none where nothing is free."""
        sizes = self.request.batches
        several = (sizes.smallest, sizes.fastest, sizes.largest)
        return several if self.lowered.program.free else ()

    def _drawn(self, sizes: Sequence[int]) -> Arrays:
        program = self.lowered.program
        free = dict.fromkeys(program.free, sizes[0]) if sizes else {}
        ports = Interface(input_ports(program), free, self.request.precision)
        return random_inputs(ports, 0)

    def _checked(
        self, engine: BuiltEngine, device: CudaDevice, calls: EngineCalls
    ) -> tuple[Check, ...]:
        """The engine's outputs beside ONNX Runtime's, at every size of its profile."""
        if self.proof is None:
            return ()

        def run(arrays: Arrays) -> Arrays:
            session = EngineSession(self.binding, engine.data)
            with PlacedEngine(session, device, calls, arrays) as placed:
                return placed.run(arrays)

        checks = check_foreign_engine(run, self.proof, self._sizes(), self.progress)
        require_right(checks, f"the engine of {self.binding.title}")
        return (*self._proven(), *checks)

    def _proven(self) -> tuple[Check, ...]:
        """What was compared of the graph passes."""
        return () if self.proof is None else self.proof.checks

    def _described(
        self,
        engine: BuiltEngine,
        checks: Sequence[Check],
        choices: Choices | None,
        refused: Mapping[str, str],
    ) -> dict[str, Any]:
        source = self.lowered.source
        origin = provenance(source.path, self.lowered, source.shapes, source.skip)
        told = describe(
            self.binding,
            self.request,
            engine,
            operator_names(self.lowered.graph),
            dict(encode(origin, Provenance)),
        )
        return {
            **told,
            "checks": [encode(each, Check) for each in checks],
            "choices": None if choices is None else choices.as_json(),
            "no_plugin": dict(sorted(refused.items())),
        }


def _hosting_remark(choices: Choices, plugins: Mapping[str, object]) -> str:
    return f"{len(choices.replaced)} of {len(plugins)} operators that could be are plugins"


def _same_work(one: PlanBundle, other: PlanBundle) -> bool:
    """Whether two plans of a model are computed by the same candidates."""
    candidates = [[step.candidate for step in each.plan.steps] for each in (one, other)]
    return candidates[0] == candidates[1]
