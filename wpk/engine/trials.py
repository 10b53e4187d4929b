"""Turn candidates into trials on a GPU: checked first, then timed, each in a process that it may ruin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

from wpk.build.compiled import CompiledKernel
from wpk.device.errors import GpuTimeoutError, TrampledError
from wpk.device.process import GpuProcess
from wpk.device.rotation import Region
from wpk.device.timing import Patience
from wpk.engine.cases import Case
from wpk.engine.operator_check import StepRunner
from wpk.engine.plan import PlanBundle
from wpk.errors import LaunchError
from wpk.execution import KernelImage
from wpk.performance.bound import bound
from wpk.problems import Problem
from wpk.search.record import SearchRecord
from wpk.search.static_search import Choice, Finalist
from wpk.trial import Regime, Status, Trial

OpenGpu = Callable[[], GpuProcess]


@dataclass(frozen=True)
class Candidate:
    """A compiled schedule of a problem, with its kernels by digest."""

    problem: Problem
    finalist: Finalist
    kernels: Mapping[str, CompiledKernel]


class TrialRunner:
    """Checks and times candidates one at a time, in one process that is replaced when it is lost.

    Use it as a context manager.
    """

    def __init__(
        self,
        cases: Mapping[Problem, Case],
        regime: Regime,
        patience: Patience | None = None,
        open_gpu: OpenGpu = GpuProcess,
    ) -> None:
        """Describe the runner; the process starts with the first trial.

        Args:
            cases: What the candidates of each problem are checked and timed on.
            regime: State of the caches that counts.
            patience: How long to sample.
            open_gpu: Starts a process.
        """
        self._cases, self._regime = cases, regime
        self._patience, self._open = patience or Patience(), open_gpu
        self._gpu: GpuProcess | None = None

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End the process."""
        self.close()

    def close(self) -> None:
        """End the process; another trial would start a new one."""
        if self._gpu is not None:
            self._gpu.close()
            self._gpu = None

    def trial(self, candidate: Candidate) -> Trial:
        """The outcome of one candidate.

        A candidate that is wrong, however it is, ends the process: what it may have left behind in
        memory cannot reach the next one.

        Raises:
            EngineError: The GPU cannot be used at all.
        """
        case = self._cases[candidate.problem]
        bundle = case.bundle(_choice(candidate, case), candidate.kernels)
        try:
            trial = self._checked_and_timed(candidate, case, bundle)
        except GpuTimeoutError as error:
            trial = _failed(candidate, Status.TIMED_OUT, error.what)
        except TrampledError as error:
            trial = _failed(candidate, Status.WRONG_RESULT, error.what)
        except LaunchError as error:
            trial = _failed(candidate, Status.LAUNCH_FAILED, error.what)
        if trial.status is not Status.OK:
            self.close()
        return trial

    def _checked_and_timed(self, candidate: Candidate, case: Case, bundle: PlanBundle) -> Trial:
        gpu = self._process()
        for source in candidate.finalist.sources:
            gpu.load(KernelImage(source.digest, source, bundle.cubins[source.digest]))
        (step,) = bundle.plan.steps
        runner = StepRunner(bundle, bundle.plan.free, gpu)
        outcome = runner.check(step, case.memory, case.result)
        if outcome.error is not None:
            raise outcome.error
        if not outcome.check.passed:
            return _failed(candidate, Status.WRONG_RESULT, outcome.check.detail)
        with runner.placed(step, runner.images(step, case.memory)) as placed:
            regions = [Region(address, size) for address, size in placed.allocations.items()]
            timing = gpu.measure(placed.launches, regions, self._regime, self._patience)
        parameters = candidate.finalist.scored.schedule.parameters()
        return Trial(parameters, Status.OK, timing.seconds)

    def _process(self) -> GpuProcess:
        if self._gpu is None or not self._gpu.is_alive:
            self.close()
            self._gpu = self._open()
        return self._gpu


def _choice(candidate: Candidate, case: Case) -> Choice:
    limit = bound(candidate.problem, case.setting.target)
    return Choice(candidate.finalist, (), limit, SearchRecord((), (), ()))


def _failed(candidate: Candidate, status: Status, detail: str) -> Trial:
    return Trial(candidate.finalist.scored.schedule.parameters(), status, (), detail)
