"""What wpk needs to know of an array that lies on a GPU, whoever's it is."""

from typing import NamedTuple


class ForeignArray(NamedTuple):
    """An array that lies on a GPU.

    Attributes:
        address: Of its first element.
        kind: Element type: the value of a `DType`, or other words where wpk has none.
        shape: Extents.
        strides: In elements; None where it is dense in C's order.
        ordinal: Number of its GPU; None where the array does not say.
        read_only: Whether writing to it is forbidden.
    """

    address: int
    kind: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    ordinal: int | None
    read_only: bool = False

    @property
    def is_dense(self) -> bool:
        """Whether its elements follow each other in C's order."""
        if self.strides is None:
            return True
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return False
            step *= size
        return True
