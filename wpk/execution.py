"""What executes launches: the one protocol that the emulator and CUDA follow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wpk.kernel_source import KernelSource

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class KernelImage:
    """A kernel in both of its forms; a device takes the one that it executes.

    Attributes:
        digest: Digest of the source.
        source: Generated unit, for the CPU.
        cubin: Machine code, for a GPU.
    """

    digest: str
    source: KernelSource
    cubin: bytes


@dataclass(frozen=True)
class Pointer:
    """An address of device memory."""

    address: int


@dataclass(frozen=True)
class TensorMap:
    """What a tensor copy reads, a descriptor to make: see `wpk.launch.TensorMapArgument`.

    Attributes:
        address: Of the first element.
        element_bytes: Size of an element.
        shape: In elements, innermost first.
        strides: In bytes, of all dimensions but the innermost.
        box: In elements, innermost first.
        swizzle: 0, 32, 64 or 128 bytes.
    """

    address: int
    element_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int


BoundArgument = Pointer | TensorMap | int
"""A kernel argument with its value; an int is passed as int32."""


@dataclass(frozen=True)
class BoundLaunch:
    """A launch whose sizes and addresses are known: see `wpk.launch.Launch`."""

    kernel: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[BoundArgument, ...]
    attributes: tuple[str, ...]


class Replay(Protocol):
    """Launches that were captured once, to be started again and again."""

    def replay(self) -> None:
        """Start them; they run one after the other, and may still run when this returns.

        Raises:
            LaunchError: They cannot be started, or one failed.
        """


class Device(Protocol):
    """Loads kernels, holds memory, launches. Everything happens in the order of the calls.

    Attributes:
        name: What it is, e.g. ``cpu (emulator)``.
        executes_source: Whether it executes a kernel's source (the CPU) or its machine code.
    """

    name: str
    executes_source: bool

    def load(self, kernel: KernelImage) -> None:
        """Make a kernel ready to launch; one that is loaded already costs nothing."""

    def allocate(self, size: int) -> int:
        """The address, a multiple of 256, of ``size`` bytes with undefined contents."""

    def free(self, address: int) -> None:
        """Give an allocation back."""

    def write(self, address: int, data: Bytes) -> None:
        """Copy bytes to the device."""

    def read(self, address: int, size: int) -> Bytes:
        """Copy bytes from the device, after everything launched before has finished."""

    def launch(self, launch: BoundLaunch) -> None:
        """Start a kernel.

        Raises:
            LaunchError: It cannot be started, or failed.
        """

    def capture(self, launches: Sequence[BoundLaunch]) -> Replay:
        """Make launches ready to be started together; kernels and memory must outlive the replay.

        Raises:
            LaunchError: One cannot be started.
        """

    def synchronize(self) -> None:
        """Wait until everything that was started has finished.

        Raises:
            LaunchError: A kernel failed.
        """


class OneByOne:
    """A replay for devices that execute a launch when they are given it."""

    def __init__(self, device: Device, launches: Sequence[BoundLaunch]) -> None:
        """Remember the launches."""
        self._device, self._launches = device, tuple(launches)

    def replay(self) -> None:
        """Launch one after the other."""
        for launch in self._launches:
            self._device.launch(launch)
