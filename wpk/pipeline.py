"""``wpk.optimize``: from a model to a verified plan. This file reads like the picture in the docs."""

import hashlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from wpk.build.cache import KernelCache, default_cache_folder
from wpk.build.pool import CompilePool
from wpk.dtypes import Precision
from wpk.engine.assembly import Setting, assemble
from wpk.engine.check import checked
from wpk.engine.confirmation import confirmed
from wpk.engine.measuring import plan_tuning, target_here
from wpk.engine.plan import (
    PassSummary,
    PlanBundle,
    Provenance,
    RefusalSummary,
)
from wpk.engine.plan_file import write_plan
from wpk.engine.tuning import tune_model
from wpk.errors import TargetError
from wpk.lowering.model import LoweredModel, lower_model
from wpk.schedules.registry import TEMPLATES
from wpk.search.model_search import search_model
from wpk.targets.registry import find_target, require_compilable, why_precision_unsupported
from wpk.targets.target import Target
from wpk.targets.target_file import load_target

Progress = Callable[[str, int, int], None]


def optimize(
    model: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    target: str = "auto",
    precision: Precision | str = Precision.FP32,
    shapes: Mapping[str, Sequence[int]] | None = None,
    skip_passes: Collection[str] = (),
    cache: str | os.PathLike[str] | None = None,
    search: str = "auto",
    effort: int = 1,
    budget: str | None = None,
    seed: int = 0,
    check: bool = True,
    progress: Progress | None = None,
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
        cache: Folder of compiled kernels and measured trials; the user's cache folder by default.
        search: ``static`` chooses by models; a searcher (`wpk.search.registry`) by measuring on the
            GPU of this machine; ``auto`` measures where that GPU is the target.
        effort: How thoroughly each problem is searched, 0 to 3 (`wpk.search.budget`).
        budget: What measuring may cost, e.g. ``30m`` or ``400 trials``; by default what the effort
            says.
        seed: Fixes the search.
        check: Execute every kernel on the CPU and compare before anything is written.
        progress: Called with a stage, its finished parts and all its parts.

    Returns:
        What was written.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    path, tell = Path(model), progress or _silent
    gpu = _target(target, Precision(precision))
    tuning = plan_tuning(gpu, search, effort, budget, seed, _folder(cache) / "trials.sqlite")
    lowered = lower_model(path, shapes or {}, Precision(precision), skip_passes, tell)
    with CompilePool(gpu.arch, cache=KernelCache(None if cache is None else Path(cache))) as pool:
        found = search_model(
            [operator.problem for operator in lowered.program.operators],
            TEMPLATES,
            gpu,
            pool.compile,
            tell,
        )
        provenance = _provenance(path, lowered, shapes or {}, skip_passes)
        setting = Setting(gpu, Precision(precision), provenance)
        bundle = assemble(lowered.program, found, setting)
        if tuning is not None:
            found = tune_model(lowered, bundle.plan, found, setting, pool.compile, tuning, tell)
            tell("comparing engines", 0, 1)
            bundle = confirmed(bundle, assemble(lowered.program, found, setting))
            tell("comparing engines", 1, 1)
    if check:
        bundle = checked(bundle, lowered, path, tell)
    write_plan(Path(output), bundle)
    return bundle


def _folder(cache: str | os.PathLike[str] | None) -> Path:
    return default_cache_folder() if cache is None else Path(cache)


def _silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody reads."""


def _target(name: str, precision: Precision) -> Target:
    """The GPU to compile for.

    Raises:
        TargetError: It is unknown, cannot be compiled for, or lacks the precision.
    """
    if name == "auto":
        target = target_here()
    elif name.endswith((".json", ".toml")):
        target = load_target(Path(name))
    else:
        target = find_target(name)
    require_compilable(target)
    reason = why_precision_unsupported(target, precision)
    if reason is not None:
        raise TargetError(reason, fix="choose another --precision or another --target")
    return target


def _provenance(
    path: Path,
    lowered: LoweredModel,
    shapes: Mapping[str, Sequence[int]],
    skipped: Collection[str],
) -> Provenance:
    return Provenance(
        model=path.name,
        model_digest=hashlib.sha256(path.read_bytes()).hexdigest(),
        opset=lowered.opset,
        shapes={name: tuple(shape) for name, shape in shapes.items()},
        skipped_passes=tuple(sorted(skipped)),
        passes=tuple(
            PassSummary(
                record.name,
                record.rewritten,
                tuple(RefusalSummary(r.node, r.reason) for r in record.refusals),
                record.skipped,
            )
            for record in lowered.passes
        ),
        before=lowered.before,
        after=lowered.after,
    )
