"""What a block may be: its threads, its shared memory, and the blocks of its cluster."""

from collections.abc import Sequence

from wpk.schedules.limit import Limit
from wpk.targets import Target, has_clusters

_MOST_BLOCKS, _LARGE_CLUSTERS = 16, (9, 10)
"""Blocks of the largest clusters that there are; the major part of compute capabilities that have such: of data centres."""

STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory that a kernel may declare; more has to be asked for at the launch."""


def declared_limit(size: str, what: str) -> Limit:
    """Return the limit of shared memory that a kernel declares.

    Args:
        size: Bytes, over the parameters.
        what: What takes them, in the plural.
    """
    return Limit(
        f"{size} <= {STATIC_SHARED_BYTES}",
        f"{what} take at most {STATIC_SHARED_BYTES} bytes, which a kernel may declare",
    )


def thread_limit(target: Target, threads: str = "threads") -> Limit:
    """Return the limit of a block's threads."""
    most = target.max_threads_block
    return Limit(f"{threads} <= {most}", f"a block of the target has at most {most} threads")


def shared_limit(target: Target, size: str = "shared_bytes") -> Limit:
    """Return the limit of the shared memory that a block asks for."""
    room = target.max_shared_block
    return Limit(
        f"{size} <= {room}", f"a block of the target has at most {room} bytes of shared memory"
    )


def largest_cluster(target: Target) -> int:
    """Return the most blocks of a cluster, 1 on a target without clusters."""
    if not has_clusters(target.arch):
        return 1
    return _MOST_BLOCKS if target.capability[0] in _LARGE_CLUSTERS else 8


def cluster_sizes(usual: Sequence[int], target: Target) -> tuple[int, ...]:
    """Return the values to try of ``blocks``, a parameter that is 1 without a cluster: what the target has, and 1.

    Args:
        usual: Numbers of blocks up to 8, those first that are tried first.
        target: Where the clusters are.
    """
    largest = largest_cluster(target)
    return (*(size for size in (*usual, _MOST_BLOCKS) if size <= largest), 1)


def cluster_limits(target: Target) -> list[Limit]:
    """Return what ``blocks`` may be on a target."""
    largest = largest_cluster(target)
    if largest == 1:
        return [Limit("blocks == 1", f"{target.name} has no clusters")]
    words = f"clusters of {target.name} have {largest} blocks at most"
    return [] if largest == _MOST_BLOCKS else [Limit(f"blocks <= {largest}", words)]
