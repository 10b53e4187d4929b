"""What schedules of attention by warpgroups take, and what they make the GPU do."""

import numpy as np
from numpy.typing import NDArray

from wpk.expression import Acc, Apply, Expression, Scalar, flops
from wpk.performance import SCHEDULERS, Columns, Floats, Work
from wpk.problems import Attention
from wpk.schedules.block_limits import shared_limit
from wpk.schedules.limit import Limit, value_of
from wpk.schedules.wgmma import handed_registers
from wpk.schedules.wgmma.boxed_rows import ELEMENT, tile_bytes, whole_slices, widest_swizzle
from wpk.schedules.wgmma.costs import BARRIER_BYTES, PORT_BYTES
from wpk.schedules.wgmma.group import (
    AWAITED_CYCLES,
    GROUP_ROWS,
    GROUP_THREADS,
    WARP,
    product_rate,
)
from wpk.targets import Target

_OTHER_REGISTERS = (
    38  # addresses, descriptors, and what a row keeps; read, as the next ones, from ptxas reports
)
_LOADING_REGISTERS = 30  # addresses of the scores' operands
_TWO_STEPS = 8  # of two steps, which ptxas unrolls and mixes: those of 128 keys took 170 to 195 where they could have them
_TAKEN_REGISTERS, _TURNING_REGISTERS = 20, 4
"""What ptxas takes of what it could have, instead of `_OTHER_REGISTERS`, beside a sixteenth of the elements of a key and a value;
and more in turns. Of 80 kernels of 32 to 128 keys and 32 to 128 elements those without turns take as many or up to 6 more, those
in turns 8 fewer to 4 more. How many blocks an SM holds depends on it: two warpgroups of 48 keys of 64 elements take 96, with
which it holds two blocks, and 102 in turns, with which it holds one (docs/decisions/0100-beside-products.md)."""

_WEIGHED_REGISTERS, _VALUED_REGISTERS = 6, 30
"""The same of a block whose keys are all in one step: beside scores that become weights, and beside weights whose values are
added up. Blocks of 64 to 192 keys of 32 to 128 elements have at most 9 fewer."""

_EXPONENTIALS = 16.0  # of an SM in a cycle: four of each scheduler's unit (CUDA programming guide, arithmetic throughput)
_FOLDED_SLOTS, _SCORE_SLOTS, _OPERAND_SLOTS = 5.0, 7.5, 1.5
"""Issue slots of a thread for each of its scores where the scale is part of the exponentials' factor, and where it is
not: maximum, exponential, sum, half a rounding of two; and for each operand, loads of two. These, and the next two, are
counted in nvdisasm's listings of heads of 64: a step of 32 keys is 248 instructions, one of 64 keys 363, of which 2.2 a
score hide keys behind the last one, in the last step alone."""

_STEP_SLOTS, _RESCALED_SLOTS = 80.0, 1.0
"""Of a thread in a step, however few its scores are: descriptors and issue of the products, barriers, the maximum among
lanes, the correction of the sums; and for each weighted value, which a new maximum rescales."""

_END_SLOTS = 15.0
"""Of an element of the result: its sum's reciprocal, through shared memory, and what a thread does once a block."""

_STEP_CYCLES = 600.0
"""Of a step's way that nothing of its own hides: barriers, the start of a product, the maximum among lanes. Fitted, beside the
sum in `_softmax_cycles`, to the best kernels of three problems that were measured on an H100: 384 heads of 197 and of 128
tokens of 64 elements, and 12 of 384 (docs/decisions/0092-models-held-to-recordings.md)."""


def threads(problem: Attention, columns: Columns) -> Floats:
    """Count the threads of a block: its consumers, and a producer's warp, or its warpgroup where that hands registers over."""
    return handed_registers.threads(columns["warpgroups"], handed(problem, columns), WARP)


def handed(problem: Attention, columns: Columns) -> NDArray[np.int64]:
    """Count the registers that a consumer's thread is handed; 0 where it begins with what it needs."""
    return handed_registers.handed(_needed(problem, columns), columns["warpgroups"])


def shared_bytes(problem: Attention, columns: Columns) -> Floats:
    """Count the bytes of the queries and both pipelines, or of the staged result where larger, and of barriers.

    The header compares them (AttentionGroups::sharedBytes).
    """
    rows, keys = columns["warpgroups"] * GROUP_ROWS, columns["block_n"]
    stage = _tile_bytes(keys, problem.depth) + _tile_bytes(keys, problem.width)
    tiles = _tile_bytes(rows, problem.depth) + columns["stages"] * stage
    staging = rows * (2 + whole_slices(problem.width) + 8) * 4.0
    barriers = 2 * columns["stages"] * BARRIER_BYTES + 8 * (
        1 + columns["pingpong"] * columns["warpgroups"]
    )
    needed: Floats = np.maximum(tiles, staging) + barriers
    return needed


def limits(problem: Attention, target: Target) -> tuple[Limit, ...]:
    """Return what a block may take on the target."""
    return shared_limit(target), *handed_registers.limits(
        _consumer_registers(problem, _enough(problem))
    )


