"""The spec of one operator: what a TensorRT plugin needs to compute it, machine code included."""

import hashlib
from dataclasses import dataclass
from enum import IntEnum

from wpk.dims import DimExpr
from wpk.dtypes import DType
from wpk.launch import Launch
from wpk.spec.elements import element_code
from wpk.spec.library_call import LibraryCall
from wpk.spec.sealed import SpecKind, sealed
from wpk.spec.writer import SpecWriter


class Format(IntEnum):
    """How a tensor lies in memory, by TensorRT's names."""

    LINEAR = 0
    HWC = 1
    HWC8 = 2
    HWC16 = 3


@dataclass(frozen=True)
class Dimension:
    """A free dimension, read off an input.

    Attributes:
        name: As expressions call it.
        input: Number of the input.
        axis: Its axis, whose extent the dimension is.
    """

    name: str
    input: int
    axis: int


@dataclass(frozen=True)
class SpecTensor:
    """An input or output: its element type, and its extents as ONNX sees them."""

    dtype: DType
    shape: tuple[DimExpr, ...]


@dataclass(frozen=True)
class SpecKernel:
    """Machine code.

    Attributes:
        digest: Of its source.
        entry: Name of the kernel in the cubin.
        arch: What it is compiled for, e.g. ``sm_90a``.
        cubin: The machine code.
    """

    digest: str
    entry: str
    arch: str
    cubin: bytes


@dataclass(frozen=True)
class Variant:
    """One way to compute the operator: a tactic, in TensorRT's words.

    Attributes:
        name: Template and schedule, for people.
        formats: Of the inputs, then of the outputs.
        work: Launches in sequence, which name kernels by digest, inputs and outputs by number; or a library's
            implementation.
    """

    name: str
    formats: tuple[Format, ...]
    work: tuple[Launch, ...] | LibraryCall

    @property
    def launches(self) -> tuple[Launch, ...]:
        """Its kernels in sequence; none where a library computes it."""
        return () if isinstance(self.work, LibraryCall) else self.work


@dataclass(frozen=True)
class OperatorSpec:
    """An operator.

    Attributes:
        name: For people.
        dimensions: The free ones.
        inputs: Activations and packed weights.
        outputs: What it computes.
        kernels: Those that the variants launch.
        variants: At least one.
    """

    name: str
    dimensions: tuple[Dimension, ...]
    inputs: tuple[SpecTensor, ...]
    outputs: tuple[SpecTensor, ...]
    kernels: tuple[SpecKernel, ...]
    variants: tuple[Variant, ...]


def operator_bytes(spec: OperatorSpec) -> bytes:
    """Return the spec as bytes."""
    return sealed(SpecKind.OPERATOR, _Writing(spec).body())


class _Writing:
    """The body of a spec, one part after another."""

    def __init__(self, spec: OperatorSpec) -> None:
        self._spec = spec
        self._out = SpecWriter(each.name for each in spec.dimensions)
        self._kernels = {each.digest: number for number, each in enumerate(spec.kernels)}
        self._element_bytes = [each.dtype.bytes for each in spec.inputs]

    def body(self) -> bytes:
        spec, out = self._spec, self._out
        out.text(spec.name)
        out.sequence(spec.dimensions, self._dimension)
        out.sequence(spec.inputs, self._tensor)
        out.sequence(spec.outputs, self._tensor)
        out.sequence(spec.kernels, self._kernel)
        out.sequence(spec.variants, self._variant)
        return out.written()

    def _dimension(self, dimension: Dimension) -> None:
        self._out.text(dimension.name)
        self._out.u32(dimension.input)
        self._out.u32(dimension.axis)

    def _tensor(self, tensor: SpecTensor) -> None:
        self._out.u8(element_code(tensor.dtype))
        self._out.sequence(tensor.shape, self._out.expression)

    def _kernel(self, kernel: SpecKernel) -> None:
        self._out.kernel(kernel.digest, kernel.entry, kernel.arch, kernel.cubin)

    def _variant(self, variant: Variant) -> None:
        self._out.text(variant.name)
        self._out.sequence(variant.formats, self._out.u8)
        self._out.work(variant.work, self._kernels, self._element_bytes)


def operator_id(data: bytes) -> str:
    """SHA-256 of a spec's bytes: what a timing cache knows the operator by."""
    return hashlib.sha256(data).hexdigest()
