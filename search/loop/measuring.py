"""These functions decide which GPU a plan is compiled for, and whether and on what it is measured."""

import logging
from pathlib import Path

from wpk.backends import read_gpu
from wpk.device import GpuFacts, differences
from wpk.dtypes import Precision
from wpk.errors import EngineError, LaunchError, TargetError
from wpk.options import SearchOptions
from wpk.search.loop.budget import Budget, effort_of, parse_budget
from wpk.search.loop.tuning import Tuning
from wpk.search.searchers import find_searcher
from wpk.targets import (
    Target,
    named_target,
    require_compilable,
    require_precision,
    target_of_gpu,
)

STATIC, AUTO = "static", "auto"

_log = logging.getLogger(__name__)


def choose_target(name: str, precision: Precision) -> Target:
    """Return the GPU to compile for.

    Args:
        name: Of a known target, its ``sm_XY``, a target file, or ``auto``: the GPU of this machine.
        precision: What it must be able to do.

    Raises:
        TargetError: It is unknown, cannot be compiled for, or lacks the precision.
    """
    target = target_here() if name == "auto" else named_target(name)
    require_compilable(target)
    require_precision(target, precision)
    return target


def target_here() -> Target:
    """Return the target that the GPU of this machine is.

    Raises:
        TargetError: There is no GPU, or none that is known.
    """
    try:
        gpu = read_gpu()
    except EngineError as error:
        raise TargetError(
            f"target 'auto' is the GPU of this machine, and there is none: {error.what}",
            fix="name the GPU to compile for, e.g. --target h200 (see wpk targets)",
        ) from error
    return target_of_gpu(gpu.name, gpu.capability)


def plan_tuning(target: Target, options: SearchOptions, store: Path) -> Tuning | None:
    """Return how to tune, or None to choose by models alone.

    Args:
        target: The GPU compiled for.
        options: How candidates are to be found.
        store: The file of trials.

    Raises:
        WpkError: There is no such searcher, effort or budget.
        EngineError: A searcher is asked for by name, and the target cannot be measured here.
    """
    effort = effort_of(options.effort)
    budget = Budget(effort.seconds) if options.budget is None else parse_budget(options.budget)
    gpu = None if options.search == STATIC else _gpu_of(target, options.search)
    if gpu is None:
        return None
    for difference in differences(gpu, target):
        _log.warning("%s has %s as %s is known to have", gpu.name, difference, target.name)
    return Tuning(options.search, effort, budget, options.seed, store, gpu, options.operators)


def _gpu_of(target: Target, search: str) -> GpuFacts | None:
    """The GPU of this machine, if it is the target; None where it need not be."""
    find_searcher(search)
    try:
        gpu = read_gpu()
    except (EngineError, LaunchError):
        if search == AUTO:
            return None
        raise
    if _is(gpu, target):
        return gpu
    if search == AUTO:
        return None
    raise EngineError(
        f"the GPU of this machine is {gpu.name}, and the plan is for {target.name}",
        fix="choose --target auto to measure here, or --search static",
    )


def setup_here() -> tuple[str, str] | None:
    """Return name and architecture of the target that this machine measures on; None without a GPU."""
    try:
        target = target_here()
    except TargetError:
        return None
    return target.name, target.arch


def _is(gpu: GpuFacts, target: Target) -> bool:
    return (
        gpu.capability == target.capability
        and target_of_gpu(gpu.name, gpu.capability).name == target.name
    )
