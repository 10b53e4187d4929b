"""Element-wise expressions: copies, casts, transposes and arithmetic over one domain, row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from wpk.dtypes import DType
from wpk.errors import ScheduleError
from wpk.expression import Operand, cpp_type, flops
from wpk.performance import Columns, Work
from wpk.problems import Elementwise, is_quantised, stored_slots
from wpk.schedules.flat_domain import CONSTANT_AXES, FlatDomain, flatten
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide, narrow_access
from wpk.schedules.strided import (
    constants_mask,
    cpp_tensor,
    cpp_tensors,
    is_wide,
    moved_bytes,
    stored_bytes,
    vector_widths,
    why_operand_missing,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type
from wpk.targets import Target

MAX_HELD = 64
"""Elements of fp32 that a thread may hold between loads and stores; half as many of fp64."""


@dataclass(frozen=True)
class ElementwiseSchedule(Schedule):
    """Parameters of elementwise.cuh.

    Attributes:
        vector: Elements of a row to an item.
        items: Items of a thread, all loaded before the first is used.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    vector: int
    items: int
    threads: int
    early: int = 0


class ElementwiseTemplate(SingleKernelTemplate[Elementwise, ElementwiseSchedule]):
    """Walks y's rows; inputs are read at their own strides."""

    name: ClassVar[str] = "elementwise"
    version: ClassVar[int] = 5
    problem_type = Elementwise
    schedule_type = ElementwiseSchedule

    def why_not(self, problem: Elementwise, target: Target) -> str | None:
        """Refuse too many axes, tensors beyond 32-bit addressing, padding that is not at a row's end."""
        return why_not_flat(problem)

    def _axes(self, problem: Elementwise, target: Target) -> dict[str, tuple[int, ...]]:
        """Elements an item, items a thread, threads a block."""
        return {
            "vector": row_vectors(flat(problem)),
            "items": (1, 2, 4),
            "threads": (256, 128, 512, 64),
        }

    def _limits(self, problem: Elementwise) -> Sequence[Limit]:
        """What a thread holds stays in registers."""
        operands = max(1, len(problem.inputs))
        most = MAX_HELD // 2 if problem.numbers is DType.FP64 else MAX_HELD
        return (
            Limit(
                f"vector * items * {operands} <= {most}",
                f"a thread holds at most {most} elements of its {operands} inputs",
            ),
        )

    def work(self, problem: Elementwise, columns: Columns, target: Target) -> Work:
        """Count the work: tables 6 and 8 for an expression of several operations and operands."""
        domain = flat(problem)
        total = domain.leading.value * domain.per_leading
        vector = columns["vector"].astype(float)
        per_thread = vector * columns["items"].astype(float)
        threads = columns["threads"].astype(float)
        loads = np.zeros(vector.shape)
        for tensor in domain.inputs:
            moved = moved_bytes(tensor, domain.full_shape, domain.row)
            loads += moved * narrow_access(vector, tensor.dtype.bytes)
        return Stream(
            element_bytes=domain.y.dtype.bytes,
            flops=float(total * max(1, flops(problem.expression))),
            loads=loads,
            stores=stored_bytes(domain.y, domain.full_shape, domain.row),
            blocks=ceil_divide(total, per_thread * threads),
            threads=threads,
            registers=24 + per_thread * max(1, len(problem.inputs)) * (problem.numbers.bytes / 4),
            early=columns["early"] == 1,
            slots=per_thread * stored_slots(problem) if is_quantised(problem) else 0.0,
            numbers=problem.numbers,
        ).work(target)

    def kernel(self, problem: Elementwise, schedule: ElementwiseSchedule) -> KernelPlan:
        """Items are pieces of y's rows."""
        domain = flat(problem)
        fill = CONSTANT_AXES - len(domain.shape)
        d1, d2, d3, row = (*(1,) * fill, *domain.shape)
        order = (0, *(None,) * fill, *range(1, domain.row + 1))
        items = d1 * d2 * d3 * -(-(row + domain.y.padding) // schedule.vector)
        return KernelPlan(
            members={
                "Operands": Type(cpp_tensors(domain.inputs, order)),
                "operand_constants": constants_mask(domain.inputs),
                "Y": Type(cpp_tensor(domain.y, order)),
                "Expression": Type(cpp_type(problem.expression)),
                "isCopy": is_copy(problem),
                "d1": d1,
                "d2": d2,
                "d3": d3,
                "row": row,
                "rowPadding": domain.y.padding,
                "wide": is_wide(domain.leading, items),
            },
            leading=domain.leading,
            grid=linear_grid(domain.leading, items, schedule.threads * schedule.items),
            threads=schedule.threads,
        )


def why_not_flat(problem: Elementwise) -> str | None:
    """Say why the problem has no flat domain that kernels can walk; None if it has."""
    if (missing := why_operand_missing(problem)) is not None:
        return missing
    domain = flatten(problem)
    if domain is None:
        return f"more than {CONSTANT_AXES} axes remain besides the leading one"
    shape = (1, *domain.shape)
    reason = why_unaddressable([*domain.inputs, domain.y], shape)
    return reason or why_unpaddable(domain.y, (domain.row,))


def flat(problem: Elementwise) -> FlatDomain:
    """Return the flat domain of a problem that `why_not_flat` accepts.

    Raises:
        ScheduleError: It was not asked.
    """
    domain = flatten(problem)
    if domain is None:
        raise ScheduleError(str(why_not_flat(problem)), fix="ask the template's why_not first")
    return domain


def row_vectors(domain: FlatDomain) -> tuple[int, ...]:
    """Return the elements along y's rows worth moving at once."""
    extent = domain.shape[-1] + domain.y.padding
    return vector_widths([*domain.inputs, domain.y], domain.row, extent)


def is_copy(problem: Elementwise) -> bool:
    """Return whether elements are moved without arithmetic."""
    return problem.expression == Operand(0) and len(problem.inputs) == 1
