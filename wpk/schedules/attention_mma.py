"""Attention on the tensor cores, without the scores in memory (attention_mma.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import Precision
from wpk.expression import flops
from wpk.performance import Columns, Floats, Work
from wpk.problems import Attention, Tensor
from wpk.schedules.limit import Limit
from wpk.schedules.multiplication import MULTIPLY_TYPES
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate
from wpk.schedules.template import Schedule
from wpk.schedules.tiles import mma
from wpk.schedules.tiles.matrix import target_limits
from wpk.schedules.unit import Type, Wide
from wpk.schedules.views.attention import (
    attention_blocks,
    attention_members,
    attention_sizes,
    why_not_attention,
)
from wpk.targets import Target

_WARP, _TILE_ROWS, _TILE_COLUMNS = 32, 16, 16
_COPY_BYTES, _MAX_COPIES = (16, 8, 4), 16
_MAX_SIZE = 256  # elements of a head: as many sums as registers hold
_MAX_STAGES = 4
_OTHER_REGISTERS = 44  # addresses, fragments and what a row keeps; read from ptxas reports
_UNDER_WAY = {Precision.TF32: (1.25, 0.75), Precision.FP32: (2.5, 1.25)}
_NARROW_UNDER_WAY = (0.5, 0.5)
"""Registers of fragments and loads under way, for each of a score and of a weighted value; read from
ptxas reports, above which kernels spill."""

_OTHER_REGISTERS_ONCE, _OF_ELEMENT_ONCE, _OF_OPERAND_ONCE = 20.0, 0.4, 0.6
"""The same of 16 bits where one step has all keys: no weighted values are carried past it. Fitted to what ptxas reports of 36 kernels of
49 to 128 keys, heads of 32 and 64 and none to two operands: 51 to 243 registers, of which it is 0.77 to 1.38 times, 1.06 in the middle."""

_FEW_KEYS, _ROOMY = 16, "4 <= warps_m * warps_n <= 8 and warps_m * warps_n != 6"
"""Keys of a step whose scores fit 168 registers in fp32, and blocks that can have more of them. Of 9 to 12 warps three share a
scheduler, whose registers are for 168 each; and of fewer ptxas takes 168 where an SM then holds one block more."""

_SCORE_SLOTS, _EXACT_SLOTS = 13.0, 21.0
"""Issue slots of a thread for each of its scores, the products' own among them: maximum, exponential, sum, rounding to
an operand, the rescaling of weighted values; from nvdisasm's listings of heads of 64. The second is that of fp32, whose
exponentials are expf's."""

_STEP_CYCLES = 900.0
"""From the keys of a step to its last product, one behind the other: both products' latencies, the maximum among
lanes, exponentials, three barriers; fitted to three kernels measured on an H200, when a score took 18 slots."""


@dataclass(frozen=True)
class AttentionMmaSchedule(Schedule):
    """Parameters of attention_mma.cuh.

    Attributes:
        warps_m: Warps along the queries; each has 16 of them.
        warps_n: Warps that share rows of queries, each with its keys of a step.
        block_n: Keys of a warp in a step.
        stages: Stages of the pipeline.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
    """

    warps_m: int
    warps_n: int
    block_n: int
    stages: int
    early: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.warps_m * self.warps_n * _WARP

    @property
    def rows(self) -> int:
        """Queries of a block."""
        return self.warps_m * _TILE_ROWS


