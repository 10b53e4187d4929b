"""Windows of an image, as attention reads them: which place each of their rows has."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Windows:
    """How the places of images, row by row, are parted in windows of equal size.

    Row ``(wy, wx, ty, tx)`` of the windows is the place ``(y + shift[0]) % height, (x + shift[1]) % width`` with
    ``y = wy * rows + ty`` and ``x = wx * columns + tx``; where windows reach across the image, with
    ``y = ty * (height / rows) + wy`` and ``x = tx * (width / columns) + wx``.

    Attributes:
        height: Rows of an image.
        width: Its columns.
        rows: Rows of a window, of which those of an image are a multiple.
        columns: Columns of a window, likewise.
        across: Whether the places of a window lie as far apart as there are windows.
        shift: Rows and columns that the image is rolled by before it is parted.
    """

    height: int
    width: int
    rows: int
    columns: int
    across: bool = False
    shift: tuple[int, int] = (0, 0)

    @property
    def tokens(self) -> int:
        """Places of a window."""
        return self.rows * self.columns

    @property
    def count(self) -> int:
        """Windows of an image."""
        return self.height * self.width // self.tokens

    def why_not(self) -> str | None:
        """Say what of the sizes contradicts itself."""
        if min(self.height, self.width, self.rows, self.columns) < 1:
            return "have a size below 1"
        if self.height % self.rows or self.width % self.columns:
            return f"of {self.rows} and {self.columns} do not part {self.height} and {self.width}"
        if not (0 <= self.shift[0] < self.height and 0 <= self.shift[1] < self.width):
            return f"are shifted by {self.shift}, beyond the image"
        return None

    def places(self) -> NDArray[np.int64]:
        """Of each row of the windows of an image, its place in the image."""
        down, right = self.height // self.rows, self.width // self.columns
        wy, wx, ty, tx = np.ogrid[:down, :right, : self.rows, : self.columns]
        y = ty * down + wy if self.across else wy * self.rows + ty
        x = tx * right + wx if self.across else wx * self.columns + tx
        y, x = (y + self.shift[0]) % self.height, (x + self.shift[1]) % self.width
        return np.asarray(y * self.width + x, np.int64).ravel()


def windows_of(places: NDArray[np.int64], tokens: int) -> Windows | None:
    """Return the windows of ``tokens`` places whose rows have these places in images that follow each other.

    Args:
        places: Of each row of all windows, its place among those of all images.
        tokens: Places of a window.
    """
    if not places.size or tokens < 1 or places.size % tokens:
        return None
    reach = np.maximum.accumulate(places) + 1
    whole = np.flatnonzero(reach == np.arange(1, places.size + 1)) + 1
    sizes = [int(size) for size in whole if size % tokens == 0 and places.size % size == 0]
    for size in sizes:
        first = places[:size]
        images = np.arange(places.size // size)[:, None] * size
        if not np.array_equal(places, (images + first).ravel()):
            continue
        found = next((w for w in _windows(size, tokens, int(first[0])) if _is(w, first)), None)
        if found is not None:
            return found
    return None


def _is(windows: Windows, places: NDArray[np.int64]) -> bool:
    return np.array_equal(windows.places(), places)


def _windows(size: int, tokens: int, first: int) -> Iterator[Windows]:
    """All windows of so many places in an image of ``size``, of which the first row has the place ``first``."""
    for height in _divisors(size):
        width = size // height
        for rows in _divisors(tokens):
            columns = tokens // rows
            if height % rows == 0 and width % columns == 0:
                for across in (False, True):
                    yield Windows(height, width, rows, columns, across, divmod(first, width))


def _divisors(size: int) -> list[int]:
    return [n for n in range(1, size + 1) if size % n == 0]
