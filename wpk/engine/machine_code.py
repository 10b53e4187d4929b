"""Compile a plan's kernels again, and compare the machine code with the plan's.

NVRTC needs no GPU, and gives the same bytes for the same source, options and version. So what the CPU
executes, which is generated here, and what a GPU executes, which comes with the file, can be shown to be
one thing. What was compiled here before is found in the kernel cache and costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import sha256

from wpk.build import CompilePool, KernelCache, compiler_here
from wpk.engine.regenerate import regenerate
from wpk.errors import CompileError, EngineError, VerificationError
from wpk.kernel_source import KernelSource
from wpk.plan import Plan, PlanBundle
from wpk.progress import Progress, silent
from wpk.trial import Status

STAGE = "compiling kernels again"


class Likeness(StrEnum):
    """What comparing machine code has shown."""

    SAME = "same"
    DIFFERS = "differs"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True)
class MachineCode:
    """The outcome of comparing a plan's machine code, with its numbers in words."""

    likeness: Likeness
    detail: str

    def __str__(self) -> str:
        """``machine code: same: 22 kernels, compiled again by nvrtc 13.5-...``."""
        return f"machine code: {self.likeness.value}: {self.detail}"


def compare_machine_code(
    bundle: PlanBundle, progress: Progress = silent, *, cache: KernelCache | None = None
) -> MachineCode:
    """Compile every kernel of a plan and of its bodies again, and compare.

    Args:
        bundle: The plan.
        progress: Told of every kernel.
        cache: The cache of compiled kernels; by default the user's.

    Raises:
        PlanError: The plan's kernels are not those of this installation.
    """
    own = _compare_own(bundle, progress, cache)
    for body in bundle.bodies.values():
        found = compare_machine_code(body, progress, cache=cache)
        if own.likeness is Likeness.SAME or found.likeness is Likeness.DIFFERS:
            own = own if found.likeness is Likeness.SAME and bundle.plan.kernels else found
    return own


def _compare_own(bundle: PlanBundle, progress: Progress, cache: KernelCache | None) -> MachineCode:
    """Compare the kernels of a plan, without those of its bodies."""
    plan = bundle.plan
    sources = regenerate(plan)
    if not sources:
        return MachineCode(Likeness.SAME, "the plan has none of its own")
    try:
        here = compiler_here()
    except CompileError as error:
        return MachineCode(Likeness.NOT_COMPARABLE, error.what)
    makers = sorted({kernel.compiler for kernel in plan.kernels.values()} - {here})
    if makers:
        return MachineCode(Likeness.NOT_COMPARABLE, f"made by {', '.join(makers)}, here {here}")
    return _compiled_again(bundle, sources, progress, cache, here)


def require_same(code: MachineCode) -> None:
    """Refuse machine code that differs from what its sources give.

    Raises:
        VerificationError: It is.
    """
    if code.likeness is Likeness.DIFFERS:
        raise VerificationError(
            f"the plan's machine code is not what its sources give: {code.detail}",
            fix="take the plan from where it was made again, or write it again: wpk optimize",
        )


def require_executable(code: MachineCode) -> None:
    """Refuse machine code for a GPU unless it is what its sources give.

    Raises:
        VerificationError: It is another one.
        EngineError: It could not be compared.
    """
    require_same(code)
    if code.likeness is Likeness.NOT_COMPARABLE:
        raise EngineError(
            f"the plan's machine code was not compiled here and cannot be compared: {code.detail}",
            fix="write the plan again on this machine, install what it was made by, or, if you trust "
            "whoever made it as you trust a program: --trust (in Python trust=True)",
        )


def _compiled_again(
    bundle: PlanBundle,
    sources: Mapping[str, KernelSource],
    progress: Progress,
    cache: KernelCache | None,
    here: str,
) -> MachineCode:
    plan = bundle.plan
    made = 0
    with CompilePool(plan.arch, cache=cache) as pool:
        for each in pool.compile(sources.values(), partial(progress, STAGE)):
            name = _name(plan, each.source.digest)
            if each.status is Status.TIMED_OUT:
                return MachineCode(Likeness.NOT_COMPARABLE, f"{name}: {each.error}")
            if each.kernel is None:
                return MachineCode(Likeness.DIFFERS, f"{name} does not compile here: {each.error}")
            digest = sha256(each.kernel.cubin).hexdigest()
            if digest != plan.kernels[each.source.digest].cubin_digest:
                return MachineCode(Likeness.DIFFERS, f"{name} is another one than {here} makes")
            made += not each.cached
    cached = len(sources) - made
    known = f", {cached} of them before" if cached else ""
    return MachineCode(Likeness.SAME, f"{len(sources)} kernels, compiled here by {here}{known}")


def _name(plan: Plan, digest: str) -> str:
    """Name a kernel by the operator that launches it."""
    for step in plan.steps:
        for launch in step.launches:
            if launch.kernel == digest:
                return f"{launch.entry} of operator '{step.operator.name}'"
    return plan.kernels[digest].entry
