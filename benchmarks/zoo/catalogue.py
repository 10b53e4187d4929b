"""Which networks the zoo has."""

from __future__ import annotations

from zoo import of_timm, of_torchvision, of_transformers, written
from zoo.network import ZooNetwork

_PARTS = (of_torchvision, of_timm, of_transformers, written)


def zoo() -> dict[str, ZooNetwork]:
    """All networks, by family."""
    return {each.family: each for part in _PARTS for each in part.networks()}
