"""One description of a launch, executed alike by the emulator, by CUDA and by a TensorRT plugin."""

from dataclasses import dataclass
from typing import get_args

from wpk.dims import DimExpr

EARLY_LAUNCH = "early_launch"
"""Launch attribute, CUDA's programmatic dependent launch: blocks may start before the launch in front has
ended, up to where they wait for it (wpk/kernels/barriers/early_launch.cuh). Elsewhere it changes nothing."""

COOPERATIVE = "cooperative"
"""Launch attribute: all blocks of the grid run at once, or none does, so that they may wait for each other
(wpk/kernels/barriers/grid_barrier.cuh). CUDA refuses a grid that the GPU cannot hold."""

ATTRIBUTES = (EARLY_LAUNCH, COOPERATIVE)
"""Every name that `Launch.attributes` may hold."""

NO_CLUSTER = (1, 1, 1)
"""Blocks of a thread-block cluster that is none."""


@dataclass(frozen=True)
class InputArgument:
    """Pointer to the operator's ``inputs[index]`` (an activation or a packed constant)."""

    index: int


@dataclass(frozen=True)
class SizeArgument:
    """An int32 computed from the free dimensions, or the bits of an fp32 number that a kernel takes by value."""

    expression: DimExpr


@dataclass(frozen=True)
class Im2col:
    """How a tensor map walks over pixels: the im2col mode of ``cuTensorMapEncodeIm2col``.

    The tensor has channels, one to three spatial dimensions and images; tuples hold a number for each
    spatial dimension, innermost (W) first. A copy takes pixels one after the other, W before H before D
    before images, where the first pixel of a window may lie: from ``lower`` to the extent - 1 +
    ``upper``. For a filter of R taps with dilation d and padding p before and q after, that is
    ``lower = -p`` and ``upper = q - (R - 1) d``; the copy itself is given the tap's place in the window.

    Attributes:
        lower: First pixel of the box.
        upper: Last pixel of the box, counted from the last pixel of the tensor.
        steps: From one pixel to the next: the convolution's strides.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class TensorMapArgument:
    """A TMA descriptor (``CUtensorMap``) over the operator's ``inputs[index]``.

    `wpk.tensor_maps` says what the hardware takes.

    Attributes:
        index: Operator input that the map reads.
        shape: Extents, innermost first.
        strides: Byte strides of all dimensions but the innermost.
        box: Box extents, innermost first; in im2col mode the channels of a pixel, and the pixels.
        swizzle: Bytes of the swizzle: 0, 32, 64 or 128.
        im2col: The pixels that a copy takes; None where it takes a box of the tensor.
        to_tf32: Whether a copy rounds fp32 elements to tf32.
    """

    index: int
    shape: tuple[DimExpr, ...]
    strides: tuple[DimExpr, ...]
    box: tuple[int, ...]
    swizzle: int
    im2col: Im2col | None = None
    to_tf32: bool = False


@dataclass(frozen=True)
class OutputArgument:
    """Pointer to the operator's ``outputs[index]``."""

    index: int


@dataclass(frozen=True)
class WorkspaceArgument:
    """Pointer to scratch memory of ``bytes`` that lives for this operator only."""

    bytes: DimExpr


@dataclass(frozen=True)
class CounterArgument:
    """Pointer to ``count`` int32 that are zero before the launch, and that it leaves zero.

    Launches that follow each other may share them.
    """

    count: DimExpr


Argument = (
    InputArgument
    | SizeArgument
    | TensorMapArgument
    | OutputArgument
    | WorkspaceArgument
    | CounterArgument
)
"""In the order that the arguments of a launch have."""


@dataclass(frozen=True)
class Launch:
    """One kernel launch of an operator; an operator is one or several of them in sequence.

    Attributes:
        kernel: Digest of the kernel's source (`wpk.kernel_source.KernelSource.digest`).
        entry: Name of the kernel in its cubin.
        grid: Blocks along x, y, z.
        block: Threads along x, y, z.
        shared_bytes: Dynamic shared memory of a block.
        arguments: Kernel arguments in order: inputs, sizes, tensor maps, outputs, workspace,
            counters.
        cluster: Blocks of a thread-block cluster along x, y, z; they divide the grid.
        attributes: Launch attributes by name, out of `ATTRIBUTES`.
    """

    kernel: str
    entry: str
    grid: tuple[DimExpr, DimExpr, DimExpr]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    cluster: tuple[int, int, int] = NO_CLUSTER
    attributes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Hold the argument order that every executor relies on."""
        ranks = [_ORDER.index(type(argument)) for argument in self.arguments]
        if ranks != sorted(ranks):
            raise ValueError(f"{self.entry}: arguments out of order: {self.arguments}")


_ORDER = get_args(Argument)
