"""How many blocks a cluster may have on a target, for templates whose parameter ``blocks`` is 1 without a cluster."""

from collections.abc import Sequence

from wpk.schedules.limit import Limit
from wpk.targets import Target, has_clusters

_LARGE_CLUSTERS = (9, 10)
"""Compute capabilities, their major part, of data centres: clusters of 16 blocks exist there."""


def largest_cluster(target: Target) -> int:
    """Return the most blocks of a cluster, 1 on a target without clusters."""
    if not has_clusters(target.arch):
        return 1
    return 16 if target.capability[0] in _LARGE_CLUSTERS else 8


def cluster_sizes(usual: Sequence[int], target: Target) -> tuple[int, ...]:
    """Return the values of ``blocks`` to try: clusters that the target has, and 1.

    Args:
        usual: Numbers of blocks up to 8, those first that are tried first.
        target: Where the clusters are.
    """
    largest = largest_cluster(target)
    return (*(size for size in (*usual, 16) if size <= largest), 1)


def cluster_limits(target: Target) -> list[Limit]:
    """Return what ``blocks`` may be on a target."""
    if not has_clusters(target.arch):
        return [Limit("blocks == 1", f"{target.name} has no clusters")]
    largest = largest_cluster(target)
    if largest < 16:
        return [
            Limit(
                f"blocks <= {largest}", f"clusters of {target.name} have {largest} blocks at most"
            )
        ]
    return []
