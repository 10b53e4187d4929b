"""From a lock to the plan that it locks: refused where anything differs, else the same to the byte."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import fields

from wpk.assembly.implementation import Implementation, by_library, generated
from wpk.assembly.lock import Lock, LockStep
from wpk.build import CompiledKernel, compiler_here
from wpk.candidate import Kind
from wpk.errors import EngineError
from wpk.lowering.program import Program
from wpk.options import BuildOptions, flag_of
from wpk.plan import Plan, plan_digest
from wpk.problems import Fallback, Problem
from wpk.schedules import TEMPLATE_OF
from wpk.search.models import Compiler, finalist_of
from wpk.search.store import problem_digest
from wpk.targets import Target
from wpk.version import VERSION

_DIGEST = 12
_AGAIN = "write lock and plan again: wpk optimize --lock"


def require_fit(lock: Lock, model: str, build: BuildOptions, given: Collection[str]) -> None:
    """Refuse a lock of another model or precision, or of other versions.

    Args:
        lock: The lock.
        model: Digest of the model.
        build: What a person asks for beside the lock.
        given: Names of the options that were given; the lock decides the others.

    Raises:
        EngineError: Something differs; says what, naming both.
    """
    differences = list(_differences(lock, model, build, given))
    if differences:
        raise EngineError(
            f"the lock is of another plan: {'; '.join(differences)}",
            fix="give the model that was locked, and leave out what the lock says; or write another "
            "lock: wpk optimize --lock",
        )
    here = VERSION, compiler_here()
    if (lock.wpk, lock.compiler) != here:
        raise EngineError(
            f"the lock was written by wpk {lock.wpk} with {lock.compiler}, this is wpk {here[0]} "
            f"with {here[1]}: the plan would not be the same",
            fix=f"install the versions that wrote it, or {_AGAIN}",
        )


def _differences(
    lock: Lock, model: str, build: BuildOptions, given: Collection[str]
) -> Iterator[str]:
    if model != lock.model_digest:
        yield (
            f"the model's digest is {model[:_DIGEST]}…, locked is {lock.model} with "
            f"{lock.model_digest[:_DIGEST]}…"
        )
    locked = lock.build
    for option in fields(BuildOptions):
        now, then = getattr(build, option.name), getattr(locked, option.name)
        if option.name in given and option.name != "target" and now != then:
            yield f"{flag_of(option)} is {now}, locked is {then}"


def require_target(lock: Lock, target: Target) -> None:
    """Refuse another GPU than the locked one.

    Raises:
        EngineError: It is another; names both.
    """
    if (target.name, target.arch) != (lock.target, lock.arch):
        raise EngineError(
            f"the lock is for {lock.target} ({lock.arch}), asked is {target.name} ({target.arch})",
            fix="leave --target out, or write another lock: wpk optimize --lock",
        )


def implementations_of(
    lock: Lock, program: Program, target: Target
) -> dict[Problem, Implementation]:
    """What is locked for each problem; nothing is searched, and no library is needed.

    Raises:
        EngineError: The model's operators, or the kernels that this installation generates for
            them, are not those that were locked.
    """
    names = [operator.name for operator in program.operators]
    if names != [step.operator for step in lock.steps]:
        raise _another("the model gives other operators than were locked")
    implementations: dict[Problem, Implementation] = {}
    for operator, step in zip(program.operators, lock.steps, strict=True):
        if problem_digest(operator.problem) != step.problem:
            raise _another(f"operator '{operator.name}' computes something else than was locked")
        if not isinstance(operator.problem, Fallback):
            implementations[operator.problem] = _implementation(operator.problem, step, target)
    return implementations


def locked_bodies(lock: Lock, program: Program, model: str) -> list[Lock]:
    """The locks of the bodies of control flow.

    Args:
        lock: Of the plan.
        program: The model.
        model: Of the node (`wpk.problems.Fallback.model`).

    Raises:
        EngineError: They are not locked.
    """
    for operator, step in zip(program.operators, lock.steps, strict=False):
        problem = operator.problem
        if isinstance(problem, Fallback) and problem.model == model:
            found = [lock.bodies[digest] for digest in step.bodies if digest in lock.bodies]
            if len(found) == len(step.bodies) > 0:
                return found
    raise _another("the bodies of its control flow are not locked")


def compile_locked(
    implementations: Iterable[Implementation], compiler: Compiler
) -> dict[str, CompiledKernel]:
    """The kernels, by source digest.

    Raises:
        EngineError: One does not compile.
    """
    sources = [source for each in implementations for source in each.sources]
    kernels: dict[str, CompiledKernel] = {}
    for outcome in compiler(list(dict.fromkeys(sources))):
        if outcome.kernel is None:
            raise _another(f"{outcome.source.entry} does not compile: {outcome.error}")
        kernels[outcome.source.digest] = outcome.kernel
    return kernels


def _implementation(problem: Problem, step: LockStep, target: Target) -> Implementation:
    candidate = step.candidate
    if candidate.maker.kind is Kind.LIBRARY:
        try:
            return by_library(problem, candidate, step.workspace_bytes)
        except ValueError as error:
            raise _another(f"operator '{step.operator}': {error}") from error
    maker = candidate.maker
    template = TEMPLATE_OF.get(maker.name)
    if template is None or not isinstance(problem, template.problem_type):
        raise _another(f"operator '{step.operator}': template {maker.name!r} is unknown here")
    if template.maker != maker:
        raise _another(
            f"operator '{step.operator}': {maker.name} {maker.version} was locked, installed is "
            f"{template.version}"
        )
    try:
        finalist = finalist_of(problem, candidate, target)
    except TypeError as error:
        raise _another(f"operator '{step.operator}': {error}") from error
    launched = tuple(launch.kernel for launch in finalist.launches)
    if launched != step.kernels:
        raise _another(
            f"operator '{step.operator}' has kernels {_short(step.kernels)}, this installation "
            f"generates {_short(launched)}"
        )
    return generated(problem, finalist)


def require_locked_plan(plan: Plan, lock: Lock) -> None:
    """Refuse a plan, with its evidence, that is not the locked one.

    Raises:
        EngineError: It is another.
    """
    seen = plan_digest(plan)
    if seen != lock.plan:
        raise _another(
            f"plan.json would have the digest {seen[:_DIGEST]}…, locked is {lock.plan[:_DIGEST]}…: "
            "this installation is another of the same version, the model's external data are "
            "others, or the lock was changed"
        )


def _short(digests: Sequence[str]) -> str:
    return ", ".join(digest[:_DIGEST] for digest in digests) or "none"


def _another(what: str) -> EngineError:
    return EngineError(f"the locked plan cannot be built again: {what}", fix=_AGAIN)
