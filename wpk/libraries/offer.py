"""What a library answers to a problem, in plain data."""

from dataclasses import dataclass

from wpk.candidate import Configuration
from wpk.libraries.constant_layouts import layout_strides
from wpk.libraries.cudnn_problems import describe, why_not
from wpk.problems import Problem, Tensor

CUDNN = "cuDNN"
"""What plans, stores and reports call the library."""

GRAPH = "graph"
"""Name in a configuration: which description of the problem, counted from 0."""


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


def constant_layout(problem: Problem, configuration: Configuration) -> str | None:
    """How an implementation reads the constant operand; None where there is none.

    Raises:
        ValueError: The library does not compute the problem, or not by such a graph.
    """
    reason = why_not(problem)
    if reason is not None:
        raise ValueError(reason)
    descriptions = describe(problem)
    graph = dict(configuration).get(GRAPH, -1)
    if not 0 <= graph < len(descriptions):
        raise ValueError(f"graph {graph} of {len(descriptions)}")
    return descriptions[graph].layout


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
