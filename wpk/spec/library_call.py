"""A library's implementation in a spec."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LibraryCall:
    """What a library computes an operator by.

    Attributes:
        library: Its name, e.g. ``cuDNN``.
        version: The library's, e.g. ``9.19.0``.
        workspace_bytes: Scratch memory that the implementation asks for.
        inputs: Numbers of the operator's inputs, in the order in which the recipe reads them.
        recipe: What the library makes the implementation of: `wpk.libraries.library.Library.recipe`.
    """

    library: str
    version: str
    workspace_bytes: int
    inputs: tuple[int, ...]
    recipe: bytes
