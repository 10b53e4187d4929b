"""``wpk.optimize``: from a model to a verified plan. This file reads like the picture in the docs."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.backends import open_device
from wpk.build import CompilePool
from wpk.checks.pass_proof import proven
from wpk.checks.scope import require_inputs, scope_of
from wpk.checks.verification import checked
from wpk.dtypes import Precision
from wpk.execution import Device
from wpk.lowering.model import lower_model
from wpk.plans.assembly import Setting, assemble
from wpk.plans.lock import read_lock
from wpk.plans.locked import Asked, find_locked, require_fit, require_target, with_evidence
from wpk.plans.origin import model_digest, provenance
from wpk.plans.plan import CheckMode, PlanBundle
from wpk.plans.plan_file import write_plan
from wpk.plans.ports import input_ports
from wpk.progress import Progress, silent
from wpk.schedules.registry import TEMPLATES
from wpk.search.model_search import search_model
from wpk.search.static_search import check_skips
from wpk.search.store_record import Run
from wpk.tuning.cache_folder import CacheFolder
from wpk.tuning.confirmation import confirmed
from wpk.tuning.gpu_lease import GpuLease
from wpk.tuning.measuring import plan_tuning
from wpk.tuning.model_tuning import Means, tune_model
from wpk.tuning.offers import Offers
from wpk.tuning.preview import Preview, preview_of
from wpk.tuning.runs import WhatToBuild, asked_of, entered, find_run, find_same_run
from wpk.tuning.selection import require_measuring, selected_problems
from wpk.tuning.target_choice import choose_target

Paths = str | os.PathLike[str]


def optimize(
    model: Paths,
    output: Paths,
    *,
    target: str = "auto",
    precision: Precision | str = Precision.FP32,
    shapes: Mapping[str, Sequence[int]] | None = None,
    skip_passes: Collection[str] = (),
    skip_templates: Collection[str] = (),
    cache: Paths | None = None,
    search: str = "auto",
    effort: int = 1,
    budget: str | None = None,
    seed: int = 0,
    operators: Sequence[str] = (),
    resume: str | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    progress: Progress = silent,
    on_run: Callable[[Run], None] | None = None,
) -> PlanBundle:
    """Turn an ONNX model into a plan file.

    Args:
        model: The ONNX file; external data lies beside it.
        output: The plan to write; it appears only after every check has passed.
        target: Name of a GPU (``wpk targets``), its ``sm_XY``, a target file, or ``auto``: the GPU
            of this machine.
        precision: What multiplications may use: fp32, tf32, fp16 or bf16.
        shapes: Shapes of inputs whose dimensions the model leaves free.
        skip_passes: Graph passes not to run.
        skip_templates: Schedule templates not to use.
        cache: Folder of compiled kernels and measured trials; the user's cache folder by default.
        search: ``static`` chooses by models; a searcher (`wpk.search.registry`) by measuring on the
            GPU of this machine; ``auto`` measures where that GPU is the target.
        effort: How thoroughly each problem is searched, 0 to 3 (`wpk.search.budget`).
        budget: What measuring may cost, e.g. ``30m`` or ``400 trials``; by default what the effort
            says.
        seed: Fixes the search.
        operators: Patterns of the operators to measure, e.g. ``conv_*``; the others keep what the
            models choose. By default all are measured.
        resume: An earlier run to go on with, which was asked for the same (see `recall`).
        check: ``on``: execute every operator and the whole engine, on the GPU where it measured and
            else on the CPU, and compare before anything is written; ``quick``: so at the tuned sizes
            and on one drawn input only (`wpk.checks.scope.Scope`); ``off``: not at all.
        inputs: Inputs of the model, arrays by name, to check on beside drawn ones.
        progress: Told of every stage.
        on_run: Told of the run in the tuning store, before anything is measured.

    Returns:
        What was written.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    check_skips(skip_templates, TEMPLATES)
    scope = scope_of(check, inputs)
    path, places, shapes = Path(model), CacheFolder(cache), dict(shapes or {})
    gpu = choose_target(target, Precision(precision))
    tuning = plan_tuning(gpu, search, effort, budget, seed, places.store, tuple(operators))
    require_measuring(tuning is not None, operators, resume)
    if tuning is not None and resume is None:
        tuning = replace(tuning, store=places.writable_store)
    what = WhatToBuild(path, gpu.name, Precision(precision), shapes, skip_passes, skip_templates)
    request = what.request(search, effort, budget, operators)
    earlier = None if resume is None else find_same_run(places.store, resume, request, seed)
    lowered = lower_model(path, shapes, Precision(precision), skip_passes, progress)
    require_inputs(inputs, input_ports(lowered.program))
    proof = None if scope is None else proven(lowered, scope, progress)
    problems = [operator.problem for operator in lowered.program.operators]
    named = selected_problems(lowered.program.operators, operators)
    setting = Setting(gpu, Precision(precision), provenance(path, lowered, shapes, skip_passes))
    with (
        CompilePool(gpu.arch, cache=places.kernels) as pool,
        GpuLease() as lease,
        Offers(lease, named if tuning is not None else ()) as offers,
    ):
        found = search_model(problems, TEMPLATES, gpu, pool.compile, progress, skip=skip_templates)
        bundle = assemble(lowered.program, found, setting)
        if tuning is not None:
            with entered(tuning, request, earlier, on_run) as how:
                means = Means(pool.submit, lease, offers)
                found = tune_model(lowered, bundle.plan, found, setting, means, how, progress)
                process = lease.process()
                bundle = confirmed(lowered.program, bundle, found, setting, process, progress)
        if proof is not None:
            with _checker(lease, measured=tuning is not None) as device:
                bundle = checked(bundle, proof, device, progress)
    write_plan(Path(output), bundle)
    return bundle


