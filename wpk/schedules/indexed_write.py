"""Updates written where an index tensor says, as each element of the output sees them."""

from math import prod
from typing import ClassVar

import numpy as np

from wpk.performance import Floats
from wpk.problems import IndexedWrite, WriteKind
from wpk.schedules.indexed_read import INDEX_TYPES, picked_axes
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import (
    cpp_tensor,
    vector_widths,
    why_unaddressable,
    why_unpaddable,
)
from wpk.schedules.unit import Enumerator, Members, Type, Wide
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.targets import Target

_ROW = 3


class IndexedWriteTemplate(VectorTemplate[IndexedWrite]):
    """A thread looks through all updates that may go to its elements; it needs no atomic operation."""

    name: ClassVar[str] = "indexed_write"
    version: ClassVar[int] = 1
    problem_type = IndexedWrite

    def why_not(self, problem: IndexedWrite, target: Target) -> str | None:
        """Refuse strange index types, tensors of several types, and padding not along rows."""
        del target
        reason = why_not_written(problem)
        combines = problem.kind is not WriteKind.NONE
        if reason is None and combines and problem.y.dtype.value == "bool":
            return f"booleans have no {problem.kind}"
        return reason

    def _vectors(self, problem: IndexedWrite) -> tuple[int, ...]:
        moved = [problem.data, problem.updates, problem.y]
        return vector_widths(moved, _ROW, problem.inner + problem.y.padding)

    def _items(self, problem: IndexedWrite, vector: int) -> int:
        """Pieces of rows."""
        chunks = -(-(problem.inner + problem.y.padding) // vector)
        return prod(problem.outer[1:]) * problem.size * chunks

    def _reads(
        self, problem: IndexedWrite, vector: Floats, threads: Floats, blocks: Floats
    ) -> Reads:
        """Data and updates once; the indices pass by every thread, from the caches."""
        size, numbers = problem.y.dtype.bytes, len(problem.sizes)
        elements = problem.leading.value * prod(problem.outer[1:]) * problem.size * problem.inner
        items = elements / (vector if shares_index(problem) else np.ones_like(vector))
        moved = float(problem.moved_bytes() - problem.accesses()[1].distinct_bytes)
        passing = blocks * float(problem.count * numbers * problem.index.dtype.bytes)
        return Reads(
            flops=items * problem.count * (2.0 + 4.0 * numbers),
            loads=moved * narrow_access(vector, size) + passing,
            registers=28.0 + 3 * vector,
            steps=1.0 + problem.count / 4.0,
        )

    def _members(self, problem: IndexedWrite) -> Members:
        return {
            **index_members(problem),
            "sharesIndex": shares_index(problem),
            "kind": Enumerator(f"wpk::WriteKind::{problem.kind.value}"),
        }


def why_not_written(problem: IndexedWrite) -> str | None:
    """Why kernels cannot address a problem's tensors, or read its indices."""
    if problem.index.dtype not in INDEX_TYPES:
        return f"indices are {problem.index.dtype.value}; int32 and int64 are carried"
    types = {problem.data.dtype, problem.updates.dtype, problem.y.dtype}
    if len(types) > 1:
        return f"data, updates and result are {', '.join(sorted(types))}"
    outer, inner = problem.outer, problem.inner
    whole, updates = (*outer, problem.size, inner), (*outer, problem.count, inner)
    reason = why_unaddressable([problem.data, problem.y], whole)
    reason = reason or why_unaddressable([problem.updates], updates)
    reason = reason or why_unaddressable([problem.index], (*updates, len(problem.sizes)))
    return reason or why_unpaddable(problem.y, (_ROW,))


def index_members(problem: IndexedWrite) -> Members:
    """The members of ``Problem`` that say what is written where."""
    steps = tuple(prod(problem.sizes[axis + 1 :]) for axis in range(len(problem.sizes)))
    order = range(_ROW + 1)
    return {
        "Data": Type(cpp_tensor(problem.data, order)),
        "Index": Type(cpp_tensor(problem.index, order)),
        "Updates": Type(cpp_tensor(problem.updates, order)),
        "Y": Type(cpp_tensor(problem.y, order)),
        "Picked": picked_axes(problem.sizes, steps),
        "indexStep": Wide(problem.index.strides[-1]),
        "advance": Enumerator(f"wpk::Advance::{problem.advance.value}"),
        "other": problem.outer[1],
        "size": problem.size,
        "count": problem.count,
        "inner": problem.inner,
        "rowPadding": problem.y.padding,
    }


def shares_index(problem: IndexedWrite) -> bool:
    """Whether all elements of a row have one index."""
    return problem.index.strides[_ROW] == 0 or problem.inner == 1
