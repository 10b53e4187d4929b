"""What checks of a plan's fields have in common: an error that names the field."""

from collections.abc import Iterable, Mapping

from wpk.dims import DimExpr, evaluate
from wpk.errors import EngineError
from wpk.plan.codec import wrong

MAX_BYTES = 2**40
"""No buffer, workspace or weight of a model that fits a GPU is larger."""


def within(path: str, value: int, low: int, high: int) -> None:
    """Refuse a number that is out of its range.

    Raises:
        PlanError: Naming the field.
    """
    if not low <= value <= high:
        raise wrong(path, f"{value} is not within {low} to {high}")


def unique(path: str, names: Iterable[str]) -> None:
    """Refuse a name that stands twice.

    Raises:
        PlanError: Naming the field.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise wrong(path, f"two are called {name!r}")
        seen.add(name)


def at(path: str, size: DimExpr, dims: Mapping[str, int]) -> int:
    """The value of a size.

    Raises:
        PlanError: It has none; names the field.
    """
    try:
        return evaluate(size, dims)
    except EngineError as error:
        raise wrong(path, error.what) from error
