"""Fold the batch of matrices into the two axes that kernels step through."""

from collections.abc import Iterator, Sequence
from math import prod

from wpk.extent import Extent
from wpk.lowering.views import NotAViewError, View

_AXES = 2


def batched(views: Sequence[View], batch: tuple[int, ...], leading: Extent) -> list[View]:
    """Return views with two batch axes before each matrix.

    Args:
        views: Whose last two axes are matrices, and whose others broadcast to ``batch``.
        batch: Extents of the batch, any number of axes.
        leading: Of the first axis; without a batch, views keep their own.

    Raises:
        NotAViewError: No two axes say where the matrices of all views lie.
    """
    wide = [
        view.broadcast((*batch, *view.shape[-2:]), leading if batch else view.leading)
        for view in views
    ]
    found: NotAViewError | None = None
    for two in _foldings(batch, leading):
        try:
            return [view.reshaped((*two, *view.shape[-2:])) for view in wide]
        except NotAViewError as error:
            found = found or error
    assert found is not None
    raise found


def _foldings(batch: tuple[int, ...], leading: Extent) -> Iterator[tuple[int, int]]:
    """Pairs of extents: the first axis and all others, then all others and the last, which may be broadcast.

    Without a free axis, those of one are left out, and any place may part the rest.
    """
    if not batch:
        yield 1, 1
        return
    yield batch[0], prod(batch[1:])
    if leading.free is not None:
        if len(batch) > _AXES:
            yield prod(batch[:-1]), batch[-1]
        return
    long = [extent for extent in batch if extent != 1]
    for place in range(1, len(long)):
        yield prod(long[:place]), prod(long[place:])
