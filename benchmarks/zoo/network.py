"""What a network of the zoo is."""

from __future__ import annotations

from dataclasses import dataclass

from exporters.architecture import Architecture

LARGE_BATCH = 32
"""Of the networks that have room for it."""


@dataclass(frozen=True)
class ZooNetwork:
    """A network of full size.

    Attributes:
        family: What no other network of the zoo is one of; names its rows.
        architecture: How it is built, and its inputs.
        large_batch: Inputs at once where many are computed: `LARGE_BATCH`, or what fits beside PyTorch's
            float64.
    """

    family: str
    architecture: Architecture
    large_batch: int = LARGE_BATCH
