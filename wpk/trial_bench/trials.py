"""Candidates become trials on a GPU: checked first, then timed, each in a process that it may ruin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from wpk.assembly import Implementation, by_library
from wpk.backends import GpuProcess
from wpk.build import CompiledKernel
from wpk.candidate import Candidate
from wpk.checks import StepRunner
from wpk.device import GpuTimeoutError, MemoryRange, Patience, TrampledError
from wpk.errors import EngineError, LaunchError
from wpk.execution import KernelImage, LibraryImage
from wpk.problems import Problem
from wpk.trial import Regime, Status, Trial
from wpk.trial_bench.cases import Case
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.prepared_cases import PreparedCases, held_bytes


class _NotReadyError(EngineError):
    """A library does not make an implementation ready."""


@dataclass(frozen=True)
class Way:
    """A way says how a candidate is tried.

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


class _Subject(NamedTuple):
    """What a check is about: a candidate for a problem, with the machine code that computes it."""

    problem: Problem
    candidate: Candidate
    cubins: frozenset[bytes]


class TrialRunner:
    """This runner checks and times candidates one at a time, in a process that is replaced when it is lost."""

    def __init__(
        self,
        lease: GpuLease,
        cases: Mapping[Problem, Case],
        regime: Regime,
        others: Mapping[Problem, Case] | None = None,
        patience: Patience | None = None,
        coming_bytes: int = 0,
    ) -> None:
        """Describe the runner; the process starts with the first trial.

        Args:
            lease: The process.
            cases: What the candidates of each problem are checked and timed on.
            regime: State of the caches that counts.
            others: The same at another seed, for what may be chosen; None to check on one seed only.
            patience: How long to sample.
            coming_bytes: What cases take that are not computed yet.
        """
        self._lease, self._cases, self._others = lease, cases, others
        self._regime, self._patience = regime, patience or Patience()
        self._prepared = PreparedCases(held_bytes(coming_bytes))
        self._right: set[_Subject] = set()  # at both seeds

    def prepare(self, problem: Problem, candidate: Candidate) -> Implementation:
        """Make a library's implementation ready.

        Raises:
            EngineError: It cannot be made ready.
        """
        return _prepared(self._lease.process(), problem, candidate)

    def trial(
        self,
        problem: Problem,
        implementation: Implementation,
        kernels: Mapping[str, CompiledKernel],
        way: Way = SEARCHING,
    ) -> Trial:
        """Return the outcome of one schedule.

        A candidate that is wrong, however it is, ends the process: what it may have left behind in
        memory cannot reach the next one.

        Args:
            problem: What it computes.
            implementation: Its kernels and launches.
            kernels: The same kernels compiled, by digest.
            way: How it is tried.

        Raises:
            EngineError: The GPU cannot be used at all.
        """

        def load(gpu: GpuProcess) -> Implementation:
            for source in implementation.sources:
                cubin = kernels[source.digest].cubin
                gpu.load(KernelImage(source.digest, source, cubin))
            return implementation

        cubins = frozenset(kernels[source.digest].cubin for source in implementation.sources)
        return self._guarded(_Subject(problem, implementation.candidate, cubins), load, way)

    def library_trial(self, problem: Problem, candidate: Candidate, way: Way = SEARCHING) -> Trial:
        """Return the outcome of one of a library's implementations, likewise.

        Raises:
            EngineError: The GPU cannot be used at all.
        """

        def load(gpu: GpuProcess) -> Implementation:
            try:
                return _prepared(gpu, problem, candidate)
            except EngineError as error:
                raise _NotReadyError(error.what, fix=error.fix) from error

        return self._guarded(_Subject(problem, candidate, frozenset()), load, way)

    def _guarded(
        self, asked: _Subject, load: Callable[[GpuProcess], Implementation], way: Way
    ) -> Trial:
        candidate = asked.candidate
        try:
            gpu = self._lease.process()
            trial = self._checked_and_timed(gpu, asked, load(gpu), way)
        except _NotReadyError as error:
            return Trial(candidate, Status.REJECTED, (), error.what)
        except GpuTimeoutError as error:
            trial = Trial(candidate, Status.TIMED_OUT, (), error.what)
        except TrampledError as error:
            trial = Trial(candidate, Status.WRONG_RESULT, (), error.what)
        except LaunchError as error:
            trial = Trial(candidate, Status.LAUNCH_FAILED, (), error.what)
        if not trial.ran:
            self._lease.drop()
        return trial

    def _cases_to_check(self, case: Case, asked: _Subject, way: Way) -> list[Case]:
        if not way.thorough or self._others is None:
            return [case]
        return [] if asked in self._right else [case, self._others[asked.problem]]

    def _checked_and_timed(
        self, gpu: GpuProcess, asked: _Subject, implementation: Implementation, way: Way
    ) -> Trial:
        case, candidate = self._cases[asked.problem], asked.candidate
        step, tensors = case.step(implementation)
        runner = StepRunner(tensors, case.program.free, gpu)
        for each in self._cases_to_check(case, asked, way):
            outcome = runner.check(step, self._prepared.of(each, runner, step), quick=True)
            if outcome.error is not None:
                raise outcome.error
            if outcome.check.failed:
                return Trial(candidate, Status.WRONG_RESULT, (), outcome.check.detail)
        if way.thorough:
            self._right.add(asked)
        if not way.timed:
            return Trial(candidate, Status.OK)
        regime = way.regime or self._regime
        images = self._prepared.of(case, runner, step).images
        with runner.placed(step, images) as placed:
            regions = [MemoryRange(address, size) for address, size in placed.allocations.items()]
            timing = gpu.measure(placed.works, regions, regime, self._patience)
        return Trial(candidate, Status.OK, timing.seconds)


def _prepared(gpu: GpuProcess, problem: Problem, candidate: Candidate) -> Implementation:
    maker = candidate.maker
    image = LibraryImage(maker.name, maker.version, problem, candidate.configuration)
    return by_library(problem, candidate, gpu.prepare(image))
