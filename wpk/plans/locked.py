"""From a lock to the plan that it locks: refused where anything differs, else the same to the byte."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from wpk.build import CompiledKernel, compiler_here
from wpk.errors import EngineError
from wpk.lowering.program import Program
from wpk.performance.bound import bound
from wpk.plans.lock import Lock, LockedStep, plan_digest
from wpk.plans.plan import Choice, LibraryChoice, PlanBundle
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF
from wpk.search.library_pick import LibraryPick
from wpk.search.model_search import Compiler, Found
from wpk.search.record import SearchRecord
from wpk.search.shortlist import score_one
from wpk.search.static_search import Choice as Searched
from wpk.search.static_search import Finalist
from wpk.search.store_key import problem_digest
from wpk.targets.target import Target
from wpk.version import VERSION

_DIGEST = 12
_NO_RECORD = SearchRecord((), (), ())
_AGAIN = "write lock and plan again: wpk optimize --lock"


@dataclass(frozen=True)
class Asked:
    """What a person asks for beside a lock; None where the lock decides."""

    model_digest: str
    precision: str | None = None
    shapes: Mapping[str, Sequence[int]] | None = None
    skipped_passes: tuple[str, ...] | None = None


def require_fit(lock: Lock, asked: Asked) -> None:
    """Refuse a lock of another model, target or precision, or of other versions.

    Raises:
        EngineError: Something differs; says what, naming both.
    """
    differences = list(_differences(lock, asked))
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


def _differences(lock: Lock, asked: Asked) -> Iterator[str]:
    if asked.model_digest != lock.model_digest:
        yield (
            f"the model's digest is {asked.model_digest[:_DIGEST]}…, locked is {lock.model} with "
            f"{lock.model_digest[:_DIGEST]}…"
        )
    shapes = None if asked.shapes is None else {n: tuple(s) for n, s in asked.shapes.items()}
    for option, now, locked in (
        ("--precision", asked.precision, lock.precision.value),
        ("--shapes", shapes, lock.shapes),
        ("--skip-pass", asked.skipped_passes, lock.skipped_passes),
    ):
        if now is not None and now != locked:
            yield f"{option} is {now}, locked is {locked}"


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


def find_locked(lock: Lock, program: Program, target: Target, compiler: Compiler) -> Found:
    """The locked choices, compiled; nothing is searched, and no library is needed.

    Raises:
        EngineError: The model's operators, or the kernels that this installation generates for
            them, are not those that were locked.
    """
    choices: dict[Problem, Searched] = {}
    library: dict[Problem, LibraryPick] = {}
    names = [operator.name for operator in program.operators]
    if names != [step.operator for step in lock.steps]:
        raise _another("the model gives other operators than were locked")
    for operator, step in zip(program.operators, lock.steps, strict=True):
        problem = operator.problem
        if problem_digest(problem) != step.problem:
            raise _another(f"operator '{operator.name}' computes something else than was locked")
        if isinstance(step.choice, LibraryChoice):
            library[problem] = _pick(problem, step.choice, target)
        else:
            choices[problem] = _choice(problem, step, step.choice, target)
    kernels = _compiled(choices.values(), compiler)
    return Found(choices, kernels, library=library, picks=frozenset(library))


def _compiled(choices: Iterable[Searched], compiler: Compiler) -> dict[str, CompiledKernel]:
    sources = [source for each in choices for source in each.finalist.sources]
    kernels: dict[str, CompiledKernel] = {}
    for outcome in compiler(list(dict.fromkeys(sources))):
        if outcome.kernel is None:
            raise _another(f"{outcome.source.entry} does not compile: {outcome.error}")
        kernels[outcome.source.digest] = outcome.kernel
    return kernels


def _pick(problem: Problem, choice: LibraryChoice, target: Target) -> LibraryPick:
    """The implementation as tuning would give it; its evidence is put in later, from the lock."""
    return LibraryPick(
        choice.image(problem), choice.workspace_bytes, bound(problem, target), _NO_RECORD
    )


def _choice(problem: Problem, step: LockedStep, choice: Choice, target: Target) -> Searched:
    """The schedule as a search would give it, likewise."""
    finalist = _finalist(problem, choice, step.operator, target)
    launched = tuple(launch.kernel for launch in finalist.launches)
    if launched != step.kernels:
        raise _another(
            f"operator '{step.operator}' has kernels {_short(step.kernels)}, this installation "
            f"generates {_short(launched)}"
        )
    return Searched(finalist, (), bound(problem, target), _NO_RECORD)


def _finalist(problem: Problem, choice: Choice, name: str, target: Target) -> Finalist:
    template = TEMPLATE_OF.get(choice.template)
    if template is None or not isinstance(problem, template.problem_type):
        raise _another(f"operator '{name}': template {choice.template!r} is unknown here")
    if template.version != choice.version:
        raise _another(
            f"operator '{name}': {choice.template} {choice.version} was locked, installed is "
            f"{template.version}"
        )
    try:
        schedule = template.schedule_from(choice.schedule)
    except TypeError as error:
        raise _another(f"operator '{name}': {error}") from error
    return Finalist(
        scored=score_one(problem, template, schedule, target, bound(problem, target)),
        template=template,
        sources=template.instantiate(problem, schedule),
        launches=template.launches(problem, schedule),
    )


def with_evidence(bundle: PlanBundle, lock: Lock) -> PlanBundle:
    """The plan with the evidence that was locked.

    Raises:
        EngineError: It is not the plan that was locked.
    """
    steps = tuple(
        replace(step, evidence=evidence)
        for step, evidence in zip(bundle.plan.steps, lock.evidence, strict=True)
    )
    plan = replace(
        bundle.plan,
        steps=steps,
        checks=lock.checks,
        check_mode=lock.check_mode,
        checked_on=lock.checked_on,
        measurement=lock.measurement,
    )
    seen = plan_digest(plan)
    if seen != lock.plan:
        raise _another(
            f"plan.json would have the digest {seen[:_DIGEST]}…, locked is {lock.plan[:_DIGEST]}…: "
            "this installation is another of the same version, the model's external data are "
            "others, or the lock was changed"
        )
    return replace(bundle, plan=plan)


def _short(digests: Sequence[str]) -> str:
    return ", ".join(digest[:_DIGEST] for digest in digests) or "none"


def _another(what: str) -> EngineError:
    return EngineError(f"the locked plan cannot be built again: {what}", fix=_AGAIN)
