"""Moves by name: what each adds, how often it is drawn, and helpers that moves share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from fuzzing.builder import Builder, Rejected, Value

T = TypeVar("T")

Move = Callable[[Builder], None]


@dataclass(frozen=True)
class Entry:
    """A move.

    Attributes:
        name: The operator that it draws, or the pattern.
        draw: Adds it.
        weight: How often, beside the others.
        operators: Operators that it may add.
    """

    name: str
    draw: Move
    weight: float
    operators: tuple[str, ...]


MOVES: list[Entry] = []


def move(*operators: str, weight: float = 1.0, name: str = "") -> Callable[[Move], Move]:
    """Register a move; its name is that of the function, where none is given."""

    def register(draw: Move) -> Move:
        MOVES.append(Entry(name or draw.__name__, draw, weight, operators))
        return draw

    return register


def pick(builder: Builder, fits: Callable[[Value], bool] = lambda _: True) -> Value:
    """A value that fits, a recent one rather than an old one.

    Raises:
        Rejected: There is none.
    """
    found = [value for value in builder.values if fits(value)]
    if not found:
        raise Rejected("no value fits")
    if builder.random.random() < 0.25:
        return builder.random.choice(found)
    steps = min(
        builder.random.expovariate(0.7), len(found) - 1
    )  # infinitely many where a 1 is drawn
    return found[len(found) - 1 - int(steps)]


def floats(builder: Builder, *ranks: int) -> Value:
    """A value of floating point numbers, of one of the ranks (any, where none is given)."""
    return pick(builder, lambda v: v.is_float and (not ranks or v.rank in ranks))


def maps(builder: Builder, *ranks: int) -> Value:
    """A feature map: [n, c, w], [n, c, h, w]; an input is added where there is none."""
    wanted = ranks or (3, 4, 4, 4)
    try:
        return pick(builder, lambda v: v.is_float and v.rank in wanted and len(v.inner) > 1)
    except Rejected:
        return feature_map(builder, builder.random.choice(wanted))


def feature_map(builder: Builder, rank: int = 4) -> Value:
    """A new input with channels and places."""
    space = [builder.random.choice(SPACES) for _ in range(rank - 2)]
    return builder.input([batch(builder), builder.random.choice(CHANNELS), *space])


def batch(builder: Builder) -> int | str:
    """The first size of an input: that of the others, where there are any."""
    if builder.inputs and builder.random.random() < 0.9:
        first = builder.inputs[0].shape[:1]
        return first[0] if first else 1
    return builder.random.choice(["N", "N", 1, 2, 3])


CHANNELS = (1, 3, 4, 8, 16)
SPACES = (1, 5, 6, 8)
LENGTHS = (1, 4, 7)
WIDTHS = (4, 8, 12)


def axis_of(builder: Builder, value: Value, first: int = 0) -> int:
    """An axis, from the front or from behind."""
    if value.rank <= first:
        raise Rejected("no axis")
    axis = builder.random.randrange(first, value.rank)
    return axis - value.rank if builder.random.random() < 0.5 else axis


def some_axes(builder: Builder, value: Value, first: int = 0) -> list[int]:
    """One or several axes, in any order and sign; rather not the batch."""
    last = value.rank
    if last <= first:
        raise Rejected("no axis")
    begin = first if first + 1 >= last or builder.random.random() < 0.12 else first + 1
    count = builder.random.randint(1, last - begin)
    axes = builder.random.sample(range(begin, last), count)
    return [a - last if builder.random.random() < 0.4 else a for a in axes]


def maybe(builder: Builder, value: object, chance: float = 0.5) -> object:
    """The value, or None: the attribute is left out."""
    return value if builder.random.random() < chance else None


def one_of(builder: Builder, choices: Sequence[T]) -> T:
    """A choice."""
    return builder.random.choice(list(choices))
