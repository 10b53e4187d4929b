"""Element-wise expressions whose inputs and output are contiguous along different axes (transposes)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from wpk.dtypes import DType
from wpk.expression import cpp_type, flops
from wpk.performance import Columns, SharedAccess, Work
from wpk.problems import Elementwise, Tensor
from wpk.schedules.block_limits import declared_limit
from wpk.schedules.elementwise import flat, is_copy, why_not_flat
from wpk.schedules.flat_domain import CONSTANT_AXES, FlatDomain
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, ceil_divide
from wpk.schedules.strided import SECTOR_BYTES, cpp_tensor, is_wide, moved_bytes
from wpk.schedules.template import Schedule
from wpk.schedules.unit import Type
from wpk.targets import Target

_BANK_BYTES = 4
_WARP = 32


@dataclass(frozen=True)
class TiledSchedule(Schedule):
    """Parameters of elementwise_tiled.cuh.

    Attributes:
        vector: Neighbouring elements that a thread loads and stores at once.
        tile: Extent of the square tiles.
        threads: Threads of a block.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    vector: int
    tile: int
    threads: int
    early: int = 0


class ElementwiseTiledTemplate(SingleKernelTemplate[Elementwise, TiledSchedule]):
    """Tiles cross from one axis to the other through shared memory."""

    name: ClassVar[str] = "elementwise_tiled"
    version: ClassVar[int] = 5
    problem_type = Elementwise
    schedule_type = TiledSchedule

    def why_not(self, problem: Elementwise, target: Target) -> str | None:
        """Refuse what elementwise refuses, and problems where nothing crosses."""
        reason = why_not_flat(problem)
        if reason is not None:
            return reason
        if flat(problem).y.strides[-1] != 1:
            return "the output is not contiguous along any axis"
        if problem.numbers not in (DType.FP32, DType.FP64):
            return f"it computes in {problem.numbers}"
        if _column(flat(problem)) is None:
            return "no input is contiguous along another axis than the output"
        return None

    def _axes(self, problem: Elementwise, target: Target) -> dict[str, tuple[int, ...]]:
        """Elements at once, tile, threads a block."""
        return {
            "vector": (1, 2, 4),
            "tile": (32, 64),
            "threads": (256, 128, 512),
        }

    def _limits(self, problem: Elementwise) -> Sequence[Limit]:
        """Threads share a tile evenly; tiles fit the shared memory that a kernel may declare."""
        line, gap = _line_bytes(problem)
        return (
            Limit("tile * tile % (vector * threads) == 0", "threads divide the vectors of a tile"),
            declared_limit(f"tile * (tile * {line} + {gap})", "tiles"),
        )

    def work(self, problem: Elementwise, columns: Columns, target: Target) -> Work:
        """Count the work: tables 6 to 8, tiles in full: lines that a tile's edge cuts are loaded whole."""
        domain = _arranged(problem)
        tile, threads = columns["tile"].astype(float), columns["threads"].astype(float)
        vector, (line, gap) = columns["vector"].astype(float), _line_bytes(problem)
        column, row = domain.shape[-2], domain.shape[-1] + domain.y.padding
        blocks = domain.leading.value * prod(domain.shape[:-2])
        tiles = blocks * ceil_divide(column, tile) * ceil_divide(row, tile)
        crossing = [tensor for tensor, crosses in _operands(problem) if crosses]
        plain = [tensor for tensor, crosses in _operands(problem) if not crosses]
        elements = prod(domain.full_shape)
        loads = sum(float(elements * t.dtype.bytes) for t in crossing)
        loads += sum(moved_bytes(t, domain.full_shape, domain.row) for t in plain)
        size = domain.y.dtype.bytes
        cut = SECTOR_BYTES / size / tile  # a sector more for each line of a tile
        return Stream(
            element_bytes=size,
            flops=tiles * tile**2 * max(1, flops(problem.expression)),
            loads=loads * (1 + cut),
            stores=float(domain.leading.value * domain.per_leading * size),
            blocks=tiles,
            threads=threads,
            registers=32.0 + vector * 2 * max(1, len(problem.inputs)) * (problem.numbers.bytes / 4),
            steps=tile**2 / (threads * vector),
            stages=tile**2 / (threads * vector),
            shared_bytes=tile * (tile * line + gap),
            thread_loads=len(crossing) * tile**2 / threads,
            early=columns["early"] == 1,
            numbers=problem.numbers,
        ).work(target)

    def shared_accesses(
        self, problem: Elementwise, schedule: TiledSchedule
    ) -> Sequence[SharedAccess]:
        """Return the reads down the columns of a tile; rows lie an odd number of words apart."""
        per_row = schedule.tile // schedule.vector
        accesses = []
        for tensor, crosses in _operands(problem):
            if not crosses:
                continue
            size = tensor.dtype.bytes
            addresses = tuple(
                (lane % per_row * schedule.vector * _pitch(schedule.tile, size) + lane // per_row)
                * size
                for lane in range(_WARP)
            )
            accesses.append(SharedAccess(addresses, size, schedule.vector))
        return tuple(accesses)

    def kernel(self, problem: Elementwise, schedule: TiledSchedule) -> KernelPlan:
        """Items are tiles."""
        domain = _arranged(problem)
        fill = CONSTANT_AXES - len(domain.shape)
        d1, d2, column, row = (*(1,) * fill, *domain.shape)
        plain = (0, *(None,) * fill, *range(1, domain.row + 1))
        swapped = (*plain[:-2], plain[-1], plain[-2])
        operands = [
            f"wpk::Crossing<{cpp_tensor(tensor, swapped)}>"
            if crosses
            else cpp_tensor(tensor, plain)
            for tensor, crosses in _operands(problem)
        ]
        room = row + domain.y.padding
        items = d1 * d2 * -(-column // schedule.tile) * -(-room // schedule.tile)
        return KernelPlan(
            members={
                "Operands": Type(f"wpk::Tensors<{', '.join(operands)}>"),
                "Y": Type(cpp_tensor(domain.y, plain)),
                "Expression": Type(cpp_type(problem.expression)),
                "isCopy": is_copy(problem),
                "d1": d1,
                "d2": d2,
                "column": column,
                "row": row,
                "rowPadding": domain.y.padding,
                "wide": is_wide(domain.leading, items),
            },
            leading=domain.leading,
            grid=linear_grid(domain.leading, items, 1),
            threads=schedule.threads,
        )


def _column(domain: FlatDomain) -> int | None:
    """The axis along which the largest crossing input is contiguous."""
    crossing = [
        (domain.shape[axis - 1], axis)
        for tensor in domain.inputs
        for axis in range(1, domain.row)
        if tensor.strides[axis] == 1 and tensor.strides[domain.row] not in (0, 1)
    ]
    return max(crossing)[1] if crossing else None


def _arranged(problem: Elementwise) -> FlatDomain:
    """The flat domain with the column axis just before the row axis."""
    domain = flat(problem)
    column = _column(domain)
    return domain if column is None else domain.moved(column, domain.row - 1)


def _operands(problem: Elementwise) -> list[tuple[Tensor, bool]]:
    """The arranged inputs, and whether each crosses."""
    domain = _arranged(problem)
    column, row = domain.row - 1, domain.row
    return [
        (tensor, tensor.strides[column] == 1 and tensor.strides[row] not in (0, 1))
        for tensor in domain.inputs
    ]


def _pitch(tile: int, size: int) -> int:
    """Elements from row to row of a tile: an odd number of words, or of elements above a word."""
    return tile + max(_BANK_BYTES, size) // size


def _line_bytes(problem: Elementwise) -> tuple[int, int]:
    """Bytes of one column of all tiles, and of the gaps after their rows: what `_pitch` adds up to."""
    sizes = [tensor.dtype.bytes for tensor, crosses in _operands(problem) if crosses]
    return sum(sizes), sum(max(_BANK_BYTES, size) for size in sizes)
