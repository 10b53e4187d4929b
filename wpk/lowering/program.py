"""What lowering produces: operators over values that lie at known places in memory."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wpk.control_flow import Ports
from wpk.dims import DimExpr, product
from wpk.dtypes import DType
from wpk.extent import Extent
from wpk.problems import Fallback, Problem


@dataclass(frozen=True)
class Buffer:
    """A piece of device memory that one or several values share.

    Attributes:
        name: Unique name.
        bytes: Size for the free dimensions' values at run time.
    """

    name: str
    bytes: DimExpr


@dataclass(frozen=True)
class Value:
    """A tensor in memory.

    Attributes:
        name: Unique name; that of the ONNX tensor for the model's inputs and outputs.
        dtype: Element type in memory.
        leading: First extent, which may be free. A scalar has extent 1 and shape (1,).
        shape: All extents with the leading one at its tuned value; at least one axis.
        strides: Elements between neighbours along each axis; all constant, because only the
            outermost axis may be free.
        padding: Zero elements after the contiguous axis's last one, before the next row.
        buffer: Name of the buffer it lies in.
        offset: Bytes from the start of the buffer, a multiple of the element's size.
        logical_shape: Shape of the ONNX tensor, with the names of free dimensions (scalars are ()).
    """

    name: str
    dtype: DType
    leading: Extent
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    padding: int
    buffer: str
    offset: int
    logical_shape: tuple[DimExpr, ...]

    @property
    def alignment(self) -> int:
        """Bytes, at most 16, that its address is a multiple of; views of it know what their strides leave of them."""
        sizes = [size for size in (16, 8, 4, 2) if size >= self.dtype.bytes]
        return next((size for size in sizes if self.offset % size == 0), self.dtype.bytes)

    def span(self) -> DimExpr:
        """Return the bytes from its first element to the end of its last row, padding included."""
        inner = sum((n - 1) * s for n, s in zip(self.shape[1:], self.strides[1:], strict=True))
        row = (inner + 1 + self.padding) * self.dtype.bytes
        step = self.strides[0] * self.dtype.bytes
        if self.leading.free is None:
            return (self.leading.value - 1) * step + row
        return product(self.leading.expression, max(step, row))


@dataclass(frozen=True)
class Operator:
    """A fused operator: what one or a few kernels compute.

    Attributes:
        name: Unique, readable name, e.g. ``conv_relu_7``.
        nodes: Names of the model's ONNX nodes that it computes.
        problem: The frozen description of its work.
        inputs: Values and constants in the order of the problem's operator inputs.
        outputs: Values it writes: a kernel one, and perhaps moments of its rows beside it.
        call: Name of the optimized graph's node (a function call or a single node) whose body is
            the operator's reference; empty for a copy that only lowering needs.
        note: Why it exists, where that is not obvious (an explicit copy, a transpose).
    """

    name: str
    nodes: tuple[str, ...]
    problem: Problem
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    call: str
    note: str = ""


@dataclass(frozen=True)
class Program:
    """A model lowered to operators in execution order.

    Attributes:
        inputs: Names of the values that the caller fills.
        outputs: Names of the values that the caller reads.
        values: All activations by name.
        constants: Weights and other constant operands by name, in storage type, ONNX layout; a
            scalar has shape (1,).
        buffers: All buffers by name.
        operators: In execution order.
        free: Free dimensions with their tuned values.
        limits: The smallest and the largest size of those for which such were asked.
        models: What ONNX Runtime executes, by SHA-256.
        kept: Tensors that stay in the machine's memory, since only a run decides their shape, with
            their types.
        kept_outputs: Those of them that the caller reads.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    values: dict[str, Value]
    constants: dict[str, NDArray[np.generic]]
    buffers: dict[str, Buffer]
    operators: tuple[Operator, ...]
    free: dict[str, int]
    limits: dict[str, tuple[int, int]] = field(default_factory=dict)
    models: dict[str, bytes] = field(default_factory=dict)
    kept: dict[str, DType] = field(default_factory=dict)
    kept_outputs: tuple[str, ...] = ()

    @property
    def ports(self) -> tuple[Ports, Ports]:
        """Names, types and shapes of the inputs and of the outputs that lie in the device's memory."""
        sides = [[self.values[name] for name in names] for names in (self.inputs, self.outputs)]
        taken, given = ([(v.name, v.dtype, v.logical_shape) for v in side] for side in sides)
        return taken, given

    @property
    def problems(self) -> list[Problem]:
        """What kernels are to compute, operator by operator."""
        each = (operator.problem for operator in self.operators)
        return [problem for problem in each if not isinstance(problem, Fallback)]


@dataclass(frozen=True)
class NodeRecord:
    """A node of the graph before or after the passes, for reports."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
