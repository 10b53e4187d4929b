"""What lowering knows beside the graph: the precision asked for, and all constants."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wpk.dtypes import MOST_BYTE_PRODUCTS, DType, Precision, from_numpy, holds_bytes, holds_float8
from wpk.extent import Extent
from wpk.lowering.free_axis import is_free
from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import View, contiguous_strides
from wpk.strided import strided


@dataclass
class Context:
    """What problems are built from, beside the body.

    Attributes:
        precision: The precision asked for; tensors that stayed fp32 are computed in fp32.
        opset: Opset of the optimized graph: what its operators mean.
        constants: Constants by name; lowering adds those that it derives.
    """

    precision: Precision
    opset: int
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)

    def values(self, view: View) -> NDArray[Any] | None:
        """Return the elements of a constant's view with its shape; None for activations.

        None, too, for a constant that a free dimension repeats.
        """
        if view.source not in self.constants or any(map(is_free, view.shape)):
            return None
        flat = np.ascontiguousarray(self.constants[view.source]).reshape(-1)[view.offset :]
        strides = [s * flat.itemsize for s in view.strides]
        return np.ascontiguousarray(strided(flat, view.shape, strides))

    def constant(self, view: View, shape: Sequence[int] | None = None) -> View | None:
        """Return a constant's view as a contiguous constant of its own; None for activations."""
        if view.source not in self.constants or any(map(is_free, view.shape)):
            return None
        original = self.constants[view.source]
        new = tuple(shape) if shape is not None else view.shape
        if original.shape == new and view.strides == contiguous_strides(new):
            return constant_view(view.source, original)
        values = self.values(view)
        assert values is not None
        layout = (new, view.strides, view.offset)
        return self.added(
            f"{view.source}:{'/'.join(_text(part) for part in layout)}", values.reshape(new)
        )

    def compute_precision(self, dtype: DType) -> Precision:
        """Return the precision of products whose weights or second operands have this type."""
        if dtype is DType.FP32:
            return self.precision if self.precision is Precision.TF32 else Precision.FP32
        if dtype in (DType.FP16, DType.BF16):
            return Precision(dtype.value)
        if dtype is DType.FP64:
            return Precision.FP64
        raise RefusedError(f"products of {dtype.value} tensors")

    def product_precision(self, first: View, second: View, terms: int) -> Precision:
        """Return the precision of a product of what lies in memory so.

        Args:
            first: The operand that has the rows, or the pixels.
            second: Weights, or the other operand.
            terms: Products summed for an element of the output.

        Raises:
            RefusedError: The operands are of different types, or of one that is not multiplied.
        """
        weights = self.values(second)
        if first.dtype.is_byte and terms <= MOST_BYTE_PRODUCTS:
            constant = weights is not None and holds_bytes(weights)
            if constant or second.dtype.is_byte:
                return Precision.INT8
        if (
            first.dtype.is_fp8 and self.precision is not Precision.FP32
        ):  # which asks for sums of its own
            constant = weights is not None and holds_float8(weights, first.dtype)
            if constant or second.dtype is first.dtype:
                return Precision(first.dtype.value)
        types = {first.dtype, second.dtype} if weights is None else {second.dtype}
        # Others hold bytes exactly; one may lie in fp32 behind a Cast to the other's.
        narrow = {each for each in types if not each.is_byte and not each.is_fp8} - {
            DType.FP32
        } or {DType.FP32}
        if len(narrow) > 1:
            raise RefusedError(f"a product of {first.dtype.value} and {second.dtype.value} tensors")
        return self.compute_precision(narrow.pop())

    def stored(self, constant: View, precision: Precision) -> View:
        """Return a constant factor as a product of this precision has it in memory: 8 bits as such."""
        if not precision.is_quantised or constant.dtype is precision.storage:
            return constant
        values = self.values(constant)
        assert values is not None
        name = f"{constant.source}:{precision.value}"
        return self.added(name, values.astype(precision.storage.numpy))

    def added(self, name: str, values: NDArray[Any]) -> View:
        """Register a constant under a name that nothing else has; return a view of all of it."""
        view = constant_view(name, values)
        self.constants[name] = values
        return view


def _text(part: int | tuple[int, ...]) -> str:
    return str(part) if isinstance(part, int) else "x".join(map(str, part))


def constant_view(name: str, values: NDArray[Any]) -> View:
    """Return a whole constant as it lies in memory; a scalar has shape (1,)."""
    shape = values.shape or (1,)
    dtype = from_numpy(values.dtype)
    if dtype is None:
        raise RefusedError(f"constant {name!r} has element type {values.dtype}")
    strides = contiguous_strides(shape)
    return View(name, dtype, Extent(shape[0]), shape, strides, constant=True)
