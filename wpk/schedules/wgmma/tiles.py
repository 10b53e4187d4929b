"""What the templates of warpgroups share: their schedule, its limits, its cost (see tile_wgmma.cuh)."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType, Precision
from wpk.performance.occupancy import resident_blocks
from wpk.performance.work import Columns, Floats
from wpk.schedules.early import early_axis, early_constraint, launch_attributes
from wpk.schedules.matrix_tiles import TiledProduct, target_constraints, up_to, words
from wpk.schedules.single_kernel import Grid, Partials
from wpk.schedules.split import SplitReductions, split_axis, split_constraints
from wpk.schedules.template import Constraint, Schedule
from wpk.schedules.wgmma.costs import (
    GROUP_ROWS,
    GROUP_THREADS,
    WARP,
    registers,
    shared_bytes,
    threads,
    whole_groups,
    work,
)
from wpk.schedules.wgmma.multicast import COLUMNS, PAIR, ROWS, Sharing, paired_grid
from wpk.schedules.wgmma.persistent import (
    WHOLE_REDUCTIONS,
    persistent_axis,
    persistent_constraints,
    persistent_grid,
    turns,
)
from wpk.targets.target import Target

SWIZZLE = 128
"""Bytes of the swizzle of boxes, and of their rows."""

ALIGNMENT = 16
"""Bytes: of addresses and strides that tensor copies take."""

_CAPABILITY = (9, 0)  # wgmma is an instruction of sm_90a alone
_BOXES = (1, 2, 3, 4)  # of a step
_MOST_BOXES = 16  # of a ring: more do not fit, or begin after the first ones have come
_MOST_SHARERS = 8  # blocks of a cluster that every GPU of sm_90 places
_MOST_FP32_COLUMNS = 128  # of a tile whose sums are kept twice
_MOST_SPLIT_COLUMNS = 128  # of a tile whose parts are added: so many sums and as many loads fit


@dataclass(frozen=True)
class WgmmaSchedule(Schedule):
    """Tiles of a block's product, and the ring of slots that tensor copies fill.

    Attributes:
        block_m: Rows of a block, 64 for each warpgroup.
        block_n: Columns of a block.
        block_k: Elements of the reduction a step.
        stages: Slots of the ring.
        split: Blocks that share the reduction of a tile.
        cluster: 1 where these blocks are a cluster and meet in its shared memory.
        early: 1 where the kernel begins before the one in front of it has ended, and lets the next
            one begin so (early_launch.cuh).
        share: What two blocks of a cluster bring for each other: 0 nothing; 1 A's rows, side by side;
            2 B's columns, one below the other.
        persistent: Blocks that stay, and compute tiles one after another; 0 where each tile has a block.
    """

    block_m: int
    block_n: int
    block_k: int
    stages: int
    split: int = 1
    cluster: int = 0
    early: int = 0
    share: int = 0
    persistent: int = 0

    @property
    def threads(self) -> int:
        """Threads of a block: its warpgroups, and the warp that asks for tiles."""
        return self.block_m // GROUP_ROWS * GROUP_THREADS + WARP

    @property
    def cluster_shape(self) -> tuple[int, int, int]:
        """Blocks of a cluster."""
        parts = self.split if self.cluster else 1
        return self.parts_b, self.parts_a, parts

    @property
    def parts_a(self) -> int:
        """Copies that bring a box of A, each for all blocks that need it."""
        return PAIR if self.share == ROWS else 1

    @property
    def parts_b(self) -> int:
        """Copies that bring a box of B."""
        return PAIR if self.share == COLUMNS else 1

    def grid(self, tiles: Grid) -> Grid:
        """The blocks of a grid of tiles: whole clusters, or those that stay."""
        return persistent_grid(paired_grid(tiles, self.share), self.persistent)

    def partials(self, grid: Grid) -> Partials | None:
        """Memory in which parts meet; none where they meet in shared memory."""
        return None if self.cluster else Partials.of(grid, self.block_m * self.block_n, self.split)

    @property
    def attributes(self) -> tuple[str, ...]:
        """Attributes of the launch."""
        return launch_attributes(self.early)


def box_depth(precision: Precision) -> int:
    """Elements of the reduction in a box."""
    return SWIZZLE // precision.storage.bytes


def axes(
    rows: int, columns: int, reduction: int, precision: Precision, target: Target
) -> dict[str, tuple[int, ...]]:
    """Values to try for a product of ``rows`` x ``columns``.

    Args:
        rows: Of the product.
        columns: Of the product.
        reduction: Elements of the reduction as it is walked.
        precision: Of the product.
        target: The GPU.
    """
    depth = box_depth(precision)
    boxes = -(-reduction // depth)
    return {
        "block_m": up_to((64, 128), rows),
        "block_n": up_to((16, 32, 64, 128, 256), columns),
        "block_k": tuple(step * depth for step in _BOXES if step <= boxes),
        "stages": (2, 3, 4, 6, 8),
        "split": split_axis(reduction, depth),
        "cluster": (0, 1),
        "early": early_axis(target),
        "share": Sharing(rows, columns).axis(boxes, target),
        "persistent": persistent_axis(rows, columns, target),
    }


def constraints(
    product: Callable[[Columns], TiledProduct],
    sharing: Sharing,
    precision: Precision,
    target: Target,
) -> Sequence[Constraint]:
    """The limits of tile_wgmma.cuh, of the target, and of split reductions.

    Args:
        product: The problem as blocks, without regard to their parts.
        sharing: Its rows and columns, of which blocks may share.
        precision: Of the problem.
        target: The GPU.
    """

    def steps(columns: Columns) -> Floats:
        tiles = product(columns)
        return tiles.tile_steps * turns(tiles.tiles, columns)

    def resident(columns: Columns) -> Floats:
        return resident_blocks(work(product(columns), sharing, precision, columns, target), target)

    no_longer = Constraint(
        lambda c: (
            (c["stages"] == 2) | (c["stages"] <= np.ceil(steps(c) / np.maximum(c["split"], 1)))
        ),
        words("{stages} stages are more than a block has steps of {block_k}"),
    )
    return (
        *_SHAPES,
        *_boxes(box_depth(precision)),
        *([_NARROW] if precision is Precision.FP32 else ()),
        WHOLE_REDUCTIONS,
        *persistent_constraints(lambda c: product(c).tiles, resident, target),
        no_longer,
        early_constraint(target),
        *target_constraints(
            lambda c: whole_groups(threads(c)),
            lambda c: shared_bytes(c, precision),
            lambda c: registers(c, precision),
            target,
        ),
        *split_constraints(product, 1, target),
        *sharing.constraints(),
    )


COLUMNS_OF_PRODUCTS = (
    Constraint(
        lambda c: (c["block_n"] & (c["block_n"] - 1)) == 0,
        words("{block_n} columns are no power of two"),
    ),
    Constraint(
        lambda c: (c["block_n"] >= 16) & (c["block_n"] <= 256),
        words("{block_n} columns, a block has 16 to 256"),
    ),
)
"""What every template of warpgroups asks of ``block_n``."""

_SHAPES = (
    Constraint(
        lambda c: np.isin(c["block_m"], (GROUP_ROWS, 2 * GROUP_ROWS)),
        words("{block_m} rows are not those of one or two warpgroups, 64 each"),
    ),
    *COLUMNS_OF_PRODUCTS,
    Constraint(lambda c: c["stages"] >= 2, words("{stages} stages: the ring needs two")),
    Constraint(
        lambda c: (c["split"] == 1) | (c["block_n"] <= _MOST_SPLIT_COLUMNS),
        words(f"{{block_n}} columns in {{split}} parts: sums of over {_MOST_SPLIT_COLUMNS} spill"),
    ),
    Constraint(lambda c: np.isin(c["cluster"], (0, 1)), words("cluster is 0 or 1, not {cluster}")),
    Constraint(
        lambda c: (c["cluster"] == 0) | ((c["split"] > 1) & (c["split"] <= _MOST_SHARERS)),
        words(f"a cluster of {{split}} blocks; it has two to {_MOST_SHARERS}"),
    ),
)


_NARROW = Constraint(
    lambda c: c["block_n"] <= _MOST_FP32_COLUMNS,
    words(f"{{block_n}} columns: sums of fp32 are kept twice, of {_MOST_FP32_COLUMNS} at most"),
)


def _boxes(depth: int) -> Sequence[Constraint]:
    """Of a step, and of the ring."""
    return (
        Constraint(
            lambda c: np.isin(c["block_k"], [boxes * depth for boxes in _BOXES]),
            words(f"{{block_k}} elements are not one to four boxes of {depth}"),
        ),
        Constraint(
            lambda c: c["stages"] * c["block_k"] <= _MOST_BOXES * depth,
            words(
                f"{{stages}} stages of {{block_k}} elements: a ring has {_MOST_BOXES} boxes at most"
            ),
        ),
    )


class Warpgroups(SplitReductions):
    """What both templates of warpgroups say of their schedules; comes before their other bases."""

    def families(self, columns: Columns) -> NDArray[np.int64]:
        """Ways that parts meet or tiles are shared, or that blocks stay; each launched early or not.

        The score does not see the launch, nor what a cluster costs, nor what it saves to stay.
        """
        ways = super().families(columns) + columns["cluster"] + 3 * (columns["share"] > 0)
        families: NDArray[np.int64] = (
            2 * (ways + 4 * (columns["persistent"] > 0)) + columns["early"]
        )
        return families


def needs(target: Target) -> str | None:
    """Why warpgroups cannot multiply on the target; None if they can."""
    if target.capability != _CAPABILITY:
        return f"{target.name} has no products of warpgroups (wgmma; sm_90a has)"
    return None


def map_strides(strides: Iterable[int], element_bytes: int) -> tuple[int, ...]:
    """Strides of a tensor map, in bytes.

    An axis of one element has none (0): any that a tensor map may have will do there.
    """
    return tuple(stride * element_bytes or ALIGNMENT for stride in strides)


def why_not_copied(
    name: str, dtype: DType, stored: DType, alignment: int, strides: Sequence[int]
) -> str | None:
    """Why tensor copies cannot take an operand; None if they can.

    Args:
        name: Of the operand.
        dtype: Its type in memory.
        stored: The type that is multiplied.
        alignment: Bytes that its address is a multiple of.
        strides: Elements between neighbours, along the reduction first, 0 where broadcast.
    """
    if dtype is not stored:
        return f"{name} is {dtype.value}; tensor copies bring {stored.value} as it lies"
    if strides[0] != 1:
        return f"{name} has a stride of {strides[0]} along the reduction; tensor copies need 1"
    if alignment < ALIGNMENT:
        return f"{name} is aligned to {alignment} bytes; tensor copies need {ALIGNMENT}"
    for stride in strides[1:]:
        if stride * dtype.bytes % ALIGNMENT:
            bytes_ = stride * dtype.bytes
            return f"{name} has a stride of {bytes_} bytes; tensor copies need multiples of 16"
    return None