def _checker(lease: GpuLease, *, measured: bool) -> AbstractContextManager[Device]:
    """What executes a plan to check it: the GPU that measured it, else the CPU."""
    return nullcontext(lease.process()) if measured else open_device("cpu")


def preview(
    model: Paths,
    *,
    target: str = "auto",
    precision: Precision | str = Precision.FP32,
    shapes: Mapping[str, Sequence[int]] | None = None,
    skip_passes: Collection[str] = (),
    skip_templates: Collection[str] = (),
    cache: Paths | None = None,
    search: str = "auto",
    effort: int = 1,
    budget: str | None = None,
    seed: int = 0,
    operators: Sequence[str] = (),
    progress: Progress = silent,
) -> Preview:
    """What `optimize` would do with the same arguments; compiles, measures and writes nothing.

    Raises:
        WpkError: With what is wrong and what to do, as `optimize` would.
    """
    check_skips(skip_templates, TEMPLATES)
    gpu = choose_target(target, Precision(precision))
    store = CacheFolder(cache).store
    tuning = plan_tuning(gpu, search, effort, budget, seed, store, tuple(operators))
    require_measuring(tuning is not None, operators, None)
    lowered = lower_model(Path(model), shapes or {}, Precision(precision), skip_passes, progress)
    return preview_of(
        lowered.program.operators, gpu, tuning, operators, progress, skip=skip_templates
    )


def recall(run: str, cache: Paths | None = None) -> dict[str, Any]:
    """What an earlier run was asked to do, as keyword arguments of `optimize`.

    Raises:
        WpkError: There is no such run in the tuning store; names the latest.
    """
    return asked_of(find_run(CacheFolder(cache).store, run))


def rebuild(
    model: Paths,
    output: Paths,
    lock: Paths,
    *,
    target: str | None = None,
    precision: str | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    skip_passes: Collection[str] | None = None,
    cache: Paths | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    progress: Progress = silent,
) -> PlanBundle:
    """Build the plan of a lock file again, without searching or measuring.

    Needs the versions of wpk and NVRTC that wrote the lock; the plan is then the same to the byte.

    Args:
        model: The ONNX file that was locked.
        output: The plan to write; it appears only after every check has passed.
        lock: The lock file.
        target: What the lock must be for, as the next three; by default what it says. A target that
            was described in a file needs that file again.
        precision: See `optimize`.
        shapes: See there.
        skip_passes: See there.
        cache: Folder of compiled kernels; the user's cache folder by default.
        check: As for `optimize`, on the CPU.
        inputs: See there.
        progress: Told of every stage.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    path, locked = Path(model), read_lock(Path(lock))
    scope = scope_of(check, inputs)
    skipped = None if skip_passes is None else tuple(sorted(skip_passes))
    require_fit(locked, Asked(model_digest(path), precision, shapes, skipped))
    gpu = choose_target(target or locked.target, locked.precision)
    require_target(locked, gpu)
    lowered = lower_model(path, locked.shapes, locked.precision, locked.skipped_passes, progress)
    require_inputs(inputs, input_ports(lowered.program))
    proof = None if scope is None else proven(lowered, scope, progress)
    origin = provenance(path, lowered, locked.shapes, locked.skipped_passes)
    with CompilePool(gpu.arch, cache=CacheFolder(cache).kernels) as pool:
        found = find_locked(locked, lowered.program, gpu, pool.compile)
    bundle = assemble(lowered.program, found, Setting(gpu, locked.precision, origin))
    bundle = with_evidence(bundle, locked)
    if proof is not None:
        with open_device("cpu") as device:  # the plan keeps the evidence that was locked
            checked(bundle, proof, device, progress)
    write_plan(Path(output), bundle)
    return bundle
