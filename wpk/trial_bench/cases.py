"""The candidates of each problem are checked and timed on a case: an operator with the reference's values."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import CancelledError, Future, wait
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from wpk.assembly import Implementation, PackedConstants, WeightStore, step_of
from wpk.beside import Beside
from wpk.checks import Array, Reference
from wpk.lowering.program import Program
from wpk.phases import Phases
from wpk.plan import Step, Tensors
from wpk.problems import Problem
from wpk.progress import Progress

STAGE = "computing references"

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class Case:
    """A case is one operator of a problem, with operands and the result that it should give.

    Attributes:
        program: The model's program with this operator alone.
        memory: Tensors in the buffers that the operator works on, as they lie in memory.
        result: What it should give; None for a copy, which should give its input's bytes.
    """

    program: Program
    memory: dict[str, Array]
    result: Reference | None

    def step(self, implementation: Implementation) -> tuple[Step, Tensors]:
        """Return the operator's step by an implementation, and what it works on."""
        program, store = self.program, WeightStore(self._constants)
        (operator,) = program.operators
        step = step_of(operator, implementation, store)
        return step, Tensors(program.values, program.buffers, store.weights, store.arrays)

    @cached_property
    def _constants(self) -> PackedConstants:
        """What the candidates tried so far have packed."""
        return PackedConstants(self.program.constants)


@dataclass(frozen=True)
class ComputedCase:
    """A case that has just been computed.

    Attributes:
        problem: Its problem.
        case: The case.
        seconds: What its reference took, without what had to be computed before.
    """

    problem: Problem
    case: Case
    seconds: float


Compute = Callable[[Progress], Iterator[ComputedCase]]
"""Computes cases one after the other, and tells its progress before each node."""


class Cases(Mapping[Problem, Case]):
    """Cases at one seed are handed over one by one, each as soon as it is computed.

    They are computed in an order of their own beside other work (`begin`); or else where they are asked for, as far as
    that one which is asked for. Either way one thread computes them, and what it computes does not depend on who
    asks when. An error ends the computing, and is raised whenever a case is asked for from then on.

    Attributes:
        waited: Seconds for which whoever asked had to wait.
    """

    def __init__(
        self, problems: Collection[Problem], compute: Compute, bytes_in_all: int, phases: Phases
    ) -> None:
        """Describe them; nothing is computed yet.

        Args:
            problems: What there are cases of.
            compute: Computes all of them.
            bytes_in_all: What they take together.
            phases: Told where somebody waits.
        """
        self._handed = {problem: Future[ComputedCase]() for problem in problems}
        self._all: Future[None] = Future()
        self._compute, self._bytes, self._phases = compute, bytes_in_all, phases
        self._here: Iterator[ComputedCase] | None = compute(phases)
        self.waited = 0.0

    def begin(self, beside: Beside) -> None:
        """Compute them beside other work."""
        self._here = None
        work = beside.submit(lambda tell: self._hand_over(self._compute(tell)))
        work.add_done_callback(self._cancelled)

    def __getitem__(self, problem: Problem) -> Case:
        """The case of a problem; wait for it."""
        return self._waited_for(self._handed[problem]).case

    def __iter__(self) -> Iterator[Problem]:
        """All problems."""
        return iter(self._handed)

    def __len__(self) -> int:
        """Number of problems."""
        return len(self._handed)

    def check(self) -> None:
        """Raise the error that ended the computing, if there was one."""
        if self._all.done():
            self._all.result()

    def finish(self) -> None:
        """Wait until all have been computed."""
        self._waited_for(self._all)

    @property
    def coming_bytes(self) -> int:
        """What those take at most that are not computed yet."""
        return 0 if self._all.done() else self._bytes

    def known_seconds(self) -> dict[Problem, float]:
        """Return what references took, of the cases that have been computed."""
        handed = {p: each for p, each in self._handed.items() if each.done()}
        return {problem: each.result().seconds for problem, each in handed.items()}

    def _waited_for(self, handed: Future[_Result]) -> _Result:
        self.check()
        if not handed.done():
            begun = time.monotonic()
            with self._phases.within(STAGE):
                if self._here is None:
                    self._phases(STAGE, sum(e.done() for e in self._handed.values()), len(self))
                    wait([handed])
                else:
                    self._hand_over(self._here, handed)
            self.waited += time.monotonic() - begun
        return handed.result()

    def _hand_over(
        self, coming: Iterator[ComputedCase], until: Future[_Result] | None = None
    ) -> None:
        """Compute all that are to come; or up to one that is waited for."""
        try:
            for each in coming:
                self._handed[each.problem].set_result(each)
                if until is not None and until.done():
                    return
            for problem, handed in self._handed.items():
                if not handed.done():
                    raise LookupError(f"no case was computed of {problem.words()}")
        except BaseException as error:
            self._break(error)
            raise
        self._all.set_result(None)

    def _break(self, error: BaseException) -> None:
        """Raise an error wherever somebody waits, or will ask."""
        if not self._all.done():
            self._all.set_exception(error)
        for each in self._handed.values():
            if not each.done():
                each.set_exception(error)

    def _cancelled(self, work: Future[None]) -> None:
        """Nobody waits for what was given up before it began."""
        if work.cancelled():
            self._break(CancelledError())
