"""Recurrences whose weights stay in registers, on tensor cores (recurrence_mma.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from wpk.dims import ceil_div
from wpk.dtypes import DType
from wpk.performance import Columns, Floats, Work
from wpk.problems import Recurrence
from wpk.schedules.block_limits import largest_cluster, shared_limit
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, Partials, SingleKernelTemplate
from wpk.schedules.streaming import Stream
from wpk.schedules.template import Schedule
from wpk.schedules.views.recurrence import recurrence_members, resets_first, why_not_recurrence
from wpk.targets import Target

CLUSTER, GRID, WORDS = 0, 1, 2
"""How blocks hand each other states, values of ``exchange``: through shared memory; through L2, where they count
arrivals, or where each pair of states says which it is."""

_WARP, _TILE, _RUN, _WORD = 32, 16, 8, 4
_STRIDE_PAD, _SUM_STRIDE = 32, 20
_MAX_CLUSTER, _MAX_WARPS = 16, 16
_MOST_CLUSTERS = 65535
_OTHER_REGISTERS = 64
_EXCHANGE_CYCLES = np.array([900.0, 3600.0, 2400.0])
"""Of a step by ``exchange``, from the last state that a block computes to the first that another one multiplies.
Assumptions, not measured yet."""


@dataclass(frozen=True)
class RecurrenceMmaSchedule(Schedule):
    """Parameters of recurrence_mma.cuh.

    Attributes:
        units: Units of a block.
        sequences: Of a team of blocks.
        warps: Warps of a block, which split the sum over the states.
        exchange: `CLUSTER`, `GRID` or `WORDS`.
        teams: Teams that run at once where they are no clusters.
    """

    units: int
    sequences: int
    warps: int
    exchange: int
    teams: int


class RecurrenceMmaTemplate(SingleKernelTemplate[Recurrence, RecurrenceMmaSchedule]):
    """Blocks that share the units and keep their rows of R."""

    name: ClassVar[str] = "recurrence_mma"
    version: ClassVar[int] = 2
    on_tensor_cores: ClassVar[bool] = True
    problem_type = Recurrence
    schedule_type = RecurrenceMmaSchedule

    def why_not(self, problem: Recurrence, target: Target) -> str | None:
        """See `ScheduleTemplate.why_not`."""
        if not target.has_async_copy:
            return f"{target.name} has no asynchronous copies"
        if problem.r.dtype not in (DType.FP16, DType.BF16):
            return f"R is {problem.r.dtype.value}; tensor cores multiply 16 bits here"
        if problem.r.vector(1) < _RUN:
            return "rows of R are not read 16 bytes at a time"
        if problem.hidden % _WARP:
            return f"{problem.hidden} units; multiples of {_WARP} are carried"
        if resets_first(problem):
            return "a GRU that resets h in front of its product needs all gates r for that"
        return why_not_recurrence(problem)

    def _axes(self, problem: Recurrence, target: Target) -> dict[str, tuple[int, ...]]:
        """Shares of the units, sequences of a team, how they meet."""
        sequences = tuple(n for n in (8, 16, 32) if n == 8 or n < 2 * problem.batch.value)
        clusters = (CLUSTER,) if largest_cluster(target) > 1 else ()
        return {
            "units": (16, 32, 64),
            "sequences": sequences,
            "warps": (1, 2, 4, 8, 16),
            "exchange": (*clusters, GRID, WORDS),
            "teams": (1, 2, 4, 8),
        }

    def _limits(self, problem: Recurrence) -> Sequence[Limit]:
        """What a warp's fragments are made of."""
        hidden = problem.hidden
        return (
            Limit("units >= 16 and units % 16 == 0", "a block has multiples of 16 units"),
            Limit(f"{hidden} % units == 0", "blocks share the units evenly"),
            Limit("sequences in (8, 16, 32)", "a team has 8, 16 or 32 sequences"),
            Limit(f"1 <= warps <= {_MAX_WARPS}", f"a block has 1 to {_MAX_WARPS} warps"),
            Limit(f"{hidden} % (32 * warps) == 0", "warps take multiples of 32 states"),
            Limit(
                "exchange in (0, 1, 2)", "states go through a cluster (0) or global memory (1, 2)"
            ),
            Limit(
                f"exchange >= 1 or {hidden} // units <= {_MAX_CLUSTER}",
                f"a cluster has at most {_MAX_CLUSTER} blocks",
            ),
            Limit("teams >= 1 and (exchange >= 1 or teams == 1)", "clusters are as many as needed"),
        )

    def _target_limits(self, problem: Recurrence, target: Target) -> Sequence[Limit]:
        """Registers and shared memory of a block, and blocks that run at once."""
        file, hidden = target.registers_sm, problem.hidden
        useful, largest = -(-problem.batch.value // 8), largest_cluster(target)
        return (
            shared_limit(target),
            Limit(
                f"exchange >= 1 or {hidden} // units <= {largest}",
                f"clusters of {target.name} have at most {largest} blocks",
            ),
            Limit("registers <= 255", "a thread has at most 255 registers"),
            Limit(f"registers * threads <= {file}", f"a block has at most {file} registers"),
            Limit(
                f"exchange == 0 or teams * {hidden} // units <= {target.sm_count}",
                f"all blocks of a cooperative launch run at once on {target.sm_count} SMs",
            ),
            Limit(
                f"exchange >= 1 or ceil_div({problem.batch.value}, sequences) <= {_MOST_CLUSTERS}",
                f"a grid has at most {_MOST_CLUSTERS} clusters along its second axis",
            ),
            Limit(
                f"exchange == 0 or teams == 1 or (teams - 1) * sequences < {8 * useful}",
                "every team has sequences",
            ),
        )

    def work(self, problem: Recurrence, columns: Columns, target: Target) -> Work:
        """R once; then at each step a block's products, its sums, and the states of all others."""
        units, width, warps, teams = (
            columns[name].astype(np.float64) for name in ("units", "sequences", "warps", "teams")
        )
        is_grid, element = columns["exchange"] != CLUSTER, problem.r.dtype.bytes
        groups = np.ceil(problem.batch.value / width)
        running = np.where(is_grid, np.minimum(groups, teams), groups)
        steps = problem.steps * np.ceil(groups / running)
        blocks, rows = problem.hidden / units * running, problem.gates * units
        handed = columns["exchange"] * width * problem.hidden * element
        of_step = rows * width * problem.p.dtype.bytes + handed
        stored = units * width * problem.y.dtype.bytes + handed * units / problem.hidden
        lanes = problem.hidden / warps / (4 * _RUN) * width / 8 + rows * width / _WARP
        work = Stream(
            element_bytes=element,
            flops=2.0 * blocks * steps * rows * problem.hidden * width,
            loads=blocks * (rows * problem.hidden * element + steps * of_step),
            stores=0.0,
            blocks=blocks,
            threads=warps * _WARP,
            registers=_registers(problem, columns),
            steps=steps,
            shared_bytes=_shared_bytes(problem, columns),
            thread_loads=steps * lanes,
        ).work(target)
        return replace(
            work,
            unit=problem.precision,
            store_bytes=steps * stored,
            chain_cycles=_EXCHANGE_CYCLES[columns["exchange"]],
        )

    def kernel(self, problem: Recurrence, schedule: RecurrenceMmaSchedule) -> KernelPlan:
        """Blocks of a team along x, teams along y."""
        blocks, is_grid = problem.hidden // schedule.units, schedule.exchange != CLUSTER
        needed = ceil_div(problem.leading.expression, schedule.sequences)
        states = 2 * schedule.sequences * problem.hidden * 2 * schedule.exchange
        partials = Partials(states * schedule.teams, 2 * schedule.teams) if is_grid else None
        return KernelPlan(
            members=recurrence_members(problem),
            grid=(blocks, schedule.teams if is_grid else needed, 1),
            threads=schedule.warps * _WARP,
            shared_bytes=int(_shared_bytes(problem, schedule.columns())[0]),
            partials=partials,
            cluster=(1 if is_grid else blocks, 1, 1),
            cooperative=is_grid,
        )


def _registers(problem: Recurrence, columns: Columns) -> Floats:
    """Registers of a thread: its part of R, sums, and what it keeps of its units."""
    units, width, warps = (
        columns[name].astype(np.float64) for name in ("units", "sequences", "warps")
    )
    tiles = problem.gates * units / _TILE
    weights = problem.hidden / (_WARP * warps) * tiles * 8
    own = np.ceil(units * width / (_WARP * warps)) * (3 * problem.gates + 3)
    registers: Floats = weights + np.maximum(tiles * width / 8 * 4, own) + _OTHER_REGISTERS
    return registers


def _shared_bytes(problem: Recurrence, columns: Columns) -> Floats:
    """States of a team, parts of the sums and, of a cluster, states on their way."""
    units, width, warps = columns["units"], columns["sequences"], columns["warps"]
    is_cluster = columns["exchange"] == CLUSTER
    states = width * (problem.hidden + _STRIDE_PAD) * 2
    sums = warps * (problem.gates * units // _TILE) * width * _SUM_STRIDE * _WORD
    shared: Floats = (
        np.where(is_cluster, 2, 1) * states + sums + np.where(is_cluster, units * width * 2, 0)
    ).astype(np.float64)
    return shared
