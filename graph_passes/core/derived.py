"""Arrays that were computed from others before: forms of a model make the same of the same weights.

What is remembered lives as long as all arrays that it was computed from. Passes never change an array in place, and what
they compute of arrays follows from these and from a few numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_Result = TypeVar("_Result")


class _Entry(NamedTuple):
    """A result, and what it was computed from."""

    sources: tuple[weakref.ref[Array], ...]
    result: Any


_entries: dict[Hashable, _Entry] = {}


def derived(what: Hashable, sources: tuple[Array, ...], make: Callable[[], _Result]) -> _Result:
    """Return what is computed of some arrays: what came of it before, where these were the same arrays.

    Args:
        what: Says what is computed, with all numbers that it depends on.
        sources: The arrays, by identity.
        make: Computes it: an array, a tuple of arrays and plain values, or a plain value.
    """
    key = what, tuple(map(id, sources))
    entry = _entries.get(key)
    if entry is not None and all(r() is a for r, a in zip(entry.sources, sources, strict=True)):
        result: _Result = entry.result
        return result
    result = make()
    if not any(np.may_share_memory(a, b) for a in _arrays(result) for b in sources):
        forget = lambda _array: _entries.pop(key, None)  # noqa: E731
        _entries[key] = _Entry(tuple(weakref.ref(each, forget) for each in sources), result)
    return result


def _arrays(result: object) -> Iterator[Array]:
    for each in result if isinstance(result, tuple) else (result,):
        if isinstance(each, np.ndarray):
            yield each
