"""What the emulator is given to execute, by shape: the engine's own types match these protocols."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from wpk.emulator.arguments import Pointer, TensorMap
from wpk.emulator.errors import EmulatorError
from wpk.kernel_source import KernelSource


class KernelLike(Protocol):
    """A kernel in the form that a CPU executes."""

    @property
    def digest(self) -> str:
        """Digest of the source."""

    @property
    def source(self) -> KernelSource:
        """The generated unit."""


@runtime_checkable
class PointerLike(Protocol):
    """An argument that is an address."""

    @property
    def address(self) -> int:
        """From `Emulator.allocate`, or inside such an allocation."""


@runtime_checkable
class TensorMapLike(PointerLike, Protocol):
    """An argument that describes a tensor and the box that one copy moves, innermost first."""

    @property
    def element_bytes(self) -> int:
        """Size of an element."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents in elements."""

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes, for all dimensions but the innermost."""

    @property
    def box(self) -> tuple[int, ...]:
        """Extents of the box in elements."""

    @property
    def swizzle(self) -> int:
        """0, 32, 64 or 128 bytes."""


class LaunchLike(Protocol):
    """A launch whose sizes and addresses are known."""

    @property
    def kernel(self) -> str:
        """Digest of the kernel's source."""

    @property
    def entry(self) -> str:
        """Name of the kernel."""

    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks."""

    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block."""

    @property
    def cluster(self) -> tuple[int, int, int]:
        """Blocks of a cluster; the emulator executes clusters of one block only."""

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""

    @property
    def arguments(self) -> tuple[PointerLike | int, ...]:
        """In the kernel's order; an int is an int32, a pointer may be a `TensorMapLike`."""


@dataclass(frozen=True)
class PlainLaunch:
    """A launch in the emulator's own types, which every process can unpickle."""

    kernel: str
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[Pointer | TensorMap | int, ...]


def plain_launch(launch: LaunchLike) -> PlainLaunch:
    """The launch in the emulator's own types.

    Raises:
        EmulatorError: It asks for something that is not emulated.
    """
    if launch.cluster != (1, 1, 1):
        raise EmulatorError(
            f"{launch.entry}: a cluster of {launch.cluster} blocks is not emulated",
            fix="choose a schedule without clusters, or execute it on a GPU",
        )
    return PlainLaunch(
        launch.kernel,
        launch.entry,
        launch.grid,
        launch.block,
        launch.cluster,
        launch.shared_bytes,
        tuple(_plain_argument(launch.entry, argument) for argument in launch.arguments),
    )


def _plain_argument(entry: str, argument: PointerLike | int) -> Pointer | TensorMap | int:
    if isinstance(argument, int):
        return argument
    if isinstance(argument, TensorMapLike):
        return TensorMap(
            argument.address,
            argument.element_bytes,
            argument.shape,
            argument.strides,
            argument.box,
            argument.swizzle,
        )
    if hasattr(argument, "box"):
        raise EmulatorError(
            f"{entry}: a tensor map that does not say the size of its elements",
            fix="this is a bug in the code that binds launches",
        )
    return Pointer(argument.address)
