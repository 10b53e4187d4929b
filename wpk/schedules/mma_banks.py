"""Which bytes of shared memory the matrix loads of the tensor-core templates touch (tile_mma.cuh)."""

from functools import lru_cache

from wpk.performance import SharedAccess
from wpk.schedules.mma_tiles import MmaSchedule

_WARP = 32


@lru_cache(maxsize=1 << 15)  # problems share schedules
def shared_accesses(
    schedule: MmaSchedule, element_bytes: int, depth_major: bool = False
) -> tuple[SharedAccess, SharedAccess]:
    """The ldmatrix instructions of a step: A's and B's, as the first warp makes them.

    An ldmatrix reads, in each of four phases, 16 bytes for each of eight lanes.
    """
    steps = schedule.block_k * element_bytes // 32
    row_bytes = schedule.block_k * element_bytes
    tiles_m = schedule.block_m // schedule.warps_m // 16
    pairs_n = schedule.block_n // schedule.warps_n // 16
    lanes = range(_WARP)
    a = tuple(_swizzled(lane % 16, lane // 16, row_bytes) for lane in lanes)
    if depth_major:
        wide = schedule.block_n * element_bytes
        b = tuple(_swizzled(lane % 16, lane // 16, wide) for lane in lanes)
    else:
        b = tuple(_swizzled(lane % 8 + lane // 16 * 8, lane // 8 % 2, row_bytes) for lane in lanes)
    return SharedAccess(a, 16, tiles_m * steps), SharedAccess(b, 16, pairs_n * steps)


def _swizzled(row: int, chunk: int, row_bytes: int) -> int:
    """Byte offset of a 16-byte chunk in a tile (SwizzledTile of tile_shared.cuh)."""
    chunks = row_bytes // 16
    rows_a_line = max(1, 8 // chunks)
    pattern = row // rows_a_line & (min(chunks, 8) - 1)
    return row * row_bytes + (chunk ^ pattern) * 16
