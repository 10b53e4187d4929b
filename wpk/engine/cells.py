"""Memory of a step's own on a device, piece by piece."""

from wpk.device import StreamDevice
from wpk.execution import Device


class Cells:
    """Pieces of device memory by name, allocated when they are first asked for."""

    def __init__(self, device: Device) -> None:
        """Begin with none."""
        self._device = device
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
        if place:
            copy_within(self._device, place, larger, kept)
            self._device.free(place)
        self._places[name] = larger, size
        return larger

    def close(self) -> None:
        """Give all of them back."""
        while self._places:
            self._device.free(self._places.popitem()[1][0])


def copy_within(device: Device, source: int, target: int, size: int) -> None:
    """Copy bytes from one place of a device's memory to another, in the order of its own stream."""
    if not size:
        return
    if isinstance(device, StreamDevice):
        device.copy_on(device.stream, source, target, size)
    else:
        device.write(target, device.read(source, size))
