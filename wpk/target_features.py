"""What a target's blocks can do, as far as it decides how the graph passes rewrite a model for it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TargetFeatures:
    """What blocks can do.

    Attributes:
        clusters: Whether they share memory, so that several share a row.
        warpgroups: Whether warpgroups multiply, so that both products of a block may be one kernel.
    """

    clusters: bool = True
    warpgroups: bool = False


USUAL = TargetFeatures()
"""Of whatever target nobody names."""
