"""What all matrix-like templates share: the target's limits on tiles, and the work of products by tiles."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wpk.dtypes import DType, Precision
from wpk.performance import Columns, Floats, Work, matmul_flops
from wpk.schedules.block_limits import shared_limit, thread_limit
from wpk.schedules.limit import Limit
from wpk.targets import Target

_MAX_REGISTERS = 255

Cost = Callable[[Columns], Floats]
"""What each schedule takes of something."""


@dataclass(frozen=True)
class TileCosts:
    """What tiles take; arrays have one entry a schedule.

    Attributes:
        unit: The tensor-core precision used, or None for the ordinary cores.
        threads: Threads of a block.
        shared_bytes: Shared memory of a block.
        registers: Estimated registers of a thread.
        loads: Shared memory loads of a thread in one step.
        stages: Steps whose loads are in flight at once.
        slots: Issue slots of a thread in one step besides its operations and loads.
        slots_beside: See `Work`.
        chain: See `Work.chain_cycles`.
        by_warpgroups: See `Work`.
        numbers: See `Work`.
    """

    unit: Precision | None
    threads: Floats
    shared_bytes: Floats
    registers: Floats
    loads: Floats
    stages: Floats
    slots: Floats | float = 0.0
    slots_beside: bool = False
    chain: Floats | float = 0.0
    by_warpgroups: bool = False
    numbers: DType = DType.FP32


@dataclass(frozen=True)
class TiledProduct:
    """A problem as blocks that walk the reduction; arrays have one entry a schedule.

    Attributes:
        element_bytes: Bytes of an input element.
        store_bytes: Bytes of an output element, and of the operands that are read with it.
        tiles: Tiles of the output, over all groups or matrices: a block for each of its parts.
        tile_steps: Steps of the reduction of a tile, all its parts together.
        transactions: Global memory transactions of a block in one step.
        stored_slots: Issue slots of an output element behind the last step.
        fetched_together: Output elements whose operands a thread asks for at once; 0 where it asks for none.
    """

    element_bytes: int
    store_bytes: float
    tiles: Floats
    tile_steps: Floats
    transactions: Floats
    stored_slots: float = 0.0
    fetched_together: float = 0.0

    def work(self, columns: Columns, costs: TileCosts) -> Work:
        """Return what DeepCuts tables 6 to 8 count for it: tiles in full, both loaded at every step.

        A tile's blocks share its steps, and its store; each writes its part of the sums, and one
        of them reads all parts, or each in a cluster its share of them.
        """
        block_m, block_n, block_k = block_tile(columns)
        parts = columns["split"].astype(np.float64)
        in_cluster = columns.get("cluster", np.zeros_like(columns["split"])) == 1
        early = columns.get("early", np.zeros_like(columns["split"])) == 1
        steps = np.ceil(self.tile_steps / parts)
        block_flops = matmul_flops(block_m, block_k * steps, block_n)
        stored = block_m * block_n / costs.threads / np.where(in_cluster, parts, 1.0)
        partial = np.where(parts > 1, block_m * block_n * float(costs.numbers.bytes), 0.0)
        return Work(
            unit=costs.unit,
            element_bytes=self.element_bytes,
            blocks=self.tiles * parts,
            threads=costs.threads,
            shared_bytes=costs.shared_bytes,
            registers=costs.registers,
            block_flops=block_flops,
            thread_flops=block_flops / costs.threads,
            block_transactions=steps * self.transactions,
            thread_loads=steps * costs.loads,
            store_bytes=block_m * block_n * self.store_bytes / parts + partial,
            steps=steps,
            stages=costs.stages,
            combined_bytes=np.where(in_cluster, 1.0, parts) * partial,
            in_cluster=in_cluster,
            early=early,
            thread_slots=steps * costs.slots,
            slots_beside=costs.slots_beside,
            end_slots=stored * self.stored_slots,
            end_fetches=np.ceil(stored / self.fetched_together) if self.fetched_together else 0.0,
            chain_cycles=costs.chain,
            by_warpgroups=costs.by_warpgroups,
            numbers=costs.numbers,
        )


def block_tile(columns: Columns) -> tuple[Floats, Floats, Floats]:
    """Return the rows, columns and elements of the reduction that a block takes in a step."""
    block_m, block_n, block_k = (columns[f"block_{axis}"].astype(np.float64) for axis in "mnk")
    return block_m, block_n, block_k


def up_to(values: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return the values below twice the size, and always the smallest two."""
    return tuple(v for i, v in enumerate(values) if i < 2 or v < 2 * size)


def target_limits(target: Target, threads: str = "threads") -> tuple[Limit, ...]:
    """Return what a block may take on the target.

    Args:
        target: The GPU.
        threads: For how many of them registers are set aside.
    """
    file = target.registers_sm
    return (
        thread_limit(target, threads),
        shared_limit(target),
        Limit(
            f"registers <= min({_MAX_REGISTERS}, {file} // max({threads}, 1))",
            f"a thread has at most {_MAX_REGISTERS} registers, all threads {file}: more would spill",
        ),
    )
