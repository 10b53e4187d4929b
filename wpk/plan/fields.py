"""Fields of a plan, read and checked: every error names the field."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from wpk.codec import FieldError
from wpk.codec import decode as decode_json
from wpk.dims import DimExpr, evaluate
from wpk.errors import EngineError, PlanError

MAX_BYTES = 2**40
"""No buffer, workspace or weight of a model that fits a GPU is larger."""

T = TypeVar("T")


def decode(data: object, hint: type[T], path: str) -> T:
    """The value that plain JSON data of a plan describes (see `wpk.codec.decode`).

    Raises:
        PlanError: The data is not what the type says; the message names the field.
    """
    try:
        return decode_json(data, hint, path)
    except FieldError as error:
        raise wrong(error.path, error.what) from error


def wrong(path: str, what: str) -> PlanError:
    """The error for a field of a plan that is not what it should be."""
    return PlanError(
        f"plan field {path}: {what}",
        fix="write the plan again with wpk optimize; this file is damaged or from another version",
    )


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
