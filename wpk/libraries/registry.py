"""The libraries whose implementations compete with generated kernels."""

from wpk.libraries.cudnn_library import CudnnLibrary
from wpk.libraries.library import Library
from wpk.problems import Problem

LIBRARIES: dict[str, Library] = {each.name: each for each in (CudnnLibrary(),)}
"""By name, in the order in which they are asked."""


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
    """The libraries that can be asked for a problem; what they offer is known on the GPU only."""
    return tuple(name for name, each in LIBRARIES.items() if each.why_not(problem) is None)
