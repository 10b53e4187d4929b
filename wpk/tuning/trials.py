"""Turn candidates into trials on a GPU: checked first, then timed, each in a process that it may ruin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wpk.backends import GpuProcess
from wpk.build import CompiledKernel
from wpk.checks.operator_check import StepRunner
from wpk.device import GpuTimeoutError, Patience, Region, TrampledError
from wpk.errors import EngineError, LaunchError
from wpk.execution import Configuration, KernelImage, LibraryImage
from wpk.performance.bound import bound
from wpk.plans.plan import Choice as PlannedChoice
from wpk.plans.plan import LibraryChoice, PlanBundle
from wpk.problems import Problem
from wpk.search.library_pick import LibraryPick
from wpk.search.record import SearchRecord
from wpk.search.static_search import Choice, Finalist
from wpk.trial import Regime, Status, Trial
from wpk.tuning.cases import Case
from wpk.tuning.gpu_lease import GpuLease
from wpk.tuning.prepared_cases import PreparedCases

_NO_RECORD = SearchRecord((), (), ())


class _NotReadyError(EngineError):
    """A library does not make an implementation ready."""


@dataclass(frozen=True)
class Candidate:
    """A compiled schedule of a problem, with its kernels by digest."""

    problem: Problem
    finalist: Finalist
    kernels: Mapping[str, CompiledKernel]


@dataclass(frozen=True)
class Way:
    """How a candidate is tried.

    Attributes:
        thorough: Whether it is checked at a second seed, as all are that may be chosen; once, however
            often it is timed afterwards.
        regime: What the caches hold while it is timed; None for the regime that counts.
        timed: Whether it is timed where it is right; else its trial has no times.
    """

    thorough: bool = False
    regime: Regime | None = None
    timed: bool = True


SEARCHING = Way()


class _Checked(NamedTuple):
    """What a check is about: a choice for a problem, with the machine code that computes it."""

    problem: Problem
    choice: PlannedChoice | LibraryChoice
    cubins: frozenset[str]


class TrialRunner:
    """Checks and times candidates one at a time, in a process that is replaced when it is lost."""

    def __init__(
        self,
        lease: GpuLease,
        cases: Mapping[Problem, Case],
        regime: Regime,
        others: Mapping[Problem, Case] | None = None,
        patience: Patience | None = None,
    ) -> None:
        """Describe the runner; the process starts with the first trial.

        Args:
            lease: The process.
            cases: What the candidates of each problem are checked and timed on.
            regime: State of the caches that counts.
            others: The same at another seed, for what may be chosen; None to check on one seed only.
            patience: How long to sample.
        """
        self._lease, self._cases, self._others = lease, cases, others
        self._regime, self._patience = regime, patience or Patience()
        self._prepared = PreparedCases()
        self._right: set[_Checked] = set()  # at both seeds

    def prepare(self, image: LibraryImage) -> int:
        """Make a library's implementation ready; the bytes of scratch memory that it needs.

        Raises:
            EngineError: It cannot be made ready.
        """
        return self._lease.process().prepare(image)

    def trial(self, candidate: Candidate, way: Way = SEARCHING) -> Trial:
        """The outcome of one schedule.

        A candidate that is wrong, however it is, ends the process: what it may have left behind in
        memory cannot reach the next one.

        Raises:
            EngineError: The GPU cannot be used at all.
        """
        case = self._cases[candidate.problem]
        limit = bound(candidate.problem, case.setting.target)
        choice = Choice(candidate.finalist, (), limit, _NO_RECORD)
        parameters = candidate.finalist.scored.schedule.parameters()

        def load(gpu: GpuProcess) -> PlanBundle:
            bundle = case.bundle(choice, candidate.kernels)
            for source in candidate.finalist.sources:
                gpu.load(KernelImage(source.digest, source, bundle.cubins[source.digest]))
            return bundle

        return self._guarded(case, parameters, load, way)

    def library_trial(self, image: LibraryImage, way: Way = SEARCHING) -> Trial:
        """The outcome of one of a library's implementations; likewise.

        Raises:
            EngineError: The GPU cannot be used at all.
        """
        case = self._cases[image.problem]
        limit = bound(image.problem, case.setting.target)

        def load(gpu: GpuProcess) -> PlanBundle:
            try:
                scratch = gpu.prepare(image)
            except EngineError as error:
                raise _NotReadyError(error.what, fix=error.fix) from error
            return case.bundle(LibraryPick(image, scratch, limit, _NO_RECORD), {})

        return self._guarded(case, image.configuration, load, way)

    def _guarded(
        self,
        case: Case,
        parameters: Configuration,
        load: Callable[[GpuProcess], PlanBundle],
        way: Way,
    ) -> Trial:
        try:
            gpu = self._lease.process()
            trial = self._checked_and_timed(gpu, case, parameters, load(gpu), way)
        except _NotReadyError as error:
            return Trial(parameters, Status.REJECTED, (), error.what)
        except GpuTimeoutError as error:
            trial = Trial(parameters, Status.TIMED_OUT, (), error.what)
        except TrampledError as error:
            trial = Trial(parameters, Status.WRONG_RESULT, (), error.what)
        except LaunchError as error:
            trial = Trial(parameters, Status.LAUNCH_FAILED, (), error.what)
        if trial.status is not Status.OK:
            self._lease.drop()
        return trial

    def _cases_to_check(self, case: Case, checked: _Checked, way: Way) -> list[Case]:
        if not way.thorough or self._others is None:
            return [case]
        return [] if checked in self._right else [case, self._others[checked.problem]]

    def _checked_and_timed(
        self,
        gpu: GpuProcess,
        case: Case,
        parameters: Configuration,
        bundle: PlanBundle,
        way: Way,
    ) -> Trial:
        (step,) = bundle.plan.steps
        runner = StepRunner(bundle, bundle.plan.free, gpu)
        checked = _Checked(step.operator.problem, step.choice, frozenset(bundle.cubins))
        for each in self._cases_to_check(case, checked, way):
            outcome = runner.check(step, self._prepared.of(each, runner, step), quick=True)
            if outcome.error is not None:
                raise outcome.error
            if outcome.check.failed:
                return Trial(parameters, Status.WRONG_RESULT, (), outcome.check.detail)
        if way.thorough:
            self._right.add(checked)
        if not way.timed:
            return Trial(parameters, Status.OK)
        regime = way.regime or self._regime
        images = self._prepared.of(case, runner, step).images
        with runner.placed(step, images) as placed:
            regions = [Region(address, size) for address, size in placed.allocations.items()]
            timing = gpu.measure(placed.works, regions, regime, self._patience)
        return Trial(parameters, Status.OK, timing.seconds)
