"""What a caller gives: names, types and shapes checked, free dimensions decided, random inputs."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wpk.dims import evaluate
from wpk.dtypes import DType
from wpk.errors import EngineError
from wpk.plans.plan import Plan, Port

Arrays = dict[str, NDArray[np.generic]]

_DRAW_BELOW = 2
"""Integers with no known limit are masks or type ids more often than anything else."""


def bind_inputs(
    plan: Plan, inputs: Mapping[str, NDArray[np.generic]]
) -> tuple[Arrays, dict[str, int]]:
    """Check the inputs, and read the sizes of the free dimensions from their shapes.

    Raises:
        EngineError: Names, types or shapes do not fit; the message says what is expected.
    """
    require_names("inputs", plan.inputs, inputs)
    arrays: Arrays = {}
    dims: dict[str, int] = {}
    for port in plan.inputs:
        array = np.asarray(inputs[port.name])
        if array.dtype != port.dtype.numpy:
            raise EngineError(
                f"input '{port.name}' has type {array.dtype}, expected {port.dtype.numpy}",
                fix=f"convert it, e.g. array.astype('{port.dtype.numpy}')",
            )
        bind_shape(port, array.shape, dims)
        arrays[port.name] = array
    return arrays, dims


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
            fix=f"give exactly {', '.join(map(_words, ports))}",
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
            f"'{port.name}' has shape {list(shape)}, expected {_words(port)}"
            + (f" with {dims}" if dims else ""),
            fix="give arrays of the plan's shapes, or write a plan for these: wpk optimize --shapes",
        )


def random_inputs(plan: Plan, seed: int, dims: Mapping[str, int] | None = None) -> Arrays:
    """Random inputs: floats from a normal distribution, integers within the port's limit.

    Args:
        plan: Whose inputs.
        seed: The same seed gives the same arrays.
        dims: Sizes of free dimensions; the tuned ones by default.
    """
    rng = np.random.default_rng(seed)
    sizes = {**plan.free, **(dims or {})}
    arrays: Arrays = {}
    for port in plan.inputs:
        shape = tuple(evaluate(size, sizes) for size in port.shape)
        if port.dtype.is_float:
            arrays[port.name] = rng.standard_normal(shape, np.float32).astype(port.dtype.numpy)
        else:
            below = 2 if port.dtype is DType.BOOL else port.draw_below or _DRAW_BELOW
            arrays[port.name] = rng.integers(0, below, shape).astype(port.dtype.numpy)
    return arrays


def _words(port: Port) -> str:
    return f"'{port.name}' {port.dtype}[{', '.join(map(str, port.shape))}]"
