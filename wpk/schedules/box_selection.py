"""Boxes that do not overlap others of a higher score, a class of a batch to a block."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wpk.dtypes import DType
from wpk.performance import Columns, Work
from wpk.problems import BoxSelection
from wpk.schedules.block_limits import thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream
from wpk.schedules.strided import cpp_tensor, why_unaddressable
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type, fp32_bits
from wpk.targets import Target

_REMEMBERED = 64
"""Boxes of a thread: bits of a word."""

_OVERLAP_FLOPS = 24
"""Sides, areas and a quotient."""


@dataclass(frozen=True)
class BoxSelectionSchedule(Schedule):
    """Parameters of box_selection.cuh.

    Attributes:
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    threads: int
    early: int = 0


class BoxSelectionTemplate(SingleKernelTemplate[BoxSelection, BoxSelectionSchedule]):
    """As many turns as boxes are selected, each over the boxes that are left."""

    name: ClassVar[str] = "box_selection"
    version: ClassVar[int] = 1
    problem_type = BoxSelection
    schedule_type = BoxSelectionSchedule

    def why_not(self, problem: BoxSelection, target: Target) -> str | None:
        """Refuse strange types, more boxes than a block remembers, and padding."""
        del target
        if not (problem.boxes.dtype.is_float and problem.scores.dtype.is_float):
            return f"boxes of {problem.boxes.dtype} with scores of {problem.scores.dtype}"
        if problem.y.dtype is not DType.INT64:
            return f"numbers of boxes are {problem.y.dtype.value}; int64 is carried"
        if problem.y.padding:
            return f"the output is padded by {problem.y.padding}"
        accesses = (*problem.accesses()[0], problem.accesses()[1])
        found = (why_unaddressable([a.tensor], a.sizes) for a in accesses if a is not None)
        return next(filter(None, found), None)

    def _axes(self, problem: BoxSelection, target: Target) -> dict[str, tuple[int, ...]]:
        """Threads a block."""
        del problem, target
        return {"threads": (512, 1024, 256, 128, 64, 32)}

    def _limits(self, problem: BoxSelection) -> Sequence[Limit]:
        """Threads remember their boxes by the bits of a word."""
        return (
            Limit("(threads & (threads - 1)) == 0", "halves of a block are compared"),
            Limit(
                f"threads * {_REMEMBERED} >= {problem.count}",
                f"a thread remembers {_REMEMBERED} of the {problem.count} boxes",
            ),
        )

    def _target_limits(self, problem: BoxSelection, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`."""
        del problem
        return (thread_limit(target),)

    def work(self, problem: BoxSelection, columns: Columns, target: Target) -> Work:
        """Scores and boxes once; half of the boxes wait in a turn, and are in the caches."""
        threads = columns["threads"].astype(float)
        total, turns = float(problem.batch_size.value * problem.classes), float(problem.most)
        each = np.ceil(problem.count / threads)
        looked = total * problem.count * turns / 2.0
        size = problem.scores.dtype.bytes + 4 * problem.boxes.dtype.bytes
        return Stream(
            element_bytes=problem.scores.dtype.bytes,
            flops=looked * (_OVERLAP_FLOPS + 2.0),
            loads=total * problem.count * size,
            stores=total * turns * 3 * problem.y.dtype.bytes,
            blocks=np.full(threads.shape, total),
            threads=threads,
            registers=40.0,
            steps=each + turns * (each + 2.0 * np.log2(threads)),
            shared_bytes=8.0 * threads,
            thread_loads=turns * 4.0,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: BoxSelection, schedule: BoxSelectionSchedule) -> KernelPlan:
        """Items are classes of batches."""
        return KernelPlan(
            members={
                "Boxes": Type(cpp_tensor(problem.boxes, (0, 1, 2))),
                "Scores": Type(cpp_tensor(problem.scores, (0, 1, 2))),
                "Y": Type(cpp_tensor(problem.y, (0, 1, 2, 3))),
                "centred": problem.centred,
                "overlap": fp32_bits(problem.overlap),
                "hasThreshold": problem.threshold is not None,
                "threshold": fp32_bits(problem.threshold or 0.0),
                "classes": problem.classes,
                "count": problem.count,
                "most": problem.most,
            },
            grid=linear_grid(problem.leading, problem.classes, 1),
            threads=schedule.threads,
        )
