"""What a library answers to a problem, in plain data."""

from dataclasses import dataclass

from wpk.candidate import Configuration
from wpk.libraries.constant_layouts import layout_strides
from wpk.problems import Problem, Tensor


@dataclass(frozen=True)
class LibraryOffer:
    """What a library proposes for a problem.

    Attributes:
        library: Its name.
        version: Its version; empty where it is not installed.
        configurations: Its implementations, best guess first.
        refusals: Why there are none, or not of every form, in words.
    """

    library: str
    version: str
    configurations: tuple[Configuration, ...]
    refusals: tuple[str, ...]


def constant_shape(problem: Problem) -> tuple[int, ...]:
    """Return the logical shape of a constant operand.

    Raises:
        ValueError: The problem has none.
    """
    if problem.constant_shape is None:
        raise ValueError(f"{type(problem).__name__.lower()} has no constant factor")
    return problem.constant_shape


def constant_tensor(problem: Problem, layout: str) -> Tensor:
    """Return a constant operand in memory, over its logical shape.

    Raises:
        ValueError: The problem has none.
    """
    shape, precision = constant_shape(problem), problem.matrix_precision
    if precision is None:
        raise ValueError(f"{type(problem).__name__.lower()} multiplies no constant factor")
    return Tensor(precision.storage, layout_strides(layout, shape))
