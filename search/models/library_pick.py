"""A library's implementation, picked for a problem beside generated schedules."""

from dataclasses import dataclass

from wpk.execution import LibraryImage
from wpk.performance.bound import Bound
from wpk.search.models.record import SearchRecord


@dataclass(frozen=True)
class LibraryPick:
    """An implementation that ran correctly.

    Attributes:
        image: Which one.
        workspace_bytes: Scratch memory that it needs.
        bound: Of the problem.
        record: What the static search had to say of the problem.
    """

    image: LibraryImage
    workspace_bytes: int
    bound: Bound
    record: SearchRecord
