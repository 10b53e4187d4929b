"""Templates whose threads each compute one vector of the output, and read what it needs by themselves."""

import abc
from typing import Generic, NamedTuple

from wpk.dims import DimExpr
from wpk.performance import Columns, Floats, Work
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, VectorSchedule, ceil_divide
from wpk.schedules.strided import is_wide
from wpk.schedules.template import P
from wpk.schedules.unit import Members
from wpk.targets import Target


class Reads(NamedTuple):
    """What the kernels of a template do besides storing the output; of `Stream`.

    Attributes:
        flops: Operations in all.
        loads: Bytes that all blocks load.
        registers: Estimated registers of a thread.
        steps: Dependent loads of a thread, one after the other.
    """

    flops: Floats | float
    loads: Floats
    registers: Floats
    steps: float = 1.0


class VectorTemplate(SingleKernelTemplate[P, VectorSchedule], abc.ABC, Generic[P]):
    """A template of kernels with one vector to a thread."""

    schedule_type = VectorSchedule

    @abc.abstractmethod
    def _vectors(self, problem: P) -> tuple[int, ...]:
        """Elements of a vector to try."""

    @abc.abstractmethod
    def _items(self, problem: P, vector: int) -> int:
        """Vectors of the output at one leading index, those of its padding included."""

    @abc.abstractmethod
    def _reads(self, problem: P, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """What so many blocks do, of so many threads with vectors of so many elements."""

    @abc.abstractmethod
    def _members(self, problem: P) -> Members:
        """Members of the kernel's ``Problem``."""

    def _sizes(self, problem: P) -> tuple[DimExpr, ...]:
        """Sizes that a launch passes besides the leading extent."""
        del problem
        return ()

    def _axes(self, problem: P, target: Target) -> dict[str, tuple[int, ...]]:
        return {"vector": self._vectors(problem), "threads": (256, 128, 64, 512)}

    def work(self, problem: P, columns: Columns, target: Target) -> Work:
        """See `ScheduleTemplate.work`; each output is stored once."""
        total = problem.leading.value * self._items(problem, 1)
        vector, threads = columns["vector"].astype(float), columns["threads"].astype(float)
        blocks = ceil_divide(total, vector * threads)
        source, *_ = problem.accesses()[0]
        return Stream(
            element_bytes=0 if source is None else source.tensor.dtype.bytes,
            stores=total * problem.y.dtype.bytes,
            blocks=blocks,
            threads=threads,
            early=columns["early"] == 1,
            **self._reads(problem, vector, threads, blocks)._asdict(),
        ).work(target)

    def kernel(self, problem: P, schedule: VectorSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`; an item is a vector."""
        items = self._items(problem, schedule.vector)
        return KernelPlan(
            members={**self._members(problem), "wide": is_wide(problem.leading, items)},
            grid=linear_grid(problem.leading, items, schedule.threads),
            threads=schedule.threads,
            sizes=self._sizes(problem),
        )
