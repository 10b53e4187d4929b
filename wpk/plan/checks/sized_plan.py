"""A plan with everything that depends on its free dimensions."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from wpk.dims import DimExpr, evaluate
from wpk.plan.plan import Plan
from wpk.plan.regions import Region


@dataclass(frozen=True)
class SizedPlan:
    """A plan at one assignment of its free dimensions.

    Attributes:
        plan: Whose names refer to something.
        dims: Values of the free dimensions.
        regions: The bytes of every value within its buffer.
    """

    plan: Plan
    dims: Mapping[str, int]
    regions: Mapping[str, Region]

    def evaluate(self, size: DimExpr) -> int:
        """The value of a size."""
        return evaluate(size, self.dims)

    def room(self, name: str) -> int:
        """Bytes from where a value or weight begins to the end of what it lies in."""
        if name in self.plan.weights:
            weight = self.plan.weights[name]
            return prod(weight.shape) * weight.dtype.bytes
        value = self.plan.values[name]
        return self.evaluate(self.plan.buffers[value.buffer].bytes) - value.offset
