"""The schedule of a warpgroup kernel, its axes and its limits (wpk/kernels/wgmma/shape.cuh)."""

from collections.abc import Sequence
from dataclasses import dataclass

from wpk.dtypes import DType, Precision
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import Grid, Partials
from wpk.schedules.split import split_axis, split_limits, useful_split
from wpk.schedules.template import Schedule
from wpk.schedules.tiles.matrix import target_limits, up_to
from wpk.schedules.views.matrix import MatrixSizes
from wpk.schedules.wgmma import multicast, widths
from wpk.schedules.wgmma.costs import WHOLE_WARPGROUPS
from wpk.schedules.wgmma.group import GROUP_ROWS
from wpk.schedules.wgmma.multicast import (
    COLUMNS,
    MOST_CLUSTER,
    PAIR,
    ROWS,
    Multicast,
    whole_clusters,
)
from wpk.schedules.wgmma.persistent import (
    persistent_axis,
    persistent_grid,
    persistent_limits,
    pingpong_axis,
    staged_columns,
)
from wpk.schedules.wgmma.residual import Residual, residual_axis, residual_limits
from wpk.schedules.wgmma.tensor_copies import box_depth
from wpk.targets import Target

_BOXES = (1, 2, 3, 4)  # of a step
_BLOCK_M = (GROUP_ROWS, 2 * GROUP_ROWS, 3 * GROUP_ROWS)  # one to three consumer warpgroups
_TALL_ROWS = 2048  # of products for which three are tried
_LEAST_TALL_COLUMNS = 96
_MOST_BOXES = 16  # of a pipeline: more do not fit, or begin after the first ones have come
_MOST_FP32_COLUMNS = 128  # of a tile whose sums are kept twice
_MOST_SUMS = 128 * 128  # of a warpgroup: 128 registers of each thread
_MOST_SPLIT_COLUMNS = 128  # of a tile of split-K: so many sums and as many loads fit


