"""What the tuning loop measures with: compiles, checks and times schedules and library calls."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wpk.build.pool import Compilation
from wpk.execution import LibraryImage
from wpk.performance.bound import bound
from wpk.problems import Problem
from wpk.schedules.registry import TEMPLATE_OF
from wpk.search.library_pick import LibraryPick
from wpk.search.model_search import Compiler, Found
from wpk.search.shortlist import score_one
from wpk.search.static_search import Choice, Finalist, choose_spilling
from wpk.search.store_record import Stage
from wpk.search.tune_record import Request, Tried, Tuned
from wpk.targets.target import Target
from wpk.trial import Status, Trial
from wpk.tuning.trials import Candidate, TrialRunner, Way


class Bench:
    """Measures requests; afterwards it turns what won into choices."""

    def __init__(self, target: Target, compiler: Compiler, runner: TrialRunner) -> None:
        """Begin with nothing compiled."""
        self._target, self._compiler, self._runner = target, compiler, runner
        self._built: dict[str, Compilation] = {}

    def __call__(self, requests: Sequence[Request]) -> Iterator[Trial]:
        """One trial each, in their order; schedules are compiled together before the first."""
        finalists = {
            index: self._finalist(each.problem, each.template, each.schedule)
            for index, each in enumerate(requests)
            if each.template in TEMPLATE_OF
        }
        self._build(list(finalists.values()))
        for index, request in enumerate(requests):
            finalist, way = finalists.get(index), Way(request.stage is Stage.FINAL, request.regime)
            if finalist is None:
                yield self._runner.library_trial(_image(request), way)
            else:
                yield self._trial(request, finalist, way)

    def built(self) -> list[Compilation]:
        """All that was compiled."""
        return list(self._built.values())

    def pick(self, found: Found, tuned: Tuned, best: Tried) -> LibraryPick:
        """A library's implementation that ran as a choice.

        Raises:
            EngineError: The library does not make it ready any more.
        """
        request = Request(tuned.problem, best.template, best.version, best.trial.schedule)
        image, static = _image(request), found.choices[tuned.problem]
        return LibraryPick(image, self._runner.prepare(image), static.bound, static.record)

    def choice(self, found: Found, tuned: Tuned, best: Tried) -> Choice:
        """A schedule that ran as a choice, with what the compiler says of it."""
        finalist = self._finalist(tuned.problem, best.template, best.trial.schedule)
        self._build([finalist])
        resources = {
            digest: each.kernel.resources if each.kernel is not None else str(each.error)
            for digest, each in self._built.items()
        }
        chosen = choose_spilling(found.prepared[tuned.problem], [finalist], resources)
        if chosen is None:
            raise ValueError(f"{finalist.template.name} ran, and its resources are refused")
        compiled = tuple(
            each.template for each in tuned.tried if each.trial.status is not Status.COMPILE_FAILED
        )
        return replace(chosen, record=replace(chosen.record, finalists=compiled))

    def _finalist(
        self, problem: Problem, name: str, parameters: tuple[tuple[str, int], ...]
    ) -> Finalist:
        template = TEMPLATE_OF[name]
        schedule = template.schedule_from(parameters)
        limit = bound(problem, self._target)
        return Finalist(
            scored=score_one(problem, template, schedule, self._target, limit),
            template=template,
            sources=template.instantiate(problem, schedule),
            launches=template.launches(problem, schedule),
        )

    def _build(self, finalists: Sequence[Finalist]) -> None:
        sources = {s.digest: s for each in finalists for s in each.sources}
        fresh = [source for digest, source in sources.items() if digest not in self._built]
        for outcome in self._compiler(fresh):
            self._built[outcome.source.digest] = outcome

    def _trial(self, request: Request, finalist: Finalist, way: Way) -> Trial:
        outcomes = [self._built[source.digest] for source in finalist.sources]
        kernels = {}
        for outcome in outcomes:
            if outcome.kernel is None:
                return Trial(request.schedule, outcome.status, (), str(outcome.error))
            kernels[outcome.source.digest] = outcome.kernel
        return self._runner.trial(Candidate(request.problem, finalist, kernels), way)


def _image(request: Request) -> LibraryImage:
    return LibraryImage(request.template, request.version, request.problem, request.schedule)
