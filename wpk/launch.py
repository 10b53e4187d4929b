"""One description of a launch, executed alike by the emulator, by CUDA and by a TensorRT plugin."""

from dataclasses import dataclass, field

from wpk.dims import DimExpr


@dataclass(frozen=True)
class InputArgument:
    """Pointer to the operator's ``inputs[index]`` (an activation or a packed constant)."""

    index: int


@dataclass(frozen=True)
class SizeArgument:
    """An int32 computed from the free dimensions."""

    expression: DimExpr


@dataclass(frozen=True)
class TensorMapArgument:
    """A TMA descriptor (``CUtensorMap``) over the operator's ``inputs[index]``.

    Attributes:
        index: Operator input that the map reads.
        shape: Extents, innermost first.
        strides: Byte strides of all dimensions but the innermost.
        box: Box extents, innermost first.
        swizzle: Bytes of the swizzle: 0, 32, 64 or 128.
    """

    index: int
    shape: tuple[DimExpr, ...]
    strides: tuple[DimExpr, ...]
    box: tuple[int, ...]
    swizzle: int


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
        cluster: Blocks of a thread-block cluster along x, y, z.
        attributes: Launch attributes by name, e.g. ``programmatic_dependent_launch``.
    """

    kernel: str
    entry: str
    grid: tuple[DimExpr, DimExpr, DimExpr]
    block: tuple[int, int, int]
    shared_bytes: int
    arguments: tuple[Argument, ...]
    cluster: tuple[int, int, int] = (1, 1, 1)
    attributes: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Hold the argument order that every executor relies on."""
        ranks = [_ORDER.index(type(argument)) for argument in self.arguments]
        if ranks != sorted(ranks):
            raise ValueError(f"{self.entry}: arguments out of order: {self.arguments}")


_ORDER = [
    InputArgument,
    SizeArgument,
    TensorMapArgument,
    OutputArgument,
    WorkspaceArgument,
    CounterArgument,
]