@dataclass(frozen=True)
class WgmmaSchedule(Schedule):
    """The tile of a block, 64 rows for each consumer warpgroup, and the pipeline that TMA fills.

    With ping-pong each of two consumer warpgroups has tiles of its own, one after another.

    Attributes:
        block_m: Rows of a tile.
        block_n: Columns of a tile.
        block_k: Elements of the reduction that a step takes.
        stages: Stages of the pipeline.
        split: Split-K: blocks among which a tile's reduction is split.
        cluster: 1 where these blocks are a cluster, and add their partial sums in its shared memory.
        early: 1 for programmatic dependent launch (early_launch.cuh), else 0.
        share: Multicast to blocks of a cluster: 0 nothing; 1 tiles of A, to blocks side by side;
            2 tiles of B, to blocks one below the other.
        persistent: Persistent blocks, which compute tiles one after another; 0 where each tile has a block.
        pingpong: 1 where two warpgroups of a persistent block have tiles in turns: one stores while the other
            multiplies.
        shared_by: Blocks that a tile is multicast to: 2 or 4; 2 where nothing is multicast.
        residual: Tiles of the epilogue's residual that are in shared memory at once; 0 where the epilogue reads it
            from global memory.
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
    pingpong: int = 0
    shared_by: int = PAIR
    residual: int = 0

    @property
    def staged_columns(self) -> int:
        """Columns that a warp takes through its staging at once, with a piece of the residual."""
        return int(staged_columns(self.columns())[0])

    @property
    def cluster_shape(self) -> tuple[int, int, int]:
        """Blocks of a cluster, of multicast and of split-K; persistent ones lie in a row."""
        if self.persistent:
            return self.multicast_a * self.multicast_b, 1, 1
        return self.multicast_b, self.multicast_a, self.split if self.cluster else 1

    @property
    def multicast_a(self) -> int:
        """Blocks that a tile of A is multicast to; each copies one part of it."""
        return self.shared_by if self.share == ROWS else 1

    @property
    def multicast_b(self) -> int:
        """Blocks that a tile of B is multicast to."""
        return self.shared_by if self.share == COLUMNS else 1

    def grid(self, tiles: Grid) -> Grid:
        """Return the blocks for a grid of tiles: whole clusters, or persistent blocks."""
        whole = whole_clusters(tiles, self.multicast_a, self.multicast_b)
        return persistent_grid(whole, self.persistent)

    def partials(self, grid: Grid) -> Partials | None:
        """Return the global memory in which partial sums meet; none where they meet in a cluster."""
        tile_bytes = self.block_m * self.block_n * DType.FP32.bytes
        return None if self.cluster else Partials.of(grid, tile_bytes, self.split)


def axes(
    sizes: MatrixSizes, precision: Precision, residual: Residual | None, target: Target
) -> dict[str, tuple[int, ...]]:
    """Return the values to try for a product of these sizes."""
    (rows, columns, reduction, matrices), depth = sizes, box_depth(precision)
    tile_rows = up_to(_BLOCK_M if rows >= _TALL_ROWS else _BLOCK_M[:2], rows)
    boxes = -(-reduction // depth)
    persistent = persistent_axis(rows, columns, target)
    return {
        "block_m": tile_rows,
        "block_n": widths.axis(rows, columns, matrices, tile_rows, precision, target),
        "block_k": tuple(step * depth for step in _BOXES if step <= boxes),
        "stages": (2, 3, 4, 6, 8),
        "split": split_axis(reduction, depth),
        "cluster": (0, 1),
        **Multicast(rows, columns).axes(boxes, len(persistent) > 1, target),
        "persistent": persistent,
        "pingpong": pingpong_axis(persistent, precision),
        "residual": residual_axis(residual, persistent),
    }


def limits(reduction: int, precision: Precision, residual: Residual | None) -> Sequence[Limit]:
    """Return what the kernel can compute.

    Args:
        reduction: Elements of it as it is walked.
        precision: Of the product.
        residual: Of its epilogue.
    """
    depth = box_depth(precision)
    steps = f"ceil_div(ceil_div({reduction}, block_k), split)"
    narrow = Limit(
        f"block_n <= {_MOST_FP32_COLUMNS}",
        f"sums of fp32 are kept twice, of {_MOST_FP32_COLUMNS} columns at most",
    )
    apart = Limit("cluster == 0", "sums of bytes are added as int32, which clusters do not")
    return (
        *widths.limits(precision),
        *_SHAPES,
        Limit(
            f"block_k in {tuple(boxes * depth for boxes in _BOXES)}",
            f"a tile is one to four boxes of {depth} elements a row",
        ),
        Limit(
            f"stages * block_k <= {_MOST_BOXES * depth}",
            f"the pipeline has at most {_MOST_BOXES} boxes",
        ),
        *([narrow, NO_PINGPONG, TWO_WARPGROUPS] if precision is Precision.FP32 else ()),
        *([apart] if precision is Precision.INT8 else ()),
        *split_limits(reduction),
        *residual_limits(residual),
        Limit(
            f"stages == 2 or persistent != 0 or stages <= {steps}",
            "the pipeline has no more stages than a block has steps",
        ),
    )


def useful_limits(product: Multicast, precision: Precision, target: Target) -> Sequence[Limit]:
    """Return what the target holds, and what pays there.

    Args:
        product: Rows and columns of the product, whose tiles may be multicast.
        precision: Of the product.
        target: The GPU.
    """
    depth = box_depth(precision)
    tall = Limit(
        f"block_m <= {_BLOCK_M[1]} or block_n >= {_LEAST_TALL_COLUMNS}",
        f"three consumer warpgroups multiply by {_LEAST_TALL_COLUMNS} columns or more",
    )
    many = len(persistent_axis(product.rows, product.columns, target)) > 1
    return (
        *persistent_limits(target),
        tall,
        Limit(
            "stages == 2 or stages <= steps",
            "the pipeline has no more stages than a block has steps",
        ),
        *([_SPILLING] if precision is Precision.FP32 else ()),
        *target_limits(target, WHOLE_WARPGROUPS),
        useful_split(target),
        *product.limits(depth, many),
    )


_SPILLING = Limit(
    "persistent == 0 or share != 1 or block_n != 64 or block_k != 64 or stages != 3",
    "ptxas spills a register of persistent tiles of 64 columns whose three stages of 64 elements are multicast",
)
"""Of convolutions of 64 channels in fp32, by NVRTC 13.5; no other of their persistent tiles that are handed registers does."""

NO_PINGPONG = Limit(
    "pingpong == 0", "warpgroups take turns where both operands are multiplied as they come"
)
"""Of what goes through registers: products of fp32, and of inputs between limits."""

TWO_WARPGROUPS = Limit(
    f"block_m <= {_BLOCK_M[1]}",
    "three consumer warpgroups have no registers for operands that go through them",
)
"""Of the same."""

_SHAPES = (
    Limit(f"block_m in {_BLOCK_M}", "one to three consumer warpgroups have 64 rows each"),
    Limit("stages >= 2", "the pipeline has at least two stages"),
    Limit(
        f"split == 1 or block_n <= {_MOST_SPLIT_COLUMNS}",
        f"tiles of split-K have at most {_MOST_SPLIT_COLUMNS} columns: sums of more would spill",
    ),
    Limit("cluster in (0, 1)", "cluster is 0 or 1"),
    Limit(
        f"cluster == 0 or 2 <= split <= {MOST_CLUSTER}",
        f"a cluster has two to {MOST_CLUSTER} blocks",
    ),
    *multicast.LIMITS,
    Limit("persistent >= 0", "persistent is a number of blocks, or 0"),
    Limit("persistent == 0 or split == 1", "persistent blocks have whole reductions"),
    Limit("pingpong in (0, 1)", "pingpong is 0 or 1"),
    Limit("pingpong == 0 or persistent != 0", "warpgroups take turns in persistent blocks"),
    Limit(
        f"block_m <= {_BLOCK_M[1]} or block_n <= 64 or split == 1 or cluster == 1",
        "parts that meet in global memory spill where three warpgroups have more than 64 columns",
    ),
    Limit(
        f"pingpong == 0 or block_m <= {_BLOCK_M[1]}",
        "of warpgroups that take turns each has one or two times 64 rows",
    ),
    Limit(
        f"pingpong == 0 or block_m * block_n <= {_MOST_SUMS}",
        f"a warpgroup that has a tile of its own has {_MOST_SUMS} sums at most",
    ),
)
