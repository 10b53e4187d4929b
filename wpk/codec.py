"""Frozen dataclasses to plain JSON and back, directed by their type hints and strict.

A dataclass becomes an object with all of its fields, in order, but those with `MAY_LACK` that are as they are by default; where the hint is a union of classes,
or an abstract class, of which any kind may stand there, the object also says its ``type``. Tuples become
arrays, enumerations their values, dimension expressions the form of `wpk.dims.to_json`, infinities and
NaN strings, bytes base64. Reading back refuses unknown, missing and mistyped fields, naming the path of
the field.
"""

import dataclasses
import inspect
import math
import types
import typing
from base64 import b64decode, b64encode
from collections.abc import Iterator
from enum import Enum
from functools import cache
from typing import Any, TypeVar, Union

from wpk import dims

T = TypeVar("T")

MAY_LACK = {"may_lack": True}
"""Metadata of a field that is not written where it has its default: digests of what has none are as they were before."""

_TAG = "type"
_INT_LIMIT = 2**63
_SPECIAL = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


class FieldError(ValueError):
    """Data that is not what its type says. Each reader of a file turns it into its own error.

    Attributes:
        path: The field.
        what: What is wrong with it.
    """

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"{path}: {what}")
        self.path = path
        self.what = what


def encode(value: Any, hint: Any) -> Any:
    """``value`` as plain JSON data, given the type that a reader will expect.

    Raises:
        TypeError: The value does not fit the hint (a bug of the writer).
    """
    if hint == dims.DimExpr:
        return dims.to_json(value)
    if hint == dims.DimExpr | None:
        return None if value is None else dims.to_json(value)
    origin, arguments = _parts(hint)
    if origin in (Union, types.UnionType):
        return _encode_union(value, arguments)
    if origin is tuple:
        return [encode(v, h) for v, h in zip(value, _items(arguments, value), strict=True)]
    if origin is dict:
        return {key: encode(value[key], arguments[1]) for key in sorted(value)}
    if not isinstance(hint, type):
        raise TypeError(f"no JSON form for {hint!r}")
    if dataclasses.is_dataclass(hint):
        if type(value) is not hint:
            raise TypeError(f"expected {hint.__name__}, got {value!r}")
        return _encode_fields(value)
    return _encode_scalar(value, hint)


def _encode_union(value: Any, arguments: tuple[Any, ...]) -> Any:
    if value is None and types.NoneType in arguments:
        return None
    if type(value) in arguments and dataclasses.is_dataclass(value):
        fields = _encode_fields(value)
        return fields if len(_classes(arguments)) == 1 else {_TAG: type(value).__name__, **fields}
    plain = [h for h in arguments if h is not types.NoneType]
    if len(plain) == 1:
        return encode(value, plain[0])
    raise TypeError(f"{value!r} is none of {arguments}")


def _encode_fields(value: Any) -> dict[str, Any]:
    kind: Any = type(value)
    hints, may_lack = _hints(kind), _may_lack(kind)
    there = {name: getattr(value, name) for name in hints}
    return {
        name: encode(each, hints[name])
        for name, each in there.items()
        if name not in may_lack or each != may_lack[name]
    }


def _encode_scalar(value: Any, hint: type) -> Any:
    if issubclass(hint, Enum):
        return hint(value).value
    if hint is float:
        number = float(value)
        return number if math.isfinite(number) else str(number)
    if hint is bytes:
        return b64encode(value).decode()
    if hint in (int, bool, str):
        return hint(value)
    raise TypeError(f"no JSON form for {hint!r}")


def kinds_of(base: Any) -> Iterator[Any]:
    """The classes that derive from an abstract one, and have objects."""
    for kind in base.__subclasses__():
        if not inspect.isabstract(kind):
            yield kind
        yield from kinds_of(kind)


def decode(data: Any, hint: type[T], path: str) -> T:
    """The value that plain JSON data describes.

    Args:
        data: What `encode` made, or what somebody else wrote.
        hint: The type expected.
        path: Name of the field, for messages.

    Raises:
        FieldError: The data is not what the type says; the message names the field.
    """
    value: T = _decode(data, hint, path)
    return value


def _decode(data: Any, hint: Any, path: str) -> Any:
    if hint == dims.DimExpr:
        return _decode_dim(data, path)
    if hint == dims.DimExpr | None:
        return None if data is None else _decode_dim(data, path)
    origin, arguments = _parts(hint)
    if origin in (Union, types.UnionType):
        return _decode_union(data, arguments, path)
    if origin is tuple:
        return _decode_tuple(data, arguments, path)
    if origin is dict:
        _expect(isinstance(data, dict), path, "an object", data)
        return {key: _decode(item, arguments[1], f"{path}.{key}") for key, item in data.items()}
    if dataclasses.is_dataclass(hint):
        return _decode_fields(data, hint, path)
    return _decode_scalar(data, hint, path)


