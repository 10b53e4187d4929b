"""What a caller gives: names, types and shapes checked, free dimensions decided, random inputs."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wpk.dims import evaluate
from wpk.dtypes import DType
from wpk.errors import EngineError
from wpk.free_memory import free_bytes
from wpk.plan import Plan, Port

Arrays = dict[str, NDArray[np.generic]]

_DRAWN_BYTES = 16
"""Bytes of an element while it is drawn: 64 bits at most for drawing it, and as many for what is given."""

_DRAWN = {
    DType.INT8: (-128, 128),
    DType.UINT8: (0, 256),
    DType.INT16: (-(2**15), 2**15),
    DType.UINT16: (0, 2**16),
    DType.UINT32: (0, 2**32),
    DType.UINT64: (0, 2**63),
}
"""The range of drawn integers. Models compute with these, which come in all values; int32 and int64
with no known limit are masks or type ids more often than anything else."""


class TakesInputs(Protocol):
    """A plan, or what will become one.

    Attributes:
        inputs: Its inputs.
        free: Free dimensions with their tuned values.
    """

    @property
    def inputs(self) -> tuple[Port, ...]: ...

    @property
    def free(self) -> Mapping[str, int]: ...


def bind_inputs(
    ports: Sequence[Port], inputs: Mapping[str, NDArray[np.generic]]
) -> tuple[Arrays, dict[str, int]]:
    """Check the inputs, and read the sizes of the free dimensions from their shapes.

    Args:
        ports: What is expected.
        inputs: The arrays by name.

    Raises:
        EngineError: Names, types or shapes do not fit; the message says what is expected.
    """
    require_names("inputs", ports, inputs)
    arrays: Arrays = {}
    dims: dict[str, int] = {}
    for port in ports:
        try:
            array = np.asarray(inputs[port.name])
        except (ValueError, TypeError, RuntimeError) as error:
            raise EngineError(
                f"input '{port.name}' is no array: {error}", fix=f"give {port}"
            ) from error
        if port.dtype.is_fp8 and array.dtype == np.dtype("V1"):  # as files have it
            array = array.view(port.dtype.numpy)
        if array.dtype != port.dtype.numpy:
            raise EngineError(
                f"input '{port.name}' has type {array.dtype}, expected {port.dtype.numpy}",
                fix=f"convert it, e.g. array.astype('{port.dtype.numpy}')",
            )
        bind_shape(port, array.shape, dims)
        arrays[port.name] = array
    return arrays, dims


def require_mapping(what: str, arrays: object) -> None:
    """Check that arrays are given by name.

    Raises:
        EngineError: They are not.
    """
    if not isinstance(arrays, Mapping):
        raise EngineError(
            f"{what} are given as {type(arrays).__name__}, not by name",
            fix="give a dictionary of arrays, e.g. engine.run({'x': array})",
        )


def all_dims(plan: TakesInputs, dims: Mapping[str, int] | None) -> dict[str, int]:
    """Sizes of all free dimensions: those given, else the tuned ones.

    Raises:
        EngineError: There is no such dimension, or the size is none.
    """
    given = {} if dims is None else dims
    require_mapping("sizes of free dimensions", given)
    for name, size in given.items():
        if name not in plan.free:
            raise EngineError(
                f"the plan has no free dimension {name!r}",
                fix=f"its free dimensions: {', '.join(plan.free) or 'none'}",
            )
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise EngineError(
                f"{name!r} is given the size {size!r}", fix="give an int that is at least 1"
            )
    return {**plan.free, **{name: int(size) for name, size in given.items()}}


def require_limits(plan: Plan, dims: Mapping[str, int]) -> None:
    """Check that sizes lie where the plan was written for.

    Raises:
        EngineError: One does not.
    """
    for name, (smallest, largest) in plan.limits.items():
        if not smallest <= dims[name] <= largest:
            raise EngineError(
                f"{name!r} has the size {dims[name]}, the plan was written for {smallest} to {largest}",
                fix="write a plan for more sizes: wpk optimize --shapes NAME:MIN:OPT:MAX",
            )


def require_names(what: str, ports: Sequence[Port], arrays: Mapping[str, object]) -> None:
    """Check that there is one array for each port.

    Args:
        what: ``inputs`` or ``outputs``.
        ports: What the plan has.
        arrays: What is given, by name.

    Raises:
        EngineError: One is missing or unknown.
    """
    names = [port.name for port in ports]
    unknown, missing = sorted(set(arrays) - set(names)), sorted(set(names) - set(arrays))
    if unknown or missing:
        raise EngineError(
            f"{what} do not fit the plan: missing {missing}, unknown {unknown}",
            fix=f"give exactly {', '.join(map(str, ports))}",
        )


def bind_shape(port: Port, shape: tuple[int, ...], dims: dict[str, int]) -> None:
    """Compare a shape with a port's, and note the sizes of free dimensions.

    Args:
        port: What the plan has.
        shape: What is given.
        dims: Sizes that are known; those of this shape are added.

    Raises:
        EngineError: It does not fit.
    """
    fits = len(shape) == len(port.shape)
    for size, expected in zip(shape, port.shape, strict=False):
        if isinstance(expected, str):
            fits = fits and size >= 1 and dims.setdefault(expected, size) == size
        else:
            fits = fits and size == evaluate(expected, dims)
    if not fits:
        raise EngineError(
            f"'{port.name}' has shape {list(shape)}, expected {port}"
            + (f" with {dims}" if dims else ""),
            fix="give arrays of the plan's shapes, or write a plan for these: wpk optimize --shapes",
        )


def require_values(ports: Sequence[Port], inputs: Mapping[str, NDArray[np.generic]]) -> None:
    """Check that integers which index the model's tables lie within them.

    Raises:
        EngineError: One does not.
    """
    for port in ports:
        array, limit = np.asarray(inputs[port.name]), port.draw_below
        if limit and array.size and not -limit <= int(array.min()) <= int(array.max()) < limit:
            raise EngineError(
                f"input '{port.name}' holds numbers from {array.min()} to {array.max()}; the model's "
                f"tables take {-limit} to {limit - 1}",
                fix="give indices that the model knows",
            )


def random_inputs(plan: TakesInputs, seed: int, dims: Mapping[str, int] | None = None) -> Arrays:
    """Random inputs: floats from a normal distribution, integers within the port's limit.

    Args:
        plan: Whose inputs.
        seed: The same seed gives the same arrays.
        dims: Sizes of free dimensions; the tuned ones by default.

    Raises:
        EngineError: This machine's memory does not hold them.
    """
    rng = np.random.default_rng(seed)
    sizes = {**plan.free, **(dims or {})}
    arrays: Arrays = {}
    for port in plan.inputs:
        shape = tuple(evaluate(size, sizes) for size in port.shape)
        _require_memory(port, shape)
        if port.dtype.is_float or port.dtype.is_fp8:
            arrays[port.name] = rng.standard_normal(shape, np.float32).astype(port.dtype.numpy)
        else:
            drawn = rng.integers(*_limits(port), shape).astype(port.dtype.numpy)
            arrays[port.name] = (
                np.where(drawn == 0, drawn.dtype.type(1), drawn) if port.divides else drawn
            )
    return arrays


def _limits(port: Port) -> tuple[int, int]:
    """The least integer to draw for a port, and the first that is too large."""
    if port.dtype is DType.BOOL:
        return 0, 2
    if port.draw_below:
        return 0, port.draw_below
    return _DRAWN.get(port.dtype, (0, 2))


def _require_memory(port: Port, shape: tuple[int, ...]) -> None:
    needed, free = prod(shape) * _DRAWN_BYTES, free_bytes()
    if free is not None and needed > free:
        raise EngineError(
            f"random values for {port} take {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB "
            "of this machine's memory are free",
            fix="use a machine with more memory",
        )
