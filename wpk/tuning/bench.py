"""What the tuning loop measures with: compiles, checks and times schedules and library calls."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wpk.build import Compilation
from wpk.execution import LibraryImage
from wpk.schedules.registry import TEMPLATE_OF
from wpk.search.library_pick import LibraryPick
from wpk.search.model_search import Found
from wpk.search.static_search import Choice, choose_spilling, spill_words
from wpk.search.store_record import Stage
from wpk.search.tune_record import Request, Tried, Tuned
from wpk.trial import Status, Trial
from wpk.tuning.compile_ahead import Built, CompileAhead, Wanted
from wpk.tuning.odd_shapes import OddShapes, Verdict
from wpk.tuning.trials import Candidate, TrialRunner, Way


class Bench:
    """Measures requests; afterwards it turns what won into choices."""

    def __init__(self, ahead: CompileAhead, runner: TrialRunner, odd: OddShapes) -> None:
        """Take what compiles, what executes, and what judges on odd shapes."""
        self._ahead, self._runner, self._odd = ahead, runner, odd

    def expect(self, requests: Sequence[Request]) -> None:
        """See `Workbench.expect`. What may be chosen is made ready for odd shapes."""
        self._ahead.expect([_wanted(each) for each in requests if _is_searched(each)])
        self._odd.expect([_wanted(each) for each in requests if _is_finalist(each)])

    def drop(self, requests: Sequence[Request]) -> None:
        """See `Workbench.drop`."""
        self._ahead.drop([_wanted(each) for each in requests if _is_searched(each)])
        self._odd.drop([_wanted(each) for each in requests if _is_finalist(each)])

    def measure(self, requests: Sequence[Request]) -> Iterator[Trial]:
        """See `Workbench.measure`.

        Before the first is measured, all schedules are compiled, and those that may be chosen are
        executed on odd shapes.
        """
        built = iter(self._ahead.get([_wanted(each) for each in requests if _is_generated(each)]))
        verdicts = self._verdicts([_wanted(each) for each in requests if _is_finalist(each)])
        for request in requests:
            way = Way(request.stage is Stage.FINAL, request.regime)
            if _is_generated(request):
                verdict = verdicts.get(_wanted(request), Verdict())
                yield self._trial(request, next(built), way, verdict)
            else:
                yield self._runner.library_trial(_image(request), way)

    def built(self) -> list[Compilation]:
        """All kernels of the schedules that were measured."""
        return self._ahead.built()

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
        (built,) = self._ahead.get([Wanted(tuned.problem, best.template, best.trial.schedule)])
        resources = {
            each.source.digest: each.kernel.resources
            if each.kernel is not None
            else str(each.error)
            for each in built.outcomes
        }
        chosen = choose_spilling(found.prepared[tuned.problem], [built.finalist], resources)
        if chosen is None:
            raise ValueError(f"{best.template} ran, and its resources are refused")
        compiled = tuple(
            each.template for each in tuned.tried if each.trial.status is not Status.COMPILE_FAILED
        )
        return replace(chosen, record=replace(chosen.record, finalists=compiled))

    def _verdicts(self, finalists: Sequence[Wanted]) -> dict[Wanted, Verdict]:
        self._odd.expect(finalists)
        return {each: self._odd.verdict(each) for each in finalists}

    def _trial(self, request: Request, built: Built, way: Way, verdict: Verdict) -> Trial:
        kernels = {}
        for outcome in built.outcomes:
            if outcome.kernel is None:
                return Trial(request.schedule, outcome.status, (), str(outcome.error))
            if outcome.kernel.resources.spills:
                reason = f"{outcome.source.entry} {spill_words(outcome.kernel.resources)}"
                return Trial(request.schedule, Status.REJECTED, (), reason)
            kernels[outcome.source.digest] = outcome.kernel
        if verdict.wrong:
            return Trial(request.schedule, Status.WRONG_RESULT, (), verdict.wrong)
        trial = self._runner.trial(Candidate(request.problem, built.finalist, kernels), way)
        return replace(trial, detail=trial.detail or verdict.unchecked)


def _is_generated(request: Request) -> bool:
    return request.template in TEMPLATE_OF


def _is_searched(request: Request) -> bool:
    """Whether it is a schedule that guides the search."""
    return _is_generated(request) and request.stage is Stage.SEARCH


def _is_finalist(request: Request) -> bool:
    """Whether it is a schedule that may be chosen."""
    return _is_generated(request) and request.stage is Stage.FINAL


def _wanted(request: Request) -> Wanted:
    return Wanted(request.problem, request.template, request.schedule)


def _image(request: Request) -> LibraryImage:
    return LibraryImage(request.template, request.version, request.problem, request.schedule)
