"""The places of the first elements of rows, by counting what stands before each."""

from typing import ClassVar

import numpy as np

from wpk.performance import Floats
from wpk.problems import TopIndices
from wpk.schedules.unit import Members
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.schedules.views.top_indices import members, rows, why_not
from wpk.targets import Target

_LONGEST = 2**15
"""Elements of a row beyond which counting, which squares them, takes longer than anything else."""


class TopByRankTemplate(VectorTemplate[TopIndices]):
    """A thread an element, which compares it with all of its row: nothing is shared, and nobody waits."""

    name: ClassVar[str] = "top_by_rank"
    version: ClassVar[int] = 1
    problem_type = TopIndices

    def why_not(self, problem: TopIndices, target: Target) -> str | None:
        """Refuse rows that are too long to compare each element with each."""
        del target
        if problem.size > _LONGEST:
            return (
                f"rows of {problem.size} elements, each compared with each; {_LONGEST} are carried"
            )
        return why_not(problem)

    def _vectors(self, problem: TopIndices) -> tuple[int, ...]:
        return (1,)

    def _items(self, problem: TopIndices, vector: int) -> int:
        """Elements."""
        return rows(problem) * problem.size

    def _reads(self, problem: TopIndices, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """Every element is compared with its row, which the caches hold: a block loads it once."""
        total = float(problem.leading.value * rows(problem) * problem.size)
        return Reads(
            flops=5.0 * total * problem.size,
            loads=blocks * float(problem.size * problem.x.dtype.bytes),
            registers=np.full_like(vector, 24.0),
            steps=problem.size / 4.0,
        )

    def _members(self, problem: TopIndices) -> Members:
        return {**members(problem, with_count=True), "count": problem.count}
