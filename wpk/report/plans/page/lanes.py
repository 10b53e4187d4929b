"""Lanes beside a list: one for each value, from the row that makes it to the last that reads it."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lane:
    """One value's line.

    Attributes:
        place: 0 is the spine, on which the rows' dots lie; others lie beside it.
        first: Row that makes the value.
        readers: Rows that read it.
    """

    place: int
    first: int
    readers: tuple[int, ...]

    @property
    def last(self) -> int:
        """The last row that reads it."""
        return self.readers[-1]


def assign_lanes(reads: Sequence[Sequence[int]]) -> list[Lane]:
    """Give each row's value a lane, the lowest that no other line occupies at the same rows.

    To the row right below a value runs along the spine, to rows further down on a lane of its own.

    Args:
        reads: For each row, the rows that it reads; all lie before it.
    """
    readers: dict[int, list[int]] = {}
    for row, made in enumerate(reads):
        for source in made:
            readers.setdefault(source, []).append(row)
    free_from: list[int] = []  # by place - 1: the row at which the lane is free again
    lanes = []
    for first, rows in sorted(readers.items()):
        if rows[0] == first + 1:
            lanes.append(Lane(0, first, (first + 1,)))
            rows = rows[1:]
        if not rows:
            continue
        place = next((i for i, row in enumerate(free_from) if row <= first), len(free_from))
        free_from[place : place + 1] = [rows[-1]]
        lanes.append(Lane(place + 1, first, tuple(rows)))
    return lanes
