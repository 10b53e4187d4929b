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
    target: list[int] = []
    for index, dim in enumerate(output):
        if isinstance(dim, int):
            target.append(dim)
        elif dim is not None and index < len(source) and source[index] == dim:
            target.append(0)
        else:
            target.append(-1)
    return target if target.count(-1) <= 1 else None
