"""The size of a problem's leading dimension, which may be decided only when an engine runs."""

from dataclasses import dataclass

from wpk.dims import DimExpr, names_of, product

MAX_SIZE = 2**31 - 1
"""Of an extent or a number of things: kernels count in 32 bits."""


@dataclass(frozen=True)
class Extent:
    """A size with its value while tuning, and its expression at run time.

    Kernels always take a leading extent as a run-time ``int`` argument, so one cubin serves every
    batch; all other sizes are constants of the kernel.

    Attributes:
        value: The size that models, search and measurements use.
        free: Name of the free dimension that decides it, or a product of several names; None when it
            is fixed.
        factor: The size is ``factor * free`` (a flattened ``batch * 128`` has factor 128).
    """

    value: int
    free: DimExpr | None = None
    factor: int = 1

    @property
    def names(self) -> tuple[str, ...]:
        """The free dimensions that decide it, each as often as it is multiplied with."""
        return () if self.free is None else tuple(names_of(self.free))

    @property
    def expression(self) -> DimExpr:
        """What a launch passes to the kernel."""
        return self.value if self.free is None else product(self.factor, self.free)

    def of(self, inner: "Extent") -> "Extent":
        """The extent of this dimension flattened with another, which may be free, too."""
        fixed = self.times(inner.value) if inner.free is None else inner.times(self.value)
        if self.free is None or inner.free is None:
            return fixed
        both = product(self.free, inner.free)
        return Extent(self.value * inner.value, both, self.factor * inner.factor)

    def times(self, count: int) -> "Extent":
        """The extent of this dimension flattened with ``count`` fixed elements."""
        return Extent(self.value * count, self.free, self.factor * count if self.free else 1)
