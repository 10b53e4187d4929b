"""Memory of a step's own on a device, piece by piece."""

from collections.abc import Callable

from wpk.device import StreamDevice
from wpk.execution import Device

Copier = Callable[[int, int, int], None]
"""Copies from an address to another, so many bytes; there is at least one."""


class Cells:
    """Pieces of device memory by name, allocated when they are first asked for.

    Attributes:
        copy: Copies within the device's memory.
    """

    def __init__(self, device: Device) -> None:
        """Begin with none."""
        self._device = device
        self.copy = copier_of(device)
        self._places: dict[str, tuple[int, int]] = {}

    @property
    def bytes(self) -> int:
        """What is allocated."""
        return sum(size for _, size in self._places.values())

    def at(self, name: str, size: int) -> int:
        """The address of the piece of this name, of at least this size; what was in a smaller one is lost.

        Raises:
            EngineError: There is not enough memory.
        """
        return self.grown(name, size, 0)

    def grown(self, name: str, size: int, kept: int) -> int:
        """The address of the piece of this name, of at least this size.

        Args:
            name: Of the piece.
            size: Bytes.
            kept: Bytes at its beginning that stay as they are.

        Raises:
            EngineError: There is not enough memory.
        """
        place, held = self._places.get(name, (0, 0))
        if place and held >= size:
            return place
        larger = self._device.allocate(max(size, 1))
        if kept:
            self.copy(place, larger, kept)
        if place:
            self._device.free(place)
        self._places[name] = larger, size
        return larger

    def close(self) -> None:
        """Give all of them back."""
        while self._places:
            self._device.free(self._places.popitem()[1][0])


def copier_of(device: Device) -> Copier:
    """What copies within a device's memory, in the order of its own stream."""
    if not isinstance(device, StreamDevice):
        return lambda source, target, size: device.write(target, device.read(source, size))
    streams: StreamDevice = (
        device  # asked once: to compare with a protocol takes longer than to copy
    )

    def on_the_stream(source: int, target: int, size: int) -> None:
        streams.copy_on(streams.stream, source, target, size)

    return on_the_stream
