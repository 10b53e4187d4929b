"""``wpk.optimize``: from a model to a verified plan. This file reads like the picture in the docs."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import (
    EvidenceBook,
    Setting,
    assemble,
    compile_locked,
    implementations_of,
    input_ports,
    model_digest,
    provenance,
    read_lock,
    require_fit,
    require_locked_plan,
    require_target,
    with_evidence,
)
from wpk.backends import open_device
from wpk.bench import GpuLease, Offers
from wpk.build import CompilePool
from wpk.checks import proven, require_inputs, require_passed, scope_of, verify, with_checks
from wpk.dtypes import Precision
from wpk.execution import Device
from wpk.lowering.model import lower_model
from wpk.options import split_options
from wpk.plan import CheckMode, PlanBundle, write_plan
from wpk.progress import Progress, silent
from wpk.schedules import TEMPLATES
from wpk.search.loop import (
    CacheFolder,
    Equipment,
    Preview,
    choose_target,
    confirmed,
    evidence_of,
    plan_tuning,
    preview_of,
    require_measuring,
    runs,
    selected_problems,
    static_choices,
    tune_model,
)
from wpk.search.models import check_skips, search_model
from wpk.search.store import RunRecord

Paths = str | os.PathLike[str]


def optimize(
    model: Paths,
    output: Paths,
    *,
    resume: str | None = None,
    cache: Paths | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    progress: Progress = silent,
    on_run: Callable[[RunRecord], None] | None = None,
    **options: Any,
) -> PlanBundle:
    """Turn an ONNX model into a plan file.

    Args:
        model: The ONNX file; external data lies beside it.
        output: The plan to write; it appears only after every check has passed.
        resume: An earlier run to go on with, which was asked for the same (see `recall`).
        cache: Folder of compiled kernels and measured trials; the user's cache folder by default.
        check: ``on``: execute every operator and the whole engine, on the GPU where it measured and
            else on the CPU, and compare before anything is written; ``quick``: so at the tuned sizes
            and on one drawn input only (`wpk.checks.scope.Scope`); ``off``: not at all.
        inputs: Inputs of the model, arrays by name, to check on beside drawn ones.
        progress: Told of every stage.
        on_run: Told of the run in the tuning store, before anything is measured.
        options: Fields of `wpk.options.BuildOptions` and `wpk.options.SearchOptions`, e.g.
            ``target="h200"``, ``precision="fp16"``, ``budget="30m"``.

    Returns:
        What was written.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    build, search = split_options(options)
    check_skips(build.skip_templates, TEMPLATES)
    scope = scope_of(check, inputs)
    path, places, precision = Path(model), CacheFolder(cache), Precision(build.precision)
    target = choose_target(build.target, precision)
    tuning = plan_tuning(target, search, places.store)
    require_measuring(tuning is not None, search.operators, resume)
    if tuning is not None and resume is None:
        tuning = replace(tuning, store=places.writable_store)
    request = runs.request_of(path, replace(build, target=target.name), search)
    earlier = None if resume is None else runs.find_same_run(places.store, resume, request)

    lowered = lower_model(path, build.shapes, precision, build.skip_passes, progress)
    program = lowered.program
    require_inputs(inputs, input_ports(program))
    proof = None if scope is None else proven(lowered, scope, progress)
    problems = [operator.problem for operator in program.operators]
    named = selected_problems(program.operators, search.operators)
    origin = provenance(path, lowered, build.shapes, build.skip_passes)
    setting = Setting(target, precision, origin)
    with (
        CompilePool(target.arch, cache=places.kernels) as pool,
        GpuLease() as lease,
        Offers(lease, named if tuning is not None else ()) as offers,
    ):
        static = search_model(
            problems, TEMPLATES, target, pool.compile, progress, skip=build.skip_templates
        )
        choices = static_choices(static)
        bundle = assemble(program, choices.implementations, choices.kernels, setting)
        if tuning is None:
            book = EvidenceBook(evidence_of(bundle.plan, choices))
        else:
            equipment = Equipment(pool.submit, lease, offers)
            with runs.entered(tuning, request, earlier, on_run) as (limited, run):
                tuned = tune_model(
                    lowered, bundle.plan, static, target, equipment, limited, run, progress
                )
                process = lease.process()
                bundle, book = confirmed(program, choices, tuned, setting, process, progress)
        if proof is not None:
            with _checker(lease, measured=tuning is not None) as device:
                book = with_checks(book, bundle, proof, device, progress)
    bundle = with_evidence(bundle, book)
    write_plan(Path(output), bundle)
    return bundle


