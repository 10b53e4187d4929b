"""Fields of a plan, read strictly."""

from typing import TypeVar

from wpk import codec
from wpk.errors import PlanError

T = TypeVar("T")


def decode(data: object, hint: type[T], path: str) -> T:
    """The value that plain JSON data of a plan describes (see `wpk.codec.decode`).

    Raises:
        PlanError: The data is not what the type says; the message names the field.
    """
    try:
        return codec.decode(data, hint, path)
    except codec.FieldError as error:
        raise wrong(error.path, error.what) from error


def wrong(path: str, what: str) -> PlanError:
    """The error for a field of a plan that is not what it should be."""
    return PlanError(
        f"plan field {path}: {what}",
        fix="write the plan again with wpk optimize; this file is damaged or from another version",
    )
