"""``wpk.rebuild``: the plan of a lock file again, without searching or measuring."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from wpk.assembly import (
    Lock,
    assemble,
    compile_locked,
    implementations_of,
    input_ports,
    locked_bodies,
    model_digest,
    read_lock,
    require_fit,
    require_locked_plan,
    require_target,
    with_evidence,
)
from wpk.backends import open_device
from wpk.build import CompilePool
from wpk.checks import require_inputs, require_passed, scope_of, verify
from wpk.lowering.lowered_model import LoweredModel
from wpk.options import Options, split_options
from wpk.pipeline.job import Job
from wpk.plan import CheckMode, Paths, PlanBundle
from wpk.progress import Progress
from wpk.report import shown
from wpk.search.loop import CacheFolder, choose_target


def rebuild(
    model: Paths,
    output: Paths,
    lock: Paths,
    *,
    cache: Paths | None = None,
    check: CheckMode | str = CheckMode.ON,
    inputs: Sequence[Mapping[str, NDArray[np.generic]]] = (),
    progress: Progress | None = None,
    **options: Unpack[Options],
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
        progress: See there.
        options: What the lock must be for, fields of `wpk.options.BuildOptions`; by default what it
            says. A target that was described in a file needs that file again.

    Raises:
        WpkError: With what is wrong and what to do; nothing is written then.
    """
    locked, scope = read_lock(Path(lock)), scope_of(check, inputs)
    asked, _ = split_options(options)
    require_fit(locked, model_digest(Path(model)), asked, options)
    target = choose_target(options.get("target", locked.target), locked.precision)
    require_target(locked, target)
    job = Job(Path(model), locked.build, target, CacheFolder(cache), shown(progress), scope, inputs)
    return job.write(_rebuilt(job, locked), output)


def _rebuilt(job: Job, locked: Lock) -> PlanBundle:
    """The locked plan, executed once more on the CPU where it is checked."""
    lowered = job.lower()
    require_inputs(job.inputs, input_ports(lowered.program))
    with CompilePool(job.target.arch, cache=job.places.kernels) as pool:
        return _rebuilt_with(job, lowered, locked, pool)


def _rebuilt_with(job: Job, lowered: LoweredModel, locked: Lock, pool: CompilePool) -> PlanBundle:
    within = job.of_bodies()
    bodies = {
        model: tuple(
            _rebuilt_with(within, body, lock, pool)
            for body, lock in zip(made, locked_bodies(locked, lowered.program, model), strict=True)
        )
        for model, made in lowered.bodies.items()
    }
    proof = None if job.scope is None else job.prove(lowered, job.progress)
    implementations = implementations_of(locked, lowered.program, job.target)
    kernels = compile_locked(implementations.values(), pool.compile)
    bundle = assemble(lowered.program, implementations, kernels, job.setting(lowered, bodies))
    bundle = with_evidence(bundle, locked.book)  # what was measured cannot be had again
    require_locked_plan(bundle.plan, locked)
    if proof is not None:
        with open_device("cpu") as device:
            require_passed(verify(bundle, proof, device, job.progress))
    return bundle
