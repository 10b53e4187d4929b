"""The size of a problem's leading dimension, which may be decided only when an engine runs."""

from dataclasses import dataclass

from wpk.dims import DimExpr, product

MAX_SIZE = 2**31 - 1
"""Of an extent or a number of things: kernels count in 32 bits."""


@dataclass(frozen=True)
class Extent:
    """A size with its value while tuning, and its expression at run time.

    Kernels always take a leading extent as a run-time ``int`` argument, so one cubin serves every
    batch; all other sizes are constants of the kernel.

    Attributes:
        value: The size that models, search and measurements use.
        free: Name of the free dimension that decides it, or None when it is fixed.
        factor: The size is ``factor * free`` (a flattened ``batch * sequence`` has factor sequence).
    """

    value: int
    free: str | None = None
    factor: int = 1

    @property
    def expression(self) -> DimExpr:
        """What a launch passes to the kernel."""
        return self.value if self.free is None else product(self.factor, self.free)

    def times(self, count: int) -> "Extent":
        """The extent of this dimension flattened with ``count`` fixed elements."""
        return Extent(self.value * count, self.free, self.factor * count if self.free else 1)
