"""Which networks the zoo has, and those that are drawn beside it."""

from __future__ import annotations

from zoo import of_timm, of_torchvision, of_transformers, written
from zoo.network import ZooNetwork

DRAWN_PREFIX = "drawn."
"""Begins what a network of timm's list is called that a seed draws."""

_PARTS = (of_torchvision, of_timm, of_transformers, written)


def zoo() -> dict[str, ZooNetwork]:
    """All networks, by family."""
    return {each.family: each for part in _PARTS for each in part.networks()}


def find(name: str) -> ZooNetwork:
    """A network by its family; or any of timm's list, which this asks for, by `DRAWN_PREFIX` and its name.

    Raises:
        KeyError: There is none.
    """
    if not name.startswith(DRAWN_PREFIX):
        return zoo()[name]
    network = name.removeprefix(DRAWN_PREFIX)
    return ZooNetwork(name, of_timm.classifier(network, of_timm.input_size(network)))
