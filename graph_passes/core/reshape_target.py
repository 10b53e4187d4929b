"""Write a known output shape as the target of a Reshape that holds for every batch."""

from wpk.graph_passes.core.query import Dims


def reshape_target(source: Dims | None, output: Dims | None) -> list[int] | None:
    """Return a Reshape target (``allowzero`` = 0) that turns ``source`` into ``output``.

    A symbol becomes 0 where the source has the same symbol at the same place, and one dimension
    that is still open becomes -1. None when more are open, a dimension is 0 (then -1 and 0 would
    be ambiguous), or a shape is unknown.
    """
    if source is None or output is None or 0 in source or 0 in output:
        return None
    return target_of(source, output)


def target_of(source: Dims, entries: Dims) -> list[int] | None:
    """Write what is no number as 0 or -1, as `reshape_target` does; numbers mean themselves."""
    target: list[int] = []
    for index, entry in enumerate(entries):
        kept = entry is not None and source[index : index + 1] == [entry]
        target.append(entry if isinstance(entry, int) else 0 if kept else -1)
    return target if target.count(-1) <= 1 else None
