"""Which operators must follow which others, when only memory decides."""

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

from wpk.lowering.program import Operator, Value

WINDOW = 32
"""Steps of the given order among which some may run at the same time: more than any module of a network
has, and few enough that the memory of parts that are listed one after the other, as the networks of an
ensemble, does not add up."""


class Order:
    """Steps follow each other where one writes what the other touches; the others are independent.

    Each step also follows those that stand `WINDOW` or more in front of it.

    Attributes:
        steps: The operators, in an order in which they can run one after the other.
        predecessors: For each step the steps that it follows directly: no other stands between.
    """

    def __init__(self, values: Mapping[str, Value], steps: Sequence[Operator]) -> None:
        """Find what of the given order must be kept.

        Args:
            values: All values by name; other operands are constants.
            steps: The operators, in an order that is right.
        """
        self.steps = tuple(steps)
        self._before: list[int] = []  # a bit for each step that is done before
        direct: list[tuple[int, ...]] = []
        earlier: dict[str, list[tuple[int, Value, bool]]] = {}
        for step, operator in enumerate(steps):
            own = [
                (values[name], writes)
                for names, writes in ((operator.inputs, False), (operator.outputs, True))
                for name in names
                if name in values
            ]
            followed = {
                other
                for value, writes in own
                for other, there, wrote in earlier.get(value.buffer, ())
                if (writes or wrote) and may_overlap(value, there)
            }
            behind = reduce(or_, (self._before[other] for other in followed), 0)
            left = mask(range(step + 1 - WINDOW)) & ~(behind | mask(followed))
            while left:
                other = left.bit_length() - 1  # the last one: others may stand behind it
                followed.add(other)
                behind |= self._before[other]
                left &= ~(behind | 1 << other)
            direct.append(tuple(sorted(other for other in followed if not behind >> other & 1)))
            self._before.append(behind | mask(direct[-1]))
            for value, writes in own:
                earlier.setdefault(value.buffer, []).append((step, value, writes))
        self.predecessors: tuple[tuple[int, ...], ...] = tuple(direct)

    def all_before(self, step: int) -> int:
        """Return the steps that are done before a step begins, as a set of bits."""
        return self._before[step]

    def longest_chain(self, lengths: Sequence[float]) -> float:
        """Return the largest sum of lengths over steps that follow each other.

        Args:
            lengths: A length of each step, e.g. its time; none is negative.
        """
        ends: list[float] = []
        for length, others in zip(lengths, self.predecessors, strict=True):
            ends.append(length + max((ends[other] for other in others), default=0))
        return max(ends, default=0)

    def ordered(self, one: int, other: int) -> bool:
        """Whether one of two different steps is done before the other begins."""
        return bool(self._before[other] >> one & 1 or self._before[one] >> other & 1)


def mask(steps: Iterable[int]) -> int:
    """Return steps as a set of bits."""
    return reduce(or_, (1 << step for step in steps), 0)


def may_overlap(one: Value, other: Value) -> bool:
    """Whether two values can share a byte.

    False is proven: they lie in different buffers, in ranges apart, or are different columns of
    the same rows, as the tensors that a concatenation joins.
    """
    if one.buffer != other.buffer:
        return False
    if _is_behind(one, other) or _is_behind(other, one):
        return False
    columns, others = _columns(one), _columns(other)
    if columns is None or others is None or columns.pitch != others.pitch:
        return True
    return columns.begin < others.end and others.begin < columns.end


def _is_behind(one: Value, other: Value) -> bool:
    """Whether one begins where the other has ended, at all sizes."""
    size = other.span()
    return isinstance(size, int) and other.offset + size <= one.offset


class _Columns(NamedTuple):
    """Bytes from row to row, and where in each row a value begins and ends."""

    pitch: int
    begin: int
    end: int


def _columns(value: Value) -> _Columns | None:
    """The part of its rows that a value takes; None where it has none, or reaches into the next."""
    item = value.dtype.bytes
    extents = [2 if axis == 0 and value.leading.free else n for axis, n in enumerate(value.shape)]
    steps = [(stride * item, n) for n, stride in zip(extents, value.strides, strict=True) if n > 1]
    inner = [n for stride, n in steps if stride == item]
    outer = [stride for stride, _ in steps if stride > item]
    if len(inner) > 1 or not outer or len(inner) + len(outer) < len(steps):
        return None
    pitch = min(outer)
    begin = value.offset % pitch
    end = begin + ((inner[0] if inner else 1) + value.padding) * item
    if end > pitch or any(stride % pitch for stride in outer):
        return None
    return _Columns(pitch, begin, end)