def work(problem: Attention, columns: Columns, target: Target) -> Work:
    """Return what schedules make the GPU do: exponentials of some warpgroups beside the products of others."""
    count, groups = threads(problem, columns), columns["warpgroups"].astype(np.float64)
    rows, keys = groups * GROUP_ROWS, columns["block_n"].astype(np.float64)
    steps = np.ceil(problem.keys / np.maximum(keys, 1))
    depth, width = float(whole_slices(problem.depth)), float(whole_slices(problem.width))
    products = 2.0 * rows * steps * keys * (depth + width)
    read = (rows * depth + steps * keys * (depth + width)) * ELEMENT
    read = read + rows * steps * keys * sum(t.dtype.bytes for t in problem.scores.operands)
    read = read + rows * problem.width * sum(t.dtype.bytes for t in problem.ending.operands)
    multiplied = steps * (rows * depth + groups * keys * (depth + width)) * ELEMENT
    beside = _softmax_cycles(problem, groups, keys)
    return Work(
        unit=problem.precision,
        element_bytes=ELEMENT,
        blocks=np.ceil(problem.queries / rows) * problem.leading.value * problem.batch[1],
        threads=count,
        shared_bytes=shared_bytes(problem, columns),
        registers=_launched(problem, columns),
        block_flops=products,
        thread_flops=products / count,
        block_transactions=read / target.transaction_bytes,
        thread_loads=multiplied / PORT_BYTES * WARP / count,
        store_bytes=rows * float(problem.width * problem.y.dtype.bytes),
        steps=steps,
        stages=columns["stages"].astype(np.float64),
        early=columns["early"] == 1,
        end_slots=rows * problem.width * (_END_SLOTS + flops(problem.ending.expression)) / count,
        beside_cycles=steps * beside,
        chain_cycles=_chain(problem, columns, target, beside / groups),
        by_warpgroups=True,
    )


def _chain(problem: Attention, columns: Columns, target: Target, softmax: Floats) -> Floats:
    """Count the cycles of a warpgroup's own way through a step: scores, then their weights; behind the last, values.

    What a stage's wait counts of its products is theirs as well.
    """
    rate = product_rate(problem.precision, target)
    keys, groups = columns["block_n"], columns["warpgroups"]
    scores, values = (
        2.0 * GROUP_ROWS * keys * whole_slices(size) / rate
        for size in (problem.depth, problem.width)
    )
    step = softmax + _STEP_CYCLES + AWAITED_CYCLES * columns["pingpong"]
    way = scores + step + values / np.ceil(problem.keys / np.maximum(keys, 1))
    counted = groups * (scores + values) / columns["stages"]
    chain: Floats = np.maximum(way - counted, 0.0)
    return chain


def _softmax_cycles(problem: Attention, groups: Floats, keys: Floats) -> Floats:
    """Count the cycles of an SM for the weights of a step: of its units for exponentials, and of its schedulers.

    A warp finds its maxima, then takes exponentials, then packs: it uses both in turn, and an SM holds few warps that
    could use the one while others use the other.
    """
    scores = GROUP_ROWS * keys
    values = GROUP_ROWS * whole_slices(problem.width)
    slots = scores * _score_slots(problem) + values * _RESCALED_SLOTS + GROUP_THREADS * _STEP_SLOTS
    cycles: Floats = groups * (scores / _EXPONENTIALS + slots / (SCHEDULERS * WARP))
    return cycles


def _score_slots(problem: Attention) -> float:
    """Issue slots of a thread for each of its scores."""
    expression = problem.scores.expression
    if _is_folded(expression):
        return _FOLDED_SLOTS
    operands = _OPERAND_SLOTS * len(problem.scores.operands)
    return _SCORE_SLOTS + flops(expression) + operands


def _is_folded(expression: Expression) -> bool:
    """Whether scores are products times a positive number (ScoreScale of attention/rows.cuh)."""
    match expression:
        case Acc() | Apply("Mul", (Acc(), Scalar())):
            return True
    return False


def _launched(problem: Attention, columns: Columns) -> Floats:
    """Count the registers with which a thread begins: no more than ptxas takes of what it could have."""
    launched = handed_registers.launched(_needed(problem, columns), columns["warpgroups"])
    taken = _consumer_registers(problem, _taken(problem))
    registers: Floats = np.minimum(launched, value_of(taken, columns))
    return registers


def _needed(problem: Attention, columns: Columns) -> NDArray[np.int64]:
    """Count the registers of a consumer's thread that are enough."""
    needed: NDArray[np.int64] = value_of(_consumer_registers(problem, _enough(problem)), columns)
    return needed


def _enough(problem: Attention) -> str:
    """Of more than one step, beside what is counted: what is enough."""
    if problem.lengths is not None:  # how many steps there are is not known before a run
        return str(_OTHER_REGISTERS)
    return f"{_OTHER_REGISTERS} + {_TWO_STEPS} * ({problem.keys} <= 2 * block_n)"


def _taken(problem: Attention) -> str:
    """The same as ptxas takes it."""
    sixteenth = (whole_slices(problem.depth) + whole_slices(problem.width)) // 16
    return f"{sixteenth + _TAKEN_REGISTERS} + {_TURNING_REGISTERS} * pingpong"


def _consumer_registers(problem: Attention, others: str) -> str:
    """Of scores, their weights of 16 bits, their operands, the weighted values, and others.

    Where one step has all keys, scores are weights before values are added up; three quarters of the weights live beside them.
    """
    operands, values = len(problem.scores.operands), whole_slices(problem.width) // 2
    loading = _LOADING_REGISTERS * (operands > 0)
    counted = f"{3 + 2 * operands} * block_n // 4 + {values + loading} + {others}"
    if problem.lengths is not None:
        return counted
    weighed = f"{11 + 8 * operands} * block_n // 16 + {_WEIGHED_REGISTERS}"
    valued = f"block_n // 4 + {values + _VALUED_REGISTERS}"
    more = f"block_n < {problem.keys}"
    one = f"max({weighed}, {valued}) + {loading}"
    return f"(1 - ({more})) * ({one}) + ({more}) * ({counted})"


def _tile_bytes(rows: NDArray[np.int64], columns: int) -> Floats:
    """Count the bytes of rows in boxes of the widest swizzle that they fill."""
    return tile_bytes(rows, columns, widest_swizzle(columns))
