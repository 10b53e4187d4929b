"""What was used lately: a dictionary that forgets."""

from collections.abc import Iterator
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """At most so many values by their keys; those that were used longest ago are forgotten first."""

    def __init__(self, most: int) -> None:
        """Begin with none, and keep ``most``."""
        self._most = most
        self._values: dict[K, V] = {}

    def __iter__(self) -> Iterator[V]:
        """All values, the one used longest ago first."""
        return iter(self._values.values())

    @property
    def is_full(self) -> bool:
        """Whether another value would have one forgotten."""
        return len(self._values) >= self._most

    def get(self, key: K) -> V | None:
        """A value, which is now the one used last."""
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value
        return value

    def make_room(self) -> None:
        """Forget a value if another would be one too many."""
        while self.is_full:
            del self._values[next(iter(self._values))]

    def put(self, key: K, value: V) -> None:
        """Keep a value."""
        self._values.pop(key, None)
        self.make_room()
        self._values[key] = value

    def clear(self) -> None:
        """Forget all."""
        self._values.clear()
