"""What must hold of a plan's values: each lies in its buffer, in a layout that is free of overlaps."""

from collections.abc import Mapping
from math import prod

from wpk.dims import evaluate
from wpk.extent import MAX_SIZE, Extent
from wpk.lowering.program import Value
from wpk.plan.fields import MAX_BYTES, within, wrong
from wpk.plan.plan import Plan
from wpk.plan.regions import Region, region

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
    if extent.free not in free:
        raise wrong(f"{path}.free", f"no dimension is called {extent.free!r}")
    if extent.value != extent.factor * free[extent.free]:
        raise wrong(
            path, f"{extent.value} is not {extent.factor} x {free[extent.free]} ({extent.free})"
        )


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
    _check_logical(plan, value, f"{path}.logical_shape")
    found = region(value.offset, value.dtype.bytes, extents, value.strides, value.padding)
    if found is None:
        raise wrong(f"{path}.strides", f"{value.strides} let elements of {extents} overlap")
    return found


def _check_logical(plan: Plan, value: Value, path: str) -> None:
    """The shape that the caller sees has as many elements, and the free dimension in front."""
    for size in value.logical_shape:
        within(path, size, 1, MAX_SIZE)
    if prod(value.logical_shape) != prod(value.shape):
        raise wrong(path, f"{value.logical_shape} is not as large as {value.shape}")
    free = value.leading.free
    if free is not None and (not value.logical_shape or value.logical_shape[0] % plan.free[free]):
        raise wrong(path, f"{value.logical_shape} does not begin with {free!r}")