class AttentionMmaTemplate(SingleKernelTemplate[Attention, AttentionMmaSchedule]):
    """Queries, keys and values as rows aligned to 4 bytes or more, in every precision; fp32 as 3 x tf32."""

    name: ClassVar[str] = "attention_mma"
    version: ClassVar[int] = 4
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Attention
    schedule_type = AttentionMmaSchedule

    def why_not(self, problem: Attention, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        stored = problem.precision.storage
        for name, tensor in (("q", problem.q), ("k", problem.k), ("v", problem.v)):
            reason = mma.needs(tensor.dtype, problem.precision, target)
            reason = reason or _why_not_copied(name, tensor)
            if reason is not None:
                return reason
            if tensor.dtype is not stored:
                return f"{name} is {tensor.dtype.value}; chunks of {stored.value} are copied"
        if max(problem.depth, problem.width) > _MAX_SIZE:
            return f"heads of {problem.depth} and {problem.width}, at most {_MAX_SIZE} are carried"
        return why_not_attention(problem)

    def _axes(self, problem: Attention, target: Target) -> dict[str, tuple[int, ...]]:
        return {
            "warps_m": tuple(range(1, 9)),  # as many as fill the SMs once
            "warps_n": (1, 2, 4, 8),
            "block_n": (16, 32, 64, 128),
            "stages": (1, 2, 3, 4),
        }

    def _limits(self, problem: Attention) -> Sequence[Limit]:
        """What attention/tile.cuh can compute."""
        # Elements that warps copy: of the queries and the keys, and of the values.
        least = min(map(_copied, (problem.q, problem.k, problem.v)))
        copied = f"{least * _MAX_COPIES * _WARP // problem.q.dtype.bytes} * warps_m * warps_n"
        return (
            Limit(
                f"block_n > 0 and block_n % {_TILE_COLUMNS} == 0",
                "a warp has whole pairs of tiles of 8 keys",
            ),
            _stages_limit(problem),
            Limit(
                f"max({_TILE_ROWS} * warps_m, warps_n * block_n) * {_whole(problem.depth)}"
                f" <= {copied}"
                f" and warps_n * block_n * {_whole(problem.width)} <= {copied}",
                f"a thread copies at most {_MAX_COPIES} pieces of a tile",
            ),
        )

    def _target_limits(self, problem: Attention, target: Target) -> Sequence[Limit]:
        """See `ScheduleTemplate.target_limits`; no warp is without a query or a key."""
        roomy = Limit(
            f"block_n <= {_FEW_KEYS} or {_ROOMY}",
            f"in fp32 scores of more than {_FEW_KEYS} keys need more than 168 registers: they would spill",
        )
        return (
            *([roomy] if problem.precision is Precision.FP32 else ()),
            Limit(
                f"warps_n == 1 or block_n * (warps_n - 1) < {problem.keys}",
                f"each warp has some of the {problem.keys} keys",
            ),
            Limit(
                f"warps_m == 1 or {_TILE_ROWS} * (warps_m - 1) < {problem.queries}",
                f"each warp has some of the {problem.queries} queries",
            ),
            *target_limits(target),
        )

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Tell apart few rows to a block and many: no model was held against a measurement yet."""
        return np.asarray(columns["warps_m"] > 1, np.int64)

    def work(self, problem: Attention, columns: Columns, target: Target) -> Work:
        """Count the work: both products of whole tiles; queries once, keys and values once a block."""
        element = problem.q.dtype.bytes
        rows = columns["warps_m"].astype(np.float64) * _TILE_ROWS
        walked = _steps(problem.keys, columns) * columns["warps_n"] * columns["block_n"]
        depth, width = _whole(problem.depth), _whole(problem.width)
        products = 2.0 * rows * walked * (depth + width)
        blocks = np.ceil(problem.queries / rows) * problem.leading.value * problem.batch[1]
        read = (rows * depth + walked * (depth + width)) * float(element)
        read = read + rows * walked * sum(t.dtype.bytes for t in problem.scores.operands)
        read = read + rows * problem.width * sum(t.dtype.bytes for t in problem.ending.operands)
        exact = problem.precision is Precision.FP32
        of_score = _EXACT_SLOTS if exact else _SCORE_SLOTS
        of_score += flops(problem.scores.expression)
        threads = _threads(columns)
        pairs = columns["block_n"] / float(_TILE_COLUMNS)
        loads = depth * element / 32 * (1 + pairs) + pairs * width * element / 32
        return Work(
            unit=problem.precision,
            element_bytes=element,
            blocks=blocks,
            threads=threads,
            shared_bytes=shared_bytes(problem, columns),
            registers=_registers(problem, columns),
            block_flops=products,
            thread_flops=products / threads,
            block_transactions=read / target.transaction_bytes,
            thread_loads=_steps(problem.keys, columns) * loads,
            store_bytes=rows * float(problem.width * problem.y.dtype.bytes),
            steps=_steps(problem.keys, columns),
            stages=columns["stages"].astype(np.float64),
            early=columns["early"] == 1,
            thread_slots=rows * walked * of_score / threads,
            chain_cycles=np.full(len(threads), _STEP_CYCLES),
            end_slots=rows * problem.width * flops(problem.ending.expression) / threads,
        )

    def kernel(self, problem: Attention, schedule: AttentionMmaSchedule) -> KernelPlan:
        """See `SingleKernelTemplate.kernel`."""
        return KernelPlan(
            members={
                "Multiply": Type(MULTIPLY_TYPES[problem.precision]),
                "Element": Type(problem.q.dtype.c_name),
                **attention_members(problem, schedule.rows),
                "q_row": Wide(problem.q.strides[2]),
                "k_row": Wide(problem.k.strides[2]),
                "v_row": Wide(problem.v.strides[2]),
                "q_copy": _copied(problem.q),
                "k_copy": _copied(problem.k),
                "v_copy": _copied(problem.v),
            },
            grid=(attention_blocks(problem, schedule.rows), 1, 1),
            sizes=attention_sizes(problem),
            threads=schedule.threads,
            shared_bytes=int(shared_bytes(problem, schedule.columns())[0]),
        )


def shared_bytes(problem: Attention, columns: Columns) -> Floats:
    """Count the bytes of the queries and the pipeline, or of what warps that share rows leave, where larger."""
    element = float(problem.q.dtype.bytes)
    rows, keys = columns["warps_m"] * float(_TILE_ROWS), columns["warps_n"] * columns["block_n"]
    depth, width = _whole(problem.depth), _whole(problem.width)
    pipeline = (rows * depth + columns["stages"] * keys * (depth + width)) * element
    staging = columns["warps_n"] * rows * (2 + width + 8) * 4.0
    larger: Floats = np.maximum(pipeline, staging)
    return larger


def _stages_limit(problem: Attention) -> Limit:
    if problem.lengths is not None:  # how many steps there are is not known before a run
        return Limit(f"1 <= stages <= {_MAX_STAGES}", f"the ring has 1 to {_MAX_STAGES} steps")
    return Limit(
        f"1 <= stages <= ceil_div({problem.keys}, warps_n * block_n)",
        f"the ring has one step of the {problem.keys} keys at least, and no more than there are",
    )


def _registers(problem: Attention, columns: Columns) -> Floats:
    """Scores, weighted values, the scores' operands, and the rest."""
    scores, weighted = columns["block_n"] / 2.0, _whole(problem.width) / 2.0
    of_scores, of_weighted = _UNDER_WAY.get(problem.precision, _NARROW_UNDER_WAY)
    operands = len(problem.scores.operands)
    registers: Floats = scores * (1 + operands + of_scores) + weighted * (1 + of_weighted)
    registers = registers + _OTHER_REGISTERS
    if problem.precision in _UNDER_WAY or problem.lengths is not None:
        return registers
    existing = np.minimum(scores, _whole(problem.keys) / 2.0)
    elements = (_whole(problem.depth) + _whole(problem.width)) / 2.0
    once = existing * (1 + _OF_OPERAND_ONCE * operands) + _OF_ELEMENT_ONCE * elements
    is_once = (columns["warps_n"] == 1) & (_steps(problem.keys, columns) == 1)
    return np.where(is_once, once + _OTHER_REGISTERS_ONCE, registers)


def _steps(keys: int, columns: Columns) -> Floats:
    steps: Floats = np.ceil(keys / np.maximum(columns["warps_n"] * columns["block_n"], 1))
    return steps


def _threads(columns: Columns) -> Floats:
    return (columns["warps_m"] * columns["warps_n"] * _WARP).astype(np.float64)


def _whole(elements: int) -> int:
    """Elements of a row with the zeros that fill its last tile."""
    return -(-elements // _TILE_COLUMNS) * _TILE_COLUMNS


def _copied(tensor: Tensor) -> int:
    """Bytes of a copy of an operand's rows."""
    return next(size for size in _COPY_BYTES if tensor.alignment % size == 0)


def _why_not_copied(name: str, tensor: Tensor) -> str | None:
    """Why rows of an operand cannot be copied; None if they can."""
    if tensor.strides[3] != 1:
        return f"{name} has a stride of {tensor.strides[3]} along a head; copies need 1"
    least = _COPY_BYTES[-1]
    if tensor.alignment % least != 0:
        steps = [stride * tensor.dtype.bytes for stride in tensor.strides[:3]]
        if ragged := [step for step in steps if step % least]:
            return f"{name} has a stride of {min(ragged)} bytes; copies need multiples of {least}"
        return f"{name} is aligned to {tensor.alignment} bytes; copies need {least}"
    return None
