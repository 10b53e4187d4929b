"""What a Loop or a Scan collects: an output that has a part of each turn.

Where the number of turns is known, the output has its place in the memory of the plan. Where the turns decide
it, the parts lie in memory of the step's own that grows by doubling, as long as the engine lives.
"""

from wpk.control_flow import Collected
from wpk.engine.cells import Cells
from wpk.errors import LaunchError

FIRST_PLACES = 16
"""For the parts of as many turns there is memory at first, where their number is not known."""


class Collection:
    """Where the parts of an output go, each on the device.

    Attributes:
        name: The port of the body that gives them.
        places: How many there are; None where that is not known before the turns end.
        start: Where the first place is.
    """

    def __init__(
        self,
        name: str,
        collected: Collected,
        address: int | None,
        places: int | None,
        count: int | None,
        size: int,
        cells: Cells,
    ) -> None:
        """Take its address, where it has one, and the most turns there can be."""
        self.name, self.places = name, places
        self._backwards, self._count, self._size = collected.backwards, count, size
        self._cells, self._cell = cells, f"collected {name}"
        self._held = 0 if address is None else places or 0
        self.start = 0 if address is None else address

    def place(self, turn: int) -> int:
        """Where the part of a turn goes.

        Raises:
            LaunchError: There are more turns than places.
            EngineError: There is not enough memory.
        """
        if self.places is not None:
            if turn >= self.places:
                raise other_number(turn + 1, self.places)
            part = self.places - 1 - turn if self._backwards else turn
            return self.start + part * self._size
        if turn >= self._held:
            more = max(FIRST_PLACES, 2 * self._held)
            more = more if self._count is None else min(more, self._count)
            self.start = self._cells.grown(self._cell, more * self._size, turn * self._size)
            self._held = more
        return self.start + turn * self._size


def other_number(turn: int, places: int) -> LaunchError:
    """What is said of a loop whose outputs have another length than it has turns."""
    return LaunchError(
        f"a loop took {turn} turns or more, and its outputs have a place for each of {places}",
        fix="write the plan again: wpk optimize; or report this as a bug, with the model",
    )
