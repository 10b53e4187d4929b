"""Pooling: max and average over windows, one pixel and a few channels to a thread."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from wpk.dtypes import DType
from wpk.expression import flops
from wpk.performance import Floats, pooling_flops
from wpk.problems import Pooling, PoolKind
from wpk.schedules.image import ORDER, Image, both_axes, image_members
from wpk.schedules.limit import Limit
from wpk.schedules.streaming import narrow_access
from wpk.schedules.strided import cpp_tensor, why_operand_missing
from wpk.schedules.unit import Members, Type
from wpk.schedules.vector_template import Reads, VectorTemplate
from wpk.targets import Target


class PoolingTemplate(VectorTemplate[Pooling]):
    """Every window is read by its own thread; neighbours meet in the L1 cache."""

    name: ClassVar[str] = "pooling"
    version: ClassVar[int] = 7
    problem_type = Pooling

    def why_not(self, problem: Pooling, target: Target) -> str | None:
        """Refuse tensors beyond 32-bit addressing, padding along rows, and places that are no int64."""
        del target
        if problem.kind.finds_places and problem.y.dtype is not DType.INT64:
            return f"places are {problem.y.dtype.value}; int64 is carried"
        return why_operand_missing(problem) or Image.of(problem).why_not(problem)

    def _limits(self, problem: Pooling) -> Sequence[Limit]:
        return Image.of(problem).limits()

    def _vectors(self, problem: Pooling) -> tuple[int, ...]:
        return Image.of(problem).vectors(problem.x)

    def _items(self, problem: Pooling, vector: int) -> int:
        return Image.of(problem).items(vector)

    def _reads(self, problem: Pooling, vector: Floats, threads: Floats, blocks: Floats) -> Reads:
        """Tables 6 and 8: windows counted in full, a block's input tile once."""
        image = Image.of(problem)
        shape = (problem.n.value, problem.c, problem.p, problem.q)
        tail = prod(shape) * flops(problem.epilogue.expression)
        windows = (problem.window, problem.stride, problem.dilation)
        tile, size = image.block_inputs(vector * threads, *windows), problem.x.dtype.bytes
        return Reads(
            flops=pooling_flops(*shape, problem.window) + tail,
            loads=blocks * tile * size * narrow_access(vector, size) + image.operand_bytes(problem),
            registers=24.0 + 3 * vector,
        )

    def _members(self, problem: Pooling) -> Members:
        return {
            "X": Type(cpp_tensor(problem.x, ORDER)),
            **image_members(problem),
            **_kind(problem),
            **both_axes("window", problem.window),
            "padBottom": problem.pad_end[0],
            "padRight": problem.pad_end[1],
        }


def _kind(problem: Pooling) -> Members:
    """What a window becomes."""
    if problem.kind.finds_places:
        return {"findsPlaces": True, "byColumns": problem.kind is PoolKind.COLUMN_PLACES}
    return {
        "findsPlaces": False,
        "isMax": problem.kind is PoolKind.MAX,
        "countIncludePad": problem.count_include_pad,
    }
