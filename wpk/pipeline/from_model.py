"""``wpk.optimize``: from a model to a verified plan."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import input_ports, with_phases
from wpk.build import CompilePool
from wpk.checks import require_inputs, scope_of
from wpk.dtypes import Precision
from wpk.model_source import Model, model_file
from wpk.options import Options, SearchOptions, split_options
from wpk.phases import Phases
from wpk.pipeline.job import EnteredRun, Job
from wpk.pipeline.making import Shop, made_plan
from wpk.plan import CheckMode, Paths, PlanBundle
from wpk.progress import Progress
from wpk.report import shown
from wpk.schedules import TEMPLATES
from wpk.search.loop import CacheFolder, OnRivals, choose_target, selected_problems
from wpk.search.models import ScoringPool, check_skips, find_pruning
from wpk.search.store import RunRecord
from wpk.trial_bench import GpuLease


def optimize(
    model: Model,
    output: Paths,
    *,
    resume: str | None = None,
    cache: Paths | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    example_inputs: Sequence[Any] | Mapping[str, Any] = (),
    progress: Progress | None = None,
    on_run: Callable[[RunRecord], None] | None = None,
    on_rivals: OnRivals | None = None,
    **options: Unpack[Options],
) -> PlanBundle:
    """Turn an ONNX model into a plan file.

    Args:
        model: The ONNX file, whose external data lies beside it; or an `onnx.ModelProto`, the bytes of
            one, or a `torch.nn.Module`, which PyTorch's exporter then makes one of.
        output: The plan to write; it appears only after every check has passed.
        resume: An earlier run to go on with, which was asked for the same (see `recall`).
        cache: Folder of compiled kernels and measured trials; the user's cache folder by default.
        check: ``on``: execute every operator and the whole engine, on the GPU where it measured and
            else on the CPU, and compare before anything is written; ``quick``: so at the tuned sizes
            and on one drawn input only (`wpk.checks.scope.Scope`); ``off``: not at all.
        inputs: Inputs of the model, arrays by name, to check on beside drawn ones.
        example_inputs: What to export a module with: tensors in their order, or by name.
        progress: Told of every stage; by default a line on stderr where that is a terminal
            (`wpk.silent`: never, `wpk.ProgressLine`: always).
        on_run: Told of the run in the tuning store, before anything is measured.
        on_rivals: Told of the whole engines that were measured side by side, by name.
        options: Fields of `wpk.options.BuildOptions` and `wpk.options.SearchOptions`, which say what
            each means, e.g. ``target="h200"``, ``precision="fp16"``, ``budget="30m"``.

    Returns:
        What was written.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    phases = Phases(shown(progress))
    build, search = split_options(options)
    check_skips(build.skip_templates, TEMPLATES)
    scope = scope_of(check, inputs)
    target = choose_target(build.target, Precision(build.precision))
    with model_file(model, example_inputs) as path:
        job = Job(path, build, target, CacheFolder(cache), phases, scope, inputs)
        run = job.run(search, resume, on_run)
        return job.write(_optimized(job, search, run, phases, on_rivals), output)


def _optimized(
    job: Job,
    search: SearchOptions,
    run: EnteredRun | None,
    phases: Phases,
    on_rivals: OnRivals | None = None,
) -> PlanBundle:
    """The way of a model to its plan; where there is a run, it measures what the models chose from."""
    with phases.within("loading the model"):
        forms = job.forms()
    with ScoringPool(job.target, job.build.skip_templates, find_pruning(search.prune)) as scoring:
        scoring.begin(forms.node_count)
        # Rewritten by the passes, cut into operators.
        lowered = forms.lowered(frozenset(job.build.changed_sites))
        lowered.require_sites()
        require_inputs(job.inputs, input_ports(lowered.program))
        selected_problems(lowered.all_operators, search.operators)  # each pattern names one
        run = (
            run if lowered.has_kernels else None
        )  # nothing to measure: no kernel computes anything
        with (
            CompilePool(job.target.arch, cache=job.places.kernels) as pool,
            GpuLease() as lease,
            nullcontext() if run is None else run as entered,
        ):
            made_with = pool, scoring, lease, entered, phases, on_rivals, forms, phases.begun
            bundle = made_plan(Shop(job, search, *made_with), lowered)
            return with_phases(bundle, phases.seconds())
