"""Valid nodes of operators that wpk does not carry: they must be refused in words."""

from fuzzing.builder import Builder
from fuzzing.operators.registry import floats, move, one_of
from fuzzing.operators.rows import rows

SIMPLE = ("NonZero",)


@move(*SIMPLE, weight=0.25)
def unknown_function(builder: Builder) -> None:
    """One input."""
    builder.add(one_of(builder, SIMPLE), [floats(builder)])


@move("Einsum", weight=0.3)
def unknown_movement(builder: Builder) -> None:
    """Of rows."""
    x = rows(builder, 2, 3)
    letters = "abc"[: x.rank]
    builder.add("Einsum", [x], equation=f"{letters}->{letters[::-1]}")
