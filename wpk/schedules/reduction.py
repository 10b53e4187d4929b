"""Reductions of some axes, with element-wise work before and after."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from wpk.expression import cpp_type, flops
from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import Reduction
from wpk.schedules.block_limits import declared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access, short_run
from wpk.schedules.strided import (
    constants_mask,
    cpp_tensor,
    cpp_tensors,
    is_wide,
    moved_bytes,
    stored_bytes,
    why_operand_missing,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Enumerator, Type
from wpk.schedules.views.reduction import INNER_AXES, OUTER_AXES, view_of
from wpk.targets import Target

_MOST_LOADS, _MOST_LOADED, _BLOCK_LOADED = 8, 64, 32768
"""Loads that a thread has under way at once, and words of them, in a thread and in a block;
reduction.cuh has the same."""


@dataclass(frozen=True)
class ReductionSchedule(Schedule):
    """Parameters of reduction.cuh.

    Attributes:
        vector: Elements loaded at once.
        outputs: Items of a block: outputs, or vectors of outputs.
        splits: Threads that share an item.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    vector: int
    outputs: int
    splits: int
    early: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.outputs * self.splits


class ReductionTemplate(SingleKernelTemplate[Reduction, ReductionSchedule]):
    """Threads walk the axis along which the inputs are contiguous, reduced or not; sums are fp32, or fp64."""

    name: ClassVar[str] = "reduction"
    version: ClassVar[int] = 7
    problem_type = Reduction
    schedule_type = ReductionSchedule

    def why_not(self, problem: Reduction, target: Target) -> str | None:
        """Refuse too many axes, empty reductions, 64-bit offsets and padding not at a row's end."""
        if len(problem.outer) > OUTER_AXES or len(problem.inner) > INNER_AXES:
            return (
                f"{len(problem.outer)} outer and {len(problem.inner)} inner axes, "
                f"at most {OUTER_AXES} and {INNER_AXES} are carried"
            )
        if problem.reduction == 0:
            return "nothing is reduced: an inner axis is empty"
        operands = problem.epilogue.operands
        missing = why_operand_missing(problem)
        outer = (1, *problem.outer[1:])
        reason = missing or why_unaddressable(problem.inputs, (*outer, *problem.inner))
        reason = reason or why_unaddressable([problem.y, *operands], outer)
        problem = view_of(problem).problem
        return reason or why_unpaddable(problem.y, range(1, len(problem.outer)))

    def _axes(self, problem: Reduction, target: Target) -> dict[str, tuple[int, ...]]:
        """Vector, items a block, threads an item."""
        view = view_of(problem)
        return {
            "vector": view.vectors,
            "outputs": (32, 8, 1, 2, 4, 16, 64, 128),
            "splits": (8, 32, 1, 2, 4, 16, 64, 128, 256, 512),
        }

    def _limits(self, problem: Reduction) -> Sequence[Limit]:
        """Blocks of whole warps; shares fit the shared memory."""
        return (
            Limit("(outputs & (outputs - 1)) == 0", "outputs of a block are a power of two"),
            Limit("(splits & (splits - 1)) == 0", "threads of an output are a power of two"),
            Limit("outputs * splits % 32 == 0", "a block has whole warps"),
            declared_limit(f"outputs * splits * vector * {_value_bytes(problem)}", "shares"),
        )

    def _target_limits(self, problem: Reduction, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no more threads than work."""
        return (
            Limit(
                f"splits < {2 * max(1, problem.reduction)}",
                f"threads share the {problem.reduction} elements of an output",
            ),
            thread_limit(target, "outputs * splits"),
        )

    def work(self, problem: Reduction, columns: Columns, target: Target) -> Work:
        """Count the work: every input once; table 6's one operation an element and those of the prologue."""
        view = view_of(problem)
        problem = view.problem
        vector, splits = columns["vector"].astype(float), columns["splits"].astype(float)
        outer = (problem.leading.value, *problem.outer[1:])
        shape = (*outer, *problem.inner)
        item = vector if view.along_outer else 1.0
        items = problem.leading.value * prod(problem.outer[1:])
        outputs = columns["outputs"].astype(float)
        threads = outputs * splits
        blocks = ceil_divide(items, outputs * item)
        fastest = view.order[-1] if view.along_outer else view.inner[-1]
        walked = problem.reduction / splits / (1.0 if view.along_outer else vector)
        run = outputs * vector if view.along_outer else splits * vector
        size = problem.inputs[0].dtype.bytes if problem.inputs else 4
        operands = max(1, len(problem.inputs))
        words = _value_bytes(problem) / 4
        elements = np.minimum(_MOST_LOADED, _BLOCK_LOADED / threads) / words
        at_once = np.floor(elements / (vector * operands)).clip(1, _MOST_LOADS)
        tail = prod(outer) * flops(problem.epilogue.expression)
        moved = sum(moved_bytes(t, shape, fastest or 0) for t in problem.inputs)
        return Stream(
            element_bytes=size,
            flops=float(prod(shape) * (1 + flops(problem.prologue)) + tail),
            loads=moved * np.maximum(short_run(run, size), narrow_access(vector, size)),
            stores=stored_bytes(problem.y, outer, view.order[-1] or 0),
            blocks=blocks,
            threads=threads,
            registers=24
            + vector * (1 + len(problem.inputs) * at_once) * (_value_bytes(problem) / 4),
            steps=walked.clip(min=1.0),
            stages=np.minimum(walked, at_once).clip(min=1.0),
            shared_bytes=threads * vector * _value_bytes(problem) * (splits > 1),
            thread_loads=vector * (splits > 1),
            early=columns["early"] == 1,
            numbers=problem.numbers,
        ).work(target)

    def shared_accesses(
        self, problem: Reduction, schedule: ReductionSchedule
    ) -> Sequence[SharedAccess]:
        """Return the first halving: neighbouring outputs lie in neighbouring words."""
        if schedule.splits == 1:
            return ()
        half, along_outer = schedule.splits // 2 * schedule.outputs, view_of(problem).along_outer
        size, addresses = _value_bytes(problem), []
        for thread in range(32):
            output, share = thread % schedule.outputs, thread // schedule.outputs
            if not along_outer:
                output, share = thread // schedule.splits, thread % schedule.splits
            word = half + share * schedule.outputs + output
            addresses.append(word * size if share < schedule.splits // 2 else -1)
        return (SharedAccess(tuple(addresses), size, schedule.vector),)

    def kernel(self, problem: Reduction, schedule: ReductionSchedule) -> KernelPlan:
        """Items are outputs, or vectors of them."""
        view = view_of(problem)
        problem = view.problem
        y_order, extents = (0, *view.order), view.extents
        x_order = (0, *view.order, *view.inner)
        if view.along_outer:
            x_order = (0, *view.order[:2], *view.inner, view.order[2])
        chunk = schedule.vector if view.along_outer else 1
        o1, o2, row, i1, i2, i3 = extents
        items = o1 * o2 * -(-(row + problem.y.padding) // chunk)
        return KernelPlan(
            members={
                "Inputs": Type(cpp_tensors(problem.inputs, x_order)),
                "Y": Type(cpp_tensor(problem.y, y_order)),
                "Operands": Type(cpp_tensors(problem.epilogue.operands, y_order)),
                "operand_constants": constants_mask(problem.epilogue.operands),
                "Prologue": Type(cpp_type(problem.prologue)),
                "Epilogue": Type(cpp_type(problem.epilogue.expression)),
                "kind": Enumerator(f"wpk::ReduceKind::{problem.kind.value}"),
                "alongOuter": view.along_outer,
                "o1": o1,
                "o2": o2,
                "row": row,
                "i1": i1,
                "i2": i2,
                "i3": i3,
                "rowPadding": problem.y.padding,
                "wide": is_wide(problem.leading, items),
            },
            leading=problem.leading,
            grid=linear_grid(problem.leading, items, schedule.outputs),
            threads=schedule.threads,
        )


def _value_bytes(problem: Reduction) -> int:
    """Bytes of what is reduced."""
    return problem.numbers.bytes
