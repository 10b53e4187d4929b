"""The libraries whose implementations compete with generated kernels."""

from wpk.libraries.cudnn_library import CudnnLibrary
from wpk.libraries.library import Library
from wpk.libraries.tensorrt_library import TensorRTLibrary
from wpk.problems import Problem

LIBRARIES: dict[str, Library] = {each.name: each for each in (CudnnLibrary(), TensorRTLibrary())}
"""By name, in the order in which they are asked."""


def asked_libraries() -> tuple[str, ...]:
    """The libraries that take part here."""
    return tuple(name for name, each in LIBRARIES.items() if each.is_asked())


def find_library(name: str) -> Library:
    """The library that a plan names.

    Raises:
        ValueError: There is none of this name.
    """
    try:
        return LIBRARIES[name]
    except KeyError:
        raise ValueError(f"there is no library {name!r}, only {', '.join(LIBRARIES)}") from None


def askable(problem: Problem) -> tuple[str, ...]:
    """The libraries that are asked for a problem; what they offer is known on the GPU only."""
    return tuple(n for n in asked_libraries() if LIBRARIES[n].why_not(problem) is None)
