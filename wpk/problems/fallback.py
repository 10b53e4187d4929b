"""What no kernel computes: nodes of the model that ONNX Runtime executes, in the machine's memory."""

from dataclasses import dataclass

from wpk.dims import DimExpr
from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems.access import Access
from wpk.problems.family import Family
from wpk.problems.operand import Tensor
from wpk.problems.problem import Accesses, Problem, Traffic

_SHOWN = 4
"""Operators that are named in a few words."""


@dataclass(frozen=True)
class Crossing:
    """A tensor on its way between the device's memory and ONNX Runtime.

    Attributes:
        tensor: How it lies in memory.
        leading: Its first extent there.
        inner: Its other extents.
        shape: Its shape as ONNX has it: several free axes are one in memory, and scalars have an axis there.
    """

    tensor: Tensor
    leading: Extent
    inner: tuple[int, ...] = ()
    shape: tuple[DimExpr, ...] = ()

    @property
    def access(self) -> Access:
        """Its elements in memory."""
        return Access(self.tensor, (self.leading, *self.inner))


@dataclass(frozen=True)
class Fallback(Problem):
    """A part of the model that ONNX Runtime computes.

    Inputs and outputs are those of an ONNX model, in its order. What has no place in the device's memory,
    since only a run decides its shape, stays in the machine's: such an input is None here, and such outputs
    stand behind those that have a place.

    Attributes:
        model: SHA-256 of the ONNX model.
        operators: What ONNX calls its nodes, in order.
        x: Its inputs.
        results: Its outputs that lie in the device's memory, row-major.
    """

    model: str
    operators: tuple[str, ...]
    x: tuple[Crossing | None, ...]
    results: tuple[Crossing, ...]

    @property
    def leading(self) -> Extent:
        """None is passed to a kernel."""
        return Extent(1)

    @property
    def y(self) -> Tensor:
        """None: it may have several outputs; see `writes`."""
        raise NotImplementedError("ONNX Runtime computes it, and no kernel")

    @property
    def family(self) -> Family:
        """See `Problem.family`."""
        return Family.FALLBACK

    @property
    def input_types(self) -> tuple[DType, ...]:
        """Types in memory of its inputs; those that stay in the machine's memory are left out."""
        return tuple(each.tensor.dtype for each in self.x if each is not None)

    def words(self) -> str:
        """``onnxruntime TopK, ArgMax``."""
        distinct = list(dict.fromkeys(self.operators))
        more = f" +{len(distinct) - _SHOWN}" if len(distinct) > _SHOWN else ""
        return f"onnxruntime {', '.join(distinct[:_SHOWN])}{more}"

    def features(self) -> dict[str, float]:
        """None: nothing is searched."""
        return {}

    def accesses(self) -> Accesses:
        """Refuse: no kernel computes it; see `reads` and `writes`."""
        raise NotImplementedError("ONNX Runtime computes it, and no kernel")

    def reads(self) -> tuple[Access | None, ...]:
        """What it reads of the device's memory."""
        return tuple(None if each is None else each.access for each in self.x)

    def writes(self) -> tuple[Access, ...]:
        """What it writes to the device's memory."""
        return tuple(each.access for each in self.results)

    def traffic(self) -> Traffic:
        """What is copied out of the device's memory and into it."""
        return Traffic(self.moved_bytes(), 0, 0)
