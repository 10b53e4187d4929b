"""What must hold of a plan's values: each lies in its buffer, in a layout that is free of overlaps."""

from collections.abc import Mapping, Sequence
from math import prod

from wpk.dims import DimExpr, DimNode, DimOperation, evaluate, names_of
from wpk.extent import MAX_SIZE, Extent
from wpk.lowering.program import Value
from wpk.plan.fields import MAX_BYTES, at, within, wrong
from wpk.plan.plan import Plan
from wpk.plan.regions import Region, region

MAX_NAMES = 8
"""Free dimensions that decide one size together."""

MAX_PADDING = 2**20
"""Elements behind a row; lowering pads to 16 bytes."""


def check_extent(free: Mapping[str, int], extent: Extent, path: str) -> None:
    """Check that an extent is what its free dimension makes of it.

    Raises:
        PlanError: Naming the field.
    """
    within(f"{path}.value", extent.value, 1, MAX_BYTES)
    within(f"{path}.factor", extent.factor, 1, MAX_BYTES)
    if extent.free is None:
        return
    within(f"{path}.free, names", len(extent.names), 1, MAX_NAMES)
    for name in extent.names:
        if name not in free:
            raise wrong(f"{path}.free", f"no dimension is called {name!r}")
    if not _is_product(extent.free):
        raise wrong(f"{path}.free", "is more than a product of free dimensions")
    size = evaluate(extent.free, free)
    if extent.value != extent.factor * size:
        words = ", ".join(extent.names)
        raise wrong(path, f"{extent.value} is not {extent.factor} x {size} ({words})")


def _is_product(expression: DimExpr, numbers: bool = False) -> bool:
    """Tell whether an expression multiplies names, and maybe numbers, and does nothing else."""
    if isinstance(expression, DimNode):
        factors = (expression.left, expression.right)
        multiplies = expression.operation is DimOperation.PROD
        return multiplies and all(_is_product(each, numbers) for each in factors)
    return isinstance(expression, str) or numbers


def check_values(plan: Plan, dims: Mapping[str, int]) -> dict[str, Region]:
    """Check every value for one assignment of the free dimensions.

    Returns:
        The bytes of each within its buffer, padding included.

    Raises:
        PlanError: Naming the field.
    """
    return {
        name: _check_value(plan, value, dims, f"plan.values.{name}")
        for name, value in plan.values.items()
    }


def is_empty(value: Value) -> bool:
    """Tell whether a tensor has no elements; its place, of one, is neither read nor written."""
    return 0 in value.logical_shape


def _check_value(plan: Plan, value: Value, dims: Mapping[str, int], path: str) -> Region:
    if value.buffer not in plan.buffers:
        raise wrong(f"{path}.buffer", f"no buffer is called {value.buffer!r}")
    if not value.shape or len(value.shape) != len(value.strides):
        raise wrong(f"{path}.strides", f"{value.strides} for shape {value.shape}")
    for size in value.shape:
        within(f"{path}.shape", size, 1, MAX_BYTES)
    for stride in value.strides:
        within(f"{path}.strides", stride, 0, MAX_BYTES)
    within(f"{path}.padding", value.padding, 0, MAX_PADDING)
    check_extent(plan.free, value.leading, f"{path}.leading")
    if value.shape[0] != value.leading.value:
        raise wrong(f"{path}.leading", f"{value.leading.value}, the shape begins {value.shape[0]}")
    if value.offset % value.dtype.bytes:
        raise wrong(f"{path}.offset", f"{value.offset} is not aligned to {value.dtype.bytes} bytes")
    size = evaluate(plan.buffers[value.buffer].bytes, dims)
    within(f"{path}.offset", value.offset, 0, size)
    extents = (evaluate(value.leading.expression, dims), *value.shape[1:])
    last = sum((n - 1) * s for n, s in zip(extents, value.strides, strict=True))
    end = value.offset + (last + 1 + value.padding) * value.dtype.bytes
    if end > size:
        raise wrong(path, f"ends at byte {end} of buffer '{value.buffer}', which has {size}")
    names, field = value.leading.names, f"{path}.logical_shape"
    if is_empty(value):
        if extents != (1,):
            raise wrong(field, f"{value.logical_shape} is empty, its place has {extents} elements")
    else:
        check_shape(value.logical_shape, prod(extents), names, dims, field)
    found = region(value.offset, value.dtype.bytes, extents, value.strides, value.padding)
    if found is None:
        raise wrong(f"{path}.strides", f"{value.strides} let elements of {extents} overlap")
    return found


def check_shape(
    shape: Sequence[DimExpr],
    elements: int,
    names: Sequence[str],
    dims: Mapping[str, int],
    path: str,
) -> None:
    """Check that a tensor's shape as ONNX has it holds as many elements as its memory.

    Args:
        shape: The tensor's.
        elements: In memory.
        names: Free dimensions that decide their number, each as often as it is multiplied with.
        dims: Values of the free dimensions.
        path: The field.

    Raises:
        PlanError: Naming the field.
    """
    sizes = [at(path, size, dims) for size in shape]
    for size in sizes:
        within(path, size, 1, MAX_SIZE)
    decided = sorted(name for size in shape for name in names_of(size))
    if decided != sorted(names):
        by = ", ".join(names) or "nothing"
        raise wrong(path, f"is decided by {', '.join(decided) or 'nothing'}, its memory by {by}")
    if not all(_is_product(size, numbers=True) for size in shape):
        raise wrong(path, "is more than products of free dimensions and numbers")
    if prod(sizes) != elements:
        raise wrong(path, f"{tuple(sizes)} is not as large as {elements} elements")
