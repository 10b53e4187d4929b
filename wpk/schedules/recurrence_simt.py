"""Recurrences on the ordinary cores, a few sequences to a block (recurrence_simt.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wpk.performance import Columns, Work
from wpk.problems import Cell, Recurrence
from wpk.schedules.block_limits import shared_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Members
from wpk.schedules.views.recurrence import recurrence_members, resets_first, why_not_recurrence
from wpk.targets import Target

_WARP, _MAX_WARPS, _GROUP = 32, 32, 4
_OTHER_REGISTERS = 40


@dataclass(frozen=True)
class RecurrenceSimtSchedule(Schedule):
    """Parameters of recurrence_simt.cuh.

    Attributes:
        warps: Warps of a block, each with one unit at a time.
        rows: Sequences of a block.
    """

    warps: int
    rows: int


class RecurrenceSimtTemplate(SingleKernelTemplate[Recurrence, RecurrenceSimtSchedule]):
    """Blocks that wait for nobody."""

    name: ClassVar[str] = "recurrence_simt"
    version: ClassVar[int] = 2
    problem_type = Recurrence
    schedule_type = RecurrenceSimtSchedule

    def why_not(self, problem: Recurrence, target: Target) -> str | None:
        """Refuses states that no block holds."""
        held, room = _state_bytes(problem), target.max_shared_block
        if held > room:
            return f"the states of a sequence take {held} bytes, a block has {room}"
        return why_not_recurrence(problem)

    def _axes(self, problem: Recurrence, target: Target) -> dict[str, tuple[int, ...]]:
        """Warps and sequences of a block."""
        rows = tuple(n for n in (1, 2, 4, 8) if n == 1 or n <= problem.batch.value)
        return {"warps": (4, 8, 16, 32), "rows": rows}

    def _limits(self, problem: Recurrence) -> Sequence[Limit]:
        """A lane for each sequence."""
        return (
            Limit(f"1 <= warps <= {_MAX_WARPS}", f"a block has 1 to {_MAX_WARPS} warps"),
            Limit(f"1 <= rows <= {_WARP}", f"a warp has a lane for each of 1 to {_WARP} sequences"),
        )

    def _target_limits(self, problem: Recurrence, target: Target) -> Sequence[Limit]:
        """The states in shared memory, and a block's registers."""
        file = target.registers_sm
        return (
            shared_limit(target),
            Limit(f"registers * threads <= {file}", f"a block has at most {file} registers"),
        )

    def work(self, problem: Recurrence, columns: Columns, target: Target) -> Work:
        """R once a step in every block."""
        warps, rows = (columns[name].astype(np.float64) for name in ("warps", "rows"))
        blocks, element = np.ceil(problem.batch.value / rows), problem.r.dtype.bytes
        units = np.ceil(problem.hidden / warps)
        groups = float(-(-problem.hidden // (_WARP * _GROUP)) * _GROUP)
        outputs = problem.batch.value * problem.hidden * float(problem.steps)
        return Stream(
            element_bytes=element,
            flops=2.0 * problem.macs,
            loads=blocks * problem.steps * float(problem.rows * problem.hidden * element)
            + outputs * problem.gates * problem.p.dtype.bytes,
            stores=outputs * problem.y.dtype.bytes,
            blocks=blocks,
            threads=warps * _WARP,
            registers=_OTHER_REGISTERS + problem.gates * (rows + _GROUP),
            steps=problem.steps * units,
            shared_bytes=rows * _state_bytes(problem),
            thread_loads=problem.steps * units * groups * rows,
        ).work(target)

    def kernel(self, problem: Recurrence, schedule: RecurrenceSimtSchedule) -> KernelPlan:
        """Blocks over the batch."""
        members: Members = recurrence_members(problem)
        return KernelPlan(
            members=members,
            grid=linear_grid(problem.leading, 1, schedule.rows),
            threads=schedule.warps * _WARP,
            shared_bytes=schedule.rows * _state_bytes(problem),
        )


def _state_bytes(problem: Recurrence) -> int:
    """Bytes of one sequence's states in shared memory."""
    buffers = 3 if problem.cell is Cell.LSTM or resets_first(problem) else 2
    return buffers * problem.hidden * problem.numbers.bytes
