"""Executions on random data that are held against float64."""

from typing import Any

import numpy as np

from wpk.libraries.reference import random_case, worst_error
from wpk.problems import FeedForward, Matmul
from wpk.schedules import packings


def check_rows(execution: Any, template: Any, problem: FeedForward | Matmul, schedule: Any) -> None:
    """Executes a kernel of rows, whose constant matrix is packed as the schedule reads it, and holds all results against float64.

    Args:
        execution: Of the emulator.
        template: Of the schedule; perhaps with a planted fault.
        problem: What to compute.
        schedule: How.
    """
    case = random_case(problem, 0)
    reads, output = problem.accesses()
    memory = [
        packings.pack(template.packing(problem, schedule), values, problem)
        if access is None
        else execution.memory(access.tensor, np.broadcast_to(values, access.sizes))
        for access, values in zip(reads, case.operands, strict=True)
    ]
    dims = {problem.m.free: problem.m.value} if problem.m.free else {}
    y = execution.run(template, problem, schedule, memory, output.sizes, dims)
    worst = worst_error(y, case)
    assert worst <= 1, f"the largest error is {worst:.3g} times what rounding explains"
    for found, (exact, allowed) in zip(execution.others, case.beside, strict=True):
        assert np.all(np.abs(found - exact) <= allowed), "moments of what is stored"
