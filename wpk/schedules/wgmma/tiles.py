"""What the templates of warpgroups share: their schedule, its limits, its cost (see tile_wgmma.cuh)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import DType, Precision
from wpk.performance import Columns
from wpk.schedules.early import EARLY_LIMIT, early_axis, launch_attributes
from wpk.schedules.limit import Limit
from wpk.schedules.matrix_tiles import target_limits, up_to
from wpk.schedules.single_kernel import Grid, Partials
from wpk.schedules.split import SplitReductions, split_axis, split_limits, useful_split
from wpk.schedules.template import Schedule
from wpk.schedules.wgmma.costs import GROUP_ROWS, GROUP_THREADS, WARP, WHOLE_WARPGROUPS
from wpk.schedules.wgmma.multicast import (
    COLUMNS,
    LEAST_COLUMNS,
    NOTHING,
    PAIR,
    ROWS,
    Sharing,
    paired_grid,
)
from wpk.schedules.wgmma.persistent import (
    persistent_axis,
    persistent_grid,
    persistent_limits,
)
from wpk.targets import Target

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


def limits(reduction: int, precision: Precision) -> Sequence[Limit]:
    """What the kernel of warpgroups can compute.

    Args:
        reduction: Elements of it as it is walked.
        precision: Of the product.
    """
    depth = box_depth(precision)
    steps = f"ceil_div(ceil_div({reduction}, block_k), split)"
    narrow = Limit(
        f"block_n <= {_MOST_FP32_COLUMNS}",
        f"sums of fp32 are kept twice, of {_MOST_FP32_COLUMNS} columns at most",
    )
    return (
        *_SHAPES,
        Limit(
            f"block_k in {tuple(boxes * depth for boxes in _BOXES)}",
            f"a tile is one to four boxes of {depth} elements a row",
        ),
        Limit(
            f"stages * block_k <= {_MOST_BOXES * depth}",
            f"the pipeline has at most {_MOST_BOXES} boxes",
        ),
        *([narrow] if precision is Precision.FP32 else ()),
        *split_limits(reduction),
        Limit(
            f"stages == 2 or persistent != 0 or stages <= {steps}",
            "the pipeline has no more stages than a block has steps",
        ),
    )


def useful_limits(sharing: Sharing, target: Target) -> Sequence[Limit]:
    """What the target holds, and what pays there.

    Args:
        sharing: Rows and columns, of which blocks may share.
        target: The GPU.
    """
    return (
        *persistent_limits(target),
        Limit(
            "stages == 2 or stages <= steps",
            "the pipeline has no more stages than a block has steps",
        ),
        *target_limits(target, WHOLE_WARPGROUPS),
        useful_split(target),
        *sharing.limits(),
    )


COLUMN_LIMITS = (
    Limit("(block_n & (block_n - 1)) == 0", "columns are a power of two"),
    Limit("16 <= block_n <= 256", "a block has 16 to 256 columns"),
)
"""What every template of warpgroups asks of ``block_n``."""

_SHAPES = (
    Limit(
        f"block_m in ({GROUP_ROWS}, {2 * GROUP_ROWS})",
        "one or two warpgroups have 64 rows each",
    ),
    *COLUMN_LIMITS,
    Limit("stages >= 2", "the pipeline has at least two stages"),
    Limit(
        f"split == 1 or block_n <= {_MOST_SPLIT_COLUMNS}",
        f"tiles of split-K have at most {_MOST_SPLIT_COLUMNS} columns: sums of more would spill",
    ),
    Limit("cluster in (0, 1)", "cluster is 0 or 1"),
    Limit(
        f"cluster == 0 or 2 <= split <= {_MOST_SHARERS}",
        f"a cluster has two to {_MOST_SHARERS} blocks",
    ),
    Limit(
        f"share in ({NOTHING}, {ROWS}, {COLUMNS})", "share is 0 (nothing), 1 (rows) or 2 (columns)"
    ),
    Limit("share == 0 or split == 1", "blocks that share tiles have whole reductions"),
    Limit(
        f"share == 0 or block_n >= {LEAST_COLUMNS}",
        f"tiles that are shared have at least {LEAST_COLUMNS} columns",
    ),
    Limit("persistent >= 0", "persistent is a number of blocks, or 0"),
    Limit(
        "persistent == 0 or (split == 1 and share == 0)",
        "persistent blocks have whole reductions of their own",
    ),
    EARLY_LIMIT,
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