def _checker(lease: GpuLease, *, measured: bool) -> AbstractContextManager[Device]:
    """What executes a plan to check it: the GPU that measured it, else the CPU."""
    return nullcontext(lease.process()) if measured else open_device("cpu")


def preview(
    model: Paths, *, cache: Paths | None = None, progress: Progress = silent, **options: Any
) -> Preview:
    """What `optimize` would do with the same arguments; compiles, measures and writes nothing.

    Raises:
        WpkError: With what is wrong and what to do, as `optimize` would.
    """
    build, search = split_options(options)
    check_skips(build.skip_templates, TEMPLATES)
    precision = Precision(build.precision)
    target = choose_target(build.target, precision)
    tuning = plan_tuning(target, search, CacheFolder(cache).store)
    require_measuring(tuning is not None, search.operators, None)
    lowered = lower_model(Path(model), build.shapes, precision, build.skip_passes, progress)
    operators = lowered.program.operators
    return preview_of(
        operators, target, tuning, search.operators, progress, skip=build.skip_templates
    )


def recall(run: str, cache: Paths | None = None) -> dict[str, Any]:
    """What an earlier run was asked to do, as keyword arguments of `optimize`.

    Raises:
        WpkError: There is no such run in the tuning store; names the latest.
    """
    return runs.recall(CacheFolder(cache).store, run)


def rebuild(
    model: Paths,
    output: Paths,
    lock: Paths,
    *,
    cache: Paths | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    progress: Progress = silent,
    **options: Any,
) -> PlanBundle:
    """Build the plan of a lock file again, without searching or measuring.

    Needs the versions of wpk and NVRTC that wrote the lock; the plan is then the same to the byte.

    Args:
        model: The ONNX file that was locked.
        output: The plan to write; it appears only after every check has passed.
        lock: The lock file.
        cache: Folder of compiled kernels; the user's cache folder by default.
        check: As for `optimize`, on the CPU.
        inputs: See there.
        progress: Told of every stage.
        options: What the lock must be for, fields of `wpk.options.BuildOptions`; by default what it
            says. A target that was described in a file needs that file again.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    path, locked = Path(model), read_lock(Path(lock))
    scope = scope_of(check, inputs)
    asked, _ = split_options(options)
    require_fit(locked, model_digest(path), asked, options)
    target = choose_target(options.get("target", locked.target), locked.precision)
    require_target(locked, target)
    build = locked.build
    lowered = lower_model(path, build.shapes, locked.precision, build.skip_passes, progress)
    require_inputs(inputs, input_ports(lowered.program))
    proof = None if scope is None else proven(lowered, scope, progress)
    implementations = implementations_of(locked, lowered.program, target)
    with CompilePool(target.arch, cache=CacheFolder(cache).kernels) as pool:
        kernels = compile_locked(implementations.values(), pool.compile)
    origin = provenance(path, lowered, build.shapes, build.skip_passes)
    setting = Setting(target, locked.precision, origin)
    bundle = assemble(lowered.program, implementations, kernels, setting)
    bundle = with_evidence(bundle, locked.book)  # what was measured cannot be had again
    require_locked_plan(bundle.plan, locked)
    if proof is not None:
        with open_device("cpu") as device:
            require_passed(verify(bundle, proof, device, progress))
    write_plan(Path(output), bundle)
    return bundle
