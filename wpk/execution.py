"""What executes launches: the one protocol that the emulator and CUDA follow."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wpk.candidate import Configuration
from wpk.codec import encode
from wpk.errors import EngineError, LaunchError
from wpk.kernel_source import KernelSource
from wpk.launch import Im2col
from wpk.problems import Problem

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
class LibraryImage:
    """A library's implementation of a problem, to be made ready by the library itself.

    Attributes:
        library: Its name, e.g. ``cuDNN``.
        version: The library's.
        problem: What it computes.
        configuration: Which of its implementations.
    """

    library: str
    version: str
    problem: Problem
    configuration: Configuration

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all of it: the name that calls use."""
        text = json.dumps(encode(self, LibraryImage), sort_keys=True, allow_nan=False)
        return sha256(text.encode()).hexdigest()


Image = KernelImage | LibraryImage


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
        box: In elements, innermost first; in im2col mode the channels of a pixel, and the pixels.
        swizzle: 0, 32, 64 or 128 bytes.
        im2col: The pixels that a copy takes; None where it takes a box of the tensor.
        to_tf32: Whether a copy rounds fp32 elements to tf32.
    """

    address: int
    element_bytes: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    im2col: Im2col | None = None
    to_tf32: bool = False


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


@dataclass(frozen=True)
class BoundCall:
    """A call of a library whose addresses are known.

    Attributes:
        image: Digest of the `LibraryImage`.
        pointers: Addresses of the operator's inputs, then of its output.
        workspace: Address of the scratch memory that it asked for.
        workspace_bytes: How much of it there is.
    """

    image: str
    pointers: tuple[int, ...]
    workspace: int
    workspace_bytes: int = 0


Work = BoundLaunch | BoundCall
"""What a device starts: a kernel, or a library's implementation."""


Predecessors = Sequence[Sequence[int]]
"""For each piece of work the numbers of those that must be done when it begins."""


class Replay(Protocol):
    """Work that was captured once, to be started again and again."""

    def replay(self) -> None:
        """Start them; they run in their order, and may still run when this returns.

        Raises:
            LaunchError: They cannot be started, or one failed.
        """


class Device(Protocol):
    """Loads images, holds memory, launches. Everything happens in the order of the calls.

    Attributes:
        name: What it is, e.g. ``cpu (emulator)``.
        executes_source: Whether it executes a kernel's source (the CPU) or its machine code.
    """

    name: str
    executes_source: bool

    def load(self, image: Image) -> None:
        """Make an image ready to launch; one that is loaded already costs nothing.

        Raises:
            EngineError: It cannot be executed here.
        """

    def allocate(self, size: int) -> int:
        """The address, a multiple of 256, of ``size`` bytes with undefined contents."""

    def free(self, address: int) -> None:
        """Give an allocation back."""

    def write(self, address: int, data: Bytes) -> None:
        """Copy bytes to the device."""

    def fill(self, address: int, size: int, byte: int) -> None:
        """Set bytes of memory."""

    def read(self, address: int, size: int) -> Bytes:
        """Copy bytes from the device, after everything launched before has finished."""

    def launch(self, work: Work) -> None:
        """Start a kernel or a call.

        Raises:
            LaunchError: It cannot be started, or failed.
        """

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> Replay:
        """Make work ready to be started together; images and memory must outlive the replay.

        Args:
            works: In an order in which they may be done.
            predecessors: For each the numbers of those, all smaller than its own, that must be done
                when it begins, and no others need be; None where each follows the one in front.

        Raises:
            LaunchError: One cannot be started.
        """

    def synchronize(self) -> None:
        """Wait until everything that was started has finished.

        Raises:
            LaunchError: A kernel failed.
        """


DeviceT = TypeVar("DeviceT", contravariant=True)


class Libraries(Protocol[DeviceT]):
    """The libraries that a device calls: a part that it is given."""

    def load(self, image: LibraryImage, device: DeviceT) -> int:
        """Make a library's implementation ready, once; the bytes of scratch memory that it needs.

        Raises:
            EngineError: It cannot be executed here.
        """

    def call(self, call: BoundCall, device: DeviceT) -> None:
        """Start an implementation that is ready.

        Raises:
            LaunchError: It is not ready, or cannot be started.
        """

    def close(self) -> None:
        """Let go of everything, before the device does."""


class OneByOne:
    """A replay for devices that execute work when they are given it."""

    def __init__(self, launch: Callable[[Work], None], works: Sequence[Work]) -> None:
        """Remember the work, and what launches it."""
        self._launch, self._works = launch, tuple(works)

    def replay(self) -> None:
        """Launch one after the other."""
        for work in self._works:
            self._launch(work)


class NoLibraries:
    """The libraries of a device that executes kernels alone."""

    def load(self, image: LibraryImage, device: object) -> int:
        """Refuse.

        Raises:
            EngineError: No library can be called here.
        """
        raise EngineError(
            f"this device executes kernels, and is given an implementation of {image.library}",
            fix="open the device with wpk.backends.open_device",
        )

    def call(self, call: BoundCall, device: object) -> None:
        """Refuse.

        Raises:
            LaunchError: No library can be called here.
        """
        raise LaunchError(
            f"this device executes kernels, and is asked to call {call.image[:12]}",
            fix="open the device with wpk.backends.open_device",
        )

    def close(self) -> None:
        """Nothing is loaded."""
