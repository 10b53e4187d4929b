"""Constants that passes compute: rounded once to their type, and known exactly beside it.

What a pass makes of weights is a float64 number, which its type in the graph cannot hold. The next
pass that reads the constant goes on from the exact numbers, so that a chain of rewrites rounds once
and not once a link; and a rewritten graph can be compared with the original in float64 as if nothing
had been rounded (`wpk.checks.pass_check`).
"""

from collections.abc import Callable, Hashable, Sequence

import ml_dtypes
import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import DTypeLike, NDArray

from wpk.dtypes import is_float
from wpk.file_arrays import LARGE_BYTES, in_file
from wpk.graph_passes.core.derived import derived

Array = NDArray[np.generic]

_FIRST = 4096

_CLOSE = 64
"""Roundings that a number may be off where ONNX Runtime computed it: special functions are, by some."""


class ExactConstant(gs.Constant):  # type: ignore[misc]
    """A constant whose exact values its type does not hold.

    Attributes:
        exact: The values in a wider type, of the constant's shape.
    """

    def __init__(self, name: str, rounded: Array, exact: Array) -> None:
        """Keep both; ``rounded`` is what the graph holds."""
        super().__init__(name, in_file(rounded))
        self.exact = in_file(exact)

    def copy(self) -> "ExactConstant":
        """Return a constant of the same values, as copies of graphs hold."""
        copied = super().copy()
        copied.__class__ = ExactConstant
        copied.exact = self.exact
        return copied  # type: ignore[no-any-return]


def know_exactly(constant: gs.Constant, exact: Array) -> None:
    """Keep what the values of a constant were before somebody else rounded them, if they were.

    Args:
        constant: Becomes an `ExactConstant`, unless it holds the values themselves, or others.
        exact: In a wider type, of the constant's shape.
    """
    held: Array = constant.values
    if exact.dtype == held.dtype or not (is_float(held.dtype) or held.dtype == ml_dtypes.bfloat16):
        return
    near = _CLOSE * float(ml_dtypes.finfo(held.dtype).eps)  # type: ignore[no-untyped-call]
    wide = held.astype(exact.dtype)
    if np.array_equal(wide, exact, equal_nan=True):
        return
    if np.allclose(wide, exact, near, near, equal_nan=True):
        constant.__class__ = ExactConstant
        constant.exact = in_file(exact)


def rounded_constant(
    name: str, values: Array, dtype: DTypeLike, exact: Array | None = None
) -> gs.Constant:
    """Return a constant of a type, rounded to nearest even; what is too large becomes infinite.

    Args:
        name: Of the tensor.
        values: What is rounded.
        dtype: NumPy's type of the constant in the graph.
        exact: What the values would be if nothing had been rounded before; ``values`` by default.
    """
    exact, dtype = values if exact is None else exact, np.dtype(dtype)
    rounded, is_exact = derived(
        ("rounded", dtype), (values, exact), lambda: _rounded(values, dtype, exact)
    )
    return gs.Constant(name, rounded) if is_exact else ExactConstant(name, rounded, exact)


def derived_constant(
    name: str,
    what: Hashable,
    sources: tuple[Array, ...],
    make: Callable[[], Array],
    dtype: DTypeLike,
) -> gs.Constant:
    """Return a constant of a type that is computed of some arrays, once for the same arrays; see `derived`.

    Args:
        name: Of the tensor.
        what: Says what is computed, with all numbers that it depends on.
        sources: The arrays.
        make: Computes it, unrounded.
        dtype: NumPy's type of the constant in the graph.
    """

    def made() -> tuple[Array, Array | None]:
        values = make()
        rounded, is_exact = _rounded(values, np.dtype(dtype), values)
        return rounded, None if is_exact else in_file(values)

    rounded, exact = derived((what, np.dtype(dtype)), sources, made)
    return gs.Constant(name, rounded) if exact is None else ExactConstant(name, rounded, exact)


def _rounded(values: Array, dtype: np.dtype, exact: Array) -> tuple[Array, bool]:
    """Values in a type, and whether it holds the exact ones."""
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype, copy=values.nbytes < LARGE_BYTES)
    is_exact = rounded.dtype == exact.dtype or _are_equal(rounded, exact)
    return in_file(rounded), is_exact


def _are_equal(rounded: Array, exact: Array) -> bool:
    """Whether rounding changed nothing; weights mostly differ among the first of them."""
    first: Array = rounded.flat[:_FIRST].astype(exact.dtype)
    if not np.array_equal(first, exact.flat[:_FIRST]):
        return False
    return bool(np.array_equal(rounded.astype(exact.dtype), exact))


def exact_values(constant: gs.Constant) -> Array:
    """Return the values of a constant before they were rounded, where that is known."""
    if isinstance(constant, ExactConstant):
        return constant.exact
    array: Array = constant.values
    return array


def unrounded(constant: gs.Constant) -> Array:
    """Return the values of a constant that another type is to hold.

    They are the exact ones where the graph holds nothing but their rounding. Numbers that a pass chose
    otherwise stay as they are chosen: a sum that makes up for how weights were rounded.
    """
    exact = exact_values(constant)
    held: Array = constant.values
    if exact is held:
        return exact
    with np.errstate(over="ignore"):
        return np.where(exact.astype(held.dtype) == held, exact, held)


def converted_constant(name: str, constant: gs.Constant, dtype: DTypeLike) -> gs.Constant:
    """Return a constant of another type that holds what another constant does (`unrounded`).

    Args:
        name: Of the new tensor.
        constant: The old one.
        dtype: NumPy's type of the new one.
    """
    exact, wanted = exact_values(constant), np.dtype(dtype)
    rounded, is_exact = derived(
        ("converted", wanted),
        (exact, constant.values),
        lambda: _rounded(np.asarray(unrounded(constant), order="C"), wanted, exact),
    )
    return gs.Constant(name, rounded) if is_exact else ExactConstant(name, rounded, exact)


def moved_constant(name: str, constant: gs.Constant, move: Callable[[Array], Array]) -> gs.Constant:
    """Return a constant that holds the same elements in another order.

    Args:
        name: Of the new tensor.
        constant: The old one.
        move: Permutes, reshapes or repeats elements, whatever their type.
    """
    moved = _moved(constant.values, move)
    if isinstance(constant, ExactConstant):
        return ExactConstant(name, moved, _moved(constant.exact, move))
    return gs.Constant(name, moved)


def _moved(array: Array, move: Callable[[Array], Array]) -> Array:
    """The moved elements, as they then lie; of a view the same array each time."""
    view = move(array)

    def laid_out() -> Array:
        return in_file(np.ascontiguousarray(view).reshape(view.shape))

    if not np.may_share_memory(view, array):
        return laid_out()
    start = view.ctypes.data - array.ctypes.data
    return derived(("moved", start, view.shape, view.strides), (array,), laid_out)


def joined_constant(name: str, constants: Sequence[gs.Constant], axis: int) -> gs.Constant:
    """Return a constant that holds the elements of several of one type, one behind the other along an axis."""
    held = np.concatenate([each.values for each in constants], axis)
    if any(isinstance(each, ExactConstant) for each in constants):
        exact = np.concatenate([exact_values(each) for each in constants], axis)
        return ExactConstant(name, held, exact)
    return gs.Constant(name, in_file(held))
