"""TensorRT's engine with generated kernels in it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from wpk.device import CudaDevice
from wpk.errors import TargetError
from wpk.nvinfer import EngineCalls
from wpk.plan import PlanBundle
from wpk.search.loop import share_of
from wpk.tensorrt import TensorRTError, operator_names, operator_of, write_engine
from wpk.tensorrt.choosing import Choices, Network, choose
from wpk.tensorrt.hosting import EngineBuilder, EngineProfiler, load_plugins, without_implementation
from wpk.tensorrt.operators import PluginOperator
from wpk.tensorrt_pipeline.job import Job
from wpk.tensorrt_pipeline.outcome import TensorRTOutcome
from wpk.tensorrt_pipeline.plugins import count_forms, make_plugins

NO_PLUGINS = "none"
"""In place of a plugin library: TensorRT's own layers only."""


def host(job: Job, output: Path) -> TensorRTOutcome:
    """Build TensorRT's engine with generated kernels in it, on the GPU that it finds, and write it.

    Raises:
        TensorRTError: There is no plugin library, or TensorRT refuses.
        TargetError: Another GPU than the target's is here.
    """
    library = job.request.options.plugin_library
    if library is None:
        raise TensorRTError(
            "no plugin library is given, through which generated kernels take part",
            fix="give --plugin-library libwpk_tensorrt.so (docs/tensorrt.md says how it is built), or "
            "ask for TensorRT's own layers only: --plugin-library none",
        )
    if not job.gpu_is_here():
        raise TargetError(
            f"{job.binding.title} builds for the GPU that it finds, and this machine has no "
            f"{job.request.target.description}",
            fix="build on a machine with that GPU, or build a plan of wpk's own (--engine wpk)",
        )
    plugins: dict[str, PluginOperator] = {}
    refused = dict.fromkeys(operator_names(job.lowered.graph), "not asked for")
    if str(library) != NO_PLUGINS:
        load_plugins(job.binding, library)
        plugins, refused = _plugins(job)
    network = _network(job, frozenset(plugins))
    calls = EngineCalls()
    with CudaDevice(libraries=calls) as device:
        builder = EngineBuilder(
            job.binding,
            job.request,
            plugins,
            device,
            calls,
            job.drawn(job.sizes()[1:2]),
            job.progress,
        )
        try:
            profiler = EngineProfiler(job.binding, device)
            engine, choices = choose(builder, profiler, network)
            checks = job.checked(engine.built, device, calls)
        finally:
            builder.close()
    description = job.described(engine.built, checks, choices, refused)
    write_engine(output, engine.built, description)
    return TensorRTOutcome(output, description, _hosting_remark(choices, plugins))


def _plugins(job: Job) -> tuple[dict[str, PluginOperator], dict[str, str]]:
    """Each operator as a plugin; what the search may cost is divided among them.

    An operator stays one: the other forms that it may have are TensorRT's to find.
    """
    model, names = job.request.model, operator_names(job.lowered.graph)
    search = share_of(job.search, max(1, count_forms(model, names)))
    search = replace(search, forms="fixed")

    def optimizing(path: Path, output: Path) -> list[PlanBundle]:
        rivals: dict[str, PlanBundle] = {}
        best = job.optimized(path, output, search, rivals.update)
        return [best, *(each for each in rivals.values() if not _same_work(each, best))]

    return make_plugins(model, names, optimizing, job.progress)


def _network(job: Job, replaceable: frozenset[str]) -> Network:
    model, operators = job.request.model, operator_names(job.lowered.graph)
    owners = {node.name: operator_of(node.name, operators) for node in model.graph.node}
    nodes = {
        operator: frozenset(name for name, owner in owners.items() if owner == operator)
        for operator in operators
    }
    lacking = without_implementation(job.binding, model)
    required = {owners[name] or name for name in lacking}
    bare = frozenset(name for name, owner in owners.items() if owner is None)
    return Network(nodes, bare, replaceable, frozenset(required))


def _hosting_remark(choices: Choices, plugins: Mapping[str, object]) -> str:
    return f"{len(choices.replaced)} of {len(plugins)} operators that could be are plugins"


def _same_work(one: PlanBundle, other: PlanBundle) -> bool:
    """Whether two plans of a model are computed by the same candidates."""
    candidates = [[step.candidate for step in each.plan.steps] for each in (one, other)]
    return candidates[0] == candidates[1]
