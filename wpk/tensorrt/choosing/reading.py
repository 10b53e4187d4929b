"""JSON that TensorRT and its tools wrote: what else than expected is refused with its place."""

import json
import math
from typing import Any

from wpk.nvinfer import TensorRTError


def parsed(text: str, what: str) -> Any:
    """The document in a text.

    Args:
        text: JSON.
        what: Name of the document, for errors, e.g. ``the profile``.

    Raises:
        TensorRTError: It is no JSON.
    """
    try:
        # TensorRT writes its separators, which are control characters, into strings as they are.
        return json.loads(text, strict=False)
    except ValueError as error:
        raise malformed(what, f"no JSON: {error}") from error


def entries(value: Any, what: str) -> list[Any]:
    """A value that has to be a list.

    Raises:
        TensorRTError: It is none.
    """
    if not isinstance(value, list):
        raise malformed(what, f"{type(value).__name__} in place of a list")
    return value


def text_of(record: dict[str, Any], key: str, what: str) -> str:
    """A field that has to be a string.

    Raises:
        TensorRTError: It is missing or something else.
    """
    value = record.get(key)
    if not isinstance(value, str):
        raise malformed(what, f"{key!r} is {value!r}, not a string")
    return value


def number_of(record: dict[str, Any], key: str, what: str) -> float:
    """A field that has to be a finite number, not negative.

    Raises:
        TensorRTError: It is missing or something else.
    """
    value: Any = record.get(key)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value < 0:
        raise malformed(what, f"{key!r} is {value!r}, not a finite number from 0 on")
    return float(value)


def malformed(what: str, seen: str) -> TensorRTError:
    """The error for a document that is not what TensorRT 10 or 11 writes."""
    return TensorRTError(
        f"{what} is not in a form that TensorRT 10 or 11 writes: {seen}",
        fix="export it again; if it came from TensorRT as it is, report it with the file",
    )