def _decode_dim(data: Any, path: str) -> dims.DimExpr:
    try:
        return dims.from_json(data)
    except ValueError as error:
        raise FieldError(path, str(error)) from error


def _decode_union(data: Any, arguments: tuple[Any, ...], path: str) -> Any:
    if data is None and types.NoneType in arguments:
        return None
    plain = [h for h in arguments if h is not types.NoneType]
    if len(plain) == 1:
        return _decode(data, plain[0], path)
    classes = _classes(arguments)
    _expect(isinstance(data, dict) and _TAG in data, path, "an object with a type", data)
    name = data[_TAG]
    if not isinstance(name, str) or name not in classes:
        raise FieldError(f"{path}.{_TAG}", f"{name!r} is none of {', '.join(sorted(classes))}")
    fields = {key: item for key, item in data.items() if key != _TAG}
    return _decode_fields(fields, classes[name], path)


def _decode_tuple(data: Any, arguments: tuple[Any, ...], path: str) -> tuple[Any, ...]:
    _expect(isinstance(data, list), path, "an array", data)
    hints = _items(arguments, data)
    if len(hints) != len(data):
        raise FieldError(path, f"expected {len(hints)} entries, got {len(data)}")
    return tuple(
        _decode(item, hint, f"{path}[{index}]")
        for index, (item, hint) in enumerate(zip(data, hints, strict=True))
    )


def _decode_fields(data: Any, kind: Any, path: str) -> Any:
    _expect(isinstance(data, dict), path, "an object", data)
    hints = _hints(kind)
    for name in data:
        if name not in hints:
            raise FieldError(f"{path}.{name}", f"unknown field of {kind.__name__}")
    may_lack = _may_lack(kind)
    for name in hints:
        if name not in data and name not in may_lack:
            raise FieldError(f"{path}.{name}", "missing")
    values = {name: _decode(item, hints[name], f"{path}.{name}") for name, item in data.items()}
    for name, value in values.items():
        if name in may_lack and value == may_lack[name]:
            raise FieldError(f"{path}.{name}", f"is {str(value).lower()}, and then is left out")
    try:
        return kind(**values)
    except (KeyError, ValueError, TypeError) as error:
        raise FieldError(path, f"{type(error).__name__}: {error}") from error


def _decode_scalar(data: Any, hint: Any, path: str) -> Any:
    if issubclass(hint, Enum):
        if not isinstance(data, str) or data not in [each.value for each in hint]:
            raise FieldError(path, f"{data!r} is none of {', '.join(each.value for each in hint)}")
        return hint(data)
    if hint is bytes:
        try:
            return b64decode(data, validate=True)
        except (TypeError, ValueError) as error:
            raise FieldError(path, f"no bytes in base64: {error}") from error
    if hint is float:
        if isinstance(data, str) and data in _SPECIAL:
            return _SPECIAL[data]
        _expect(
            isinstance(data, float)
            or (isinstance(data, int) and not isinstance(data, bool) and abs(data) < _INT_LIMIT),
            path,
            "a number",
            data,
        )
        return float(data)
    _expect(
        isinstance(data, hint) and (hint is bool) == isinstance(data, bool),
        path,
        f"{hint.__name__}",
        data,
    )
    if hint is int:
        _expect(abs(data) < _INT_LIMIT, path, "an integer of 64 bits", data)
    return data


def _expect(condition: bool, path: str, expected: str, data: Any) -> None:
    if not condition:
        seen = repr(data)
        raise FieldError(
            path, f"expected {expected}, got {seen[:60]}{'…' if len(seen) > 60 else ''}"
        )


def _parts(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """A hint's origin and arguments; those of an abstract class are its kinds, as of a union."""
    if inspect.isabstract(hint):
        return Union, tuple(kinds_of(hint))
    return typing.get_origin(hint), typing.get_args(hint)


def _items(arguments: tuple[Any, ...], values: Any) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return (arguments[0],) * len(values)
    return arguments


def _classes(arguments: tuple[Any, ...]) -> dict[str, type]:
    return {h.__name__: h for h in arguments if dataclasses.is_dataclass(h) and isinstance(h, type)}


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


@cache
def _may_lack(kind: Any) -> dict[str, Any]:
    """The fields that are left out where they have their defaults, with these."""
    fields = dataclasses.fields(kind)
    return {each.name: each.default for each in fields if each.metadata == MAY_LACK}
