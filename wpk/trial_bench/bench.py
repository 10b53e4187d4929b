"""The tuning loop measures with a bench: it compiles, checks and times schedules and library calls."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from wpk.assembly import Implementation, generated
from wpk.build import CompiledKernel
from wpk.candidate import GENERATED
from wpk.phases import Phases
from wpk.search.models import KernelChoice, Shortlists, choose, spill_words
from wpk.search.store import Stage
from wpk.trial import Status, Trial
from wpk.trial_bench.compile_ahead import CompileAhead, Delivery, KernelOrder
from wpk.trial_bench.odd_shapes import OddShapes, OddVerdict
from wpk.trial_bench.request import Request
from wpk.trial_bench.trials import TrialRunner, Way

WAITING, ODD = "waiting for kernels to compile", "executing finalists on odd shapes"
"""Phases of measuring that are not measuring."""


class Bench:
    """A bench measures requests; afterwards it makes ready what won.

    An exception means that the bench is broken, not a candidate.
    """

    def __init__(
        self, ahead: CompileAhead, runner: TrialRunner, odd: OddShapes, phases: Phases
    ) -> None:
        """Take what compiles, what executes, what judges on odd shapes, and what times all of it."""
        self._ahead, self._runner, self._odd, self._phases = ahead, runner, odd, phases

    def expect(self, requests: Sequence[Request]) -> None:
        """Note what will be measured soon, in this order: it is compiled meanwhile.

        What may be chosen is made ready for odd shapes, too.
        """
        self._ahead.expect(_orders(requests, Stage.SEARCH))
        self._odd.expect(_orders(requests, Stage.FINAL))

    def drop(self, requests: Sequence[Request]) -> None:
        """Note that what was expected will not be measured."""
        self._ahead.drop(_orders(requests, Stage.SEARCH))
        self._odd.drop(_orders(requests, Stage.FINAL))

    def measure(self, requests: Sequence[Request]) -> Iterator[Trial]:
        """Yield one trial for each request, in their order, failures included, whether it was expected or not.

        The requests of one call are measured side by side. Each trial is stored as it comes, so that an
        interrupt loses little. Before the first is measured, all schedules are compiled, and those
        that may be chosen are executed on odd shapes.
        """
        orders = _orders(requests)
        with self._phases.within(WAITING):
            deliveries = dict(zip(orders, self._ahead.get(orders), strict=True))
        finalists = _orders(requests, Stage.FINAL)
        self._odd.expect(finalists)
        with self._phases.within(ODD):
            verdicts = {each: self._odd.verdict(each) for each in finalists}
        for request in requests:
            way = Way(request.stage is Stage.FINAL, request.regime)
            order = KernelOrder(request.problem, request.candidate)
            if order in deliveries:
                verdict = verdicts.get(order, OddVerdict())
                yield self._trial(order, deliveries[order], way, verdict)
            else:
                yield self._runner.library_trial(request.problem, request.candidate, way)

    def kernels(self) -> dict[str, CompiledKernel]:
        """Return all kernels of the schedules that were measured, by the digest of their source."""
        return {e.source.digest: e.kernel for e in self._ahead.compilations() if e.kernel}

    def library(self, trial: Trial, shortlists: Shortlists) -> Implementation:
        """Return a library's implementation that ran, made ready.

        Raises:
            EngineError: The library does not make it ready any more.
        """
        return self._runner.prepare(shortlists.problem, trial.candidate)

    def choice(self, shortlists: Shortlists, trial: Trial) -> KernelChoice:
        """Return a schedule that ran as a choice, with what the compiler says of it."""
        (delivery,) = self._ahead.get([KernelOrder(shortlists.problem, trial.candidate)])
        compiled = {each.source.digest: each for each in delivery.outcomes}
        chosen = choose(shortlists, [delivery.finalist], compiled, allow_spills=True)
        if chosen is None:
            raise ValueError(f"{trial.candidate.maker.name} ran, and its resources are refused")
        return chosen

    def _trial(
        self, order: KernelOrder, delivery: Delivery, way: Way, verdict: OddVerdict
    ) -> Trial:
        candidate, kernels = order.candidate, {}
        for outcome in delivery.outcomes:
            if outcome.kernel is None:
                return Trial(candidate, outcome.status, (), str(outcome.error))
            if outcome.kernel.resources.spills:
                reason = f"{outcome.source.entry} {spill_words(outcome.kernel.resources)}"
                return Trial(candidate, Status.REJECTED, (), reason)
            kernels[outcome.source.digest] = outcome.kernel
        if verdict.wrong:
            return Trial(candidate, Status.WRONG_RESULT, (), verdict.wrong)
        implementation = generated(order.problem, delivery.finalist)
        trial = self._runner.trial(order.problem, implementation, kernels, way)
        return replace(trial, detail=trial.detail or verdict.unchecked)


def _orders(requests: Sequence[Request], stage: Stage | None = None) -> list[KernelOrder]:
    """The generated candidates among requests, of one stage or of all, each once."""
    orders = (
        KernelOrder(each.problem, each.candidate)
        for each in requests
        if each.candidate.family == GENERATED and stage in (None, each.stage)
    )
    return list(dict.fromkeys(orders))
