"""Weights on a device: equal bytes lie there once, however many engines read them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wpk.execution import Device
from wpk.plan import array_bytes

_ALIGNMENT = 256


@dataclass
class _Place:
    address: int
    bytes: int
    users: int = 0


class WeightMemory:
    """Weights by the digest of their bytes, each for as long as somebody holds it."""

    def __init__(self, device: Device) -> None:
        """Begin with none.

        Args:
            device: Where they lie.
        """
        self._device = device
        self._places: dict[str, _Place] = {}

    @property
    def bytes(self) -> int:
        """What is allocated."""
        return sum(place.bytes for place in self._places.values())

    def take(self, digest: str, array: NDArray[np.generic]) -> int:
        """Return the address of a weight, which is written there if it is not yet; held until `give`.

        Raises:
            EngineError: There is not enough memory.
        """
        place = self._places.get(digest)
        if place is None:
            size = max(array.nbytes, _ALIGNMENT)
            place = self._places[digest] = _Place(self._device.allocate(size), size)
            self._device.write(place.address, np.frombuffer(array_bytes(array), np.uint8))
        place.users += 1
        return place.address

    def give(self, digest: str) -> None:
        """Hold a weight no longer; the last one who does gives its memory back."""
        place = self._places[digest]
        place.users -= 1
        if not place.users:
            del self._places[digest]
            self._device.free(place.address)
