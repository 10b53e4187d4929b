"""Check and time single schedules of one problem, in a process that each of them may ruin."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np
from study_problems import Row, Template
from subjects.operands import Operands

from wpk.backends import GpuProcess
from wpk.candidate import Candidate
from wpk.device import CudaDevice, GpuTimeoutError, MemoryRange, Patience, TrampledError
from wpk.dims import evaluate
from wpk.errors import LaunchError
from wpk.execution import KernelImage
from wpk.kernel_source import KernelSource
from wpk.launch import CounterArgument, Launch, WorkspaceArgument
from wpk.libraries import random_case
from wpk.libraries.reference import worst_error
from wpk.plan.binding import StepAddresses, bind_launch
from wpk.schedules import packings
from wpk.trial import Regime, Status, Trial

_TRIALS_A_PROCESS = 1000
"""A process keeps every kernel that it loaded."""

_SEED = 0


@dataclass(frozen=True)
class SingleKernel:
    """A schedule with its one kernel and launch."""

    candidate: Candidate
    source: KernelSource
    launch: Launch
    packing: str | None

    @classmethod
    def of(cls, problem: Row, template: Template, schedule: Any) -> Self:
        """The candidate of a schedule."""
        (source,) = template.instantiate(problem, schedule)
        (launch,) = template.launches(problem, schedule)
        candidate = Candidate(template.maker, schedule.parameters())
        return cls(candidate, source, launch, template.packing(problem, schedule))


class Bench:
    """One problem on one GPU. Use it as a context manager.

    Attributes:
        kernels: Machine code by digest of the source; a candidate's is put here before its trial.
    """

    def __init__(self, problem: Row, ordinal: int) -> None:
        """Make the operands and what they give; the GPU's process starts with the first trial."""
        self.kernels: dict[str, bytes] = {}
        self._problem, self._ordinal = problem, ordinal
        self._case = random_case(problem, _SEED)
        self._packed: dict[str, int] = {}
        self._gpu: GpuProcess | None = None
        self._trials = 0

    def __enter__(self) -> Self:
        """Nothing to do."""
        return self

    def __exit__(self, *_error: object) -> None:
        """End the process."""
        self._close()

    @property
    def device(self) -> str:
        """Name of the GPU."""
        return self._process().name

    def trial(self, kernel: SingleKernel, patience: Patience) -> Trial:
        """Check a candidate and time it; one that is wrong, however it is, ends the process."""
        try:
            trial = self._checked_and_timed(kernel, patience)
        except GpuTimeoutError as error:
            trial = Trial(kernel.candidate, Status.TIMED_OUT, (), error.what)
        except TrampledError as error:
            trial = Trial(kernel.candidate, Status.WRONG_RESULT, (), error.what)
        except LaunchError as error:
            trial = Trial(kernel.candidate, Status.LAUNCH_FAILED, (), error.what)
        self._trials += 1
        if trial.status is not Status.OK or self._trials % _TRIALS_A_PROCESS == 0:
            self._close()
        return trial

    def _checked_and_timed(self, kernel: SingleKernel, patience: Patience) -> Trial:
        gpu, source = self._process(), kernel.source
        gpu.load(KernelImage(source.digest, source, self.kernels[source.digest]))
        constant = self._constant(gpu, kernel.packing)
        device = cast("CudaDevice", gpu)  # which the operands take for their memory alone
        with (
            Operands(device, self._problem, self._case) as operands,
            _scratch(gpu, kernel.launch) as scratch,
        ):
            first, _, *others = operands.inputs
            inputs = (first, constant, *others)
            sizes = _element_bytes(self._problem, len(inputs))
            addresses = StepAddresses(inputs, sizes, (operands.output,), *scratch)
            launch = bind_launch(kernel.launch, addresses, {})
            operands.poison()
            gpu.launch(launch)
            error = worst_error(operands.result(), self._case)
            if not error <= 1.0:
                what = f"error {error:.3g} of what is allowed"
                return Trial(kernel.candidate, Status.WRONG_RESULT, (), what)
            regions: tuple[MemoryRange, ...] = ()  # operands stay where they are: warm
            timing = gpu.measure([launch], regions, Regime.WARM, patience)
        return Trial(kernel.candidate, Status.OK, timing.seconds)

    def _constant(self, gpu: GpuProcess, packing: str | None) -> int:
        """The address of the constant operand, packed; written once a process."""
        if packing is None:
            raise SystemExit("every problem of the study has a constant operand")
        if packing not in self._packed:
            image = packings.pack(packing, self._case.operands[1], self._problem)
            self._packed[packing] = gpu.allocate(image.nbytes)
            gpu.write(self._packed[packing], image.reshape(-1).view("u1"))
        return self._packed[packing]

    def _process(self) -> GpuProcess:
        if self._gpu is None or not self._gpu.is_alive:
            self._close()
            self._gpu = GpuProcess(self._ordinal)
        return self._gpu

    def _close(self) -> None:
        if self._gpu is not None:
            self._gpu.close()
        self._gpu = None
        self._packed.clear()


@contextmanager
def _scratch(gpu: GpuProcess, launch: Launch) -> Iterator[tuple[int, int]]:
    """Addresses of a launch's workspace and of its counters, 0 for none, as long as it lasts."""
    workspace = counters = 0
    try:
        for argument in launch.arguments:
            match argument:
                case WorkspaceArgument(size):
                    workspace = gpu.allocate(evaluate(size, {}))
                case CounterArgument(count):
                    zeros = np.zeros(evaluate(count, {}), np.int32).view(np.uint8)
                    counters = gpu.allocate(zeros.nbytes)
                    gpu.write(counters, zeros)
        yield workspace, counters
    finally:
        for address in filter(None, (workspace, counters)):
            gpu.free(address)


def _element_bytes(problem: Row, inputs: int) -> tuple[int, ...]:
    """Of each input: every operand of the study is of the type of the precision."""
    return (problem.precision.storage.bytes,) * inputs
