"""Valid nodes of operators that wpk does not carry: they must be refused in words."""

import numpy as np

from fuzzing.builder import Builder
from fuzzing.operators.registry import floats, maps, move, one_of
from fuzzing.operators.rows import rows

SIMPLE = ("Det", "NonZero")


@move(*SIMPLE, weight=0.25)
def unknown_function(builder: Builder) -> None:
    """One input."""
    builder.add(one_of(builder, SIMPLE), [floats(builder)])


@move("MaxPool", weight=0.1)
def unknown_window(builder: Builder) -> None:
    """Of feature maps."""
    builder.add_many("MaxPool", [maps(builder, 4)], outputs=2, kernel_shape=[2, 2])


@move("Einsum", "ReverseSequence", weight=0.3)
def unknown_movement(builder: Builder) -> None:
    """Of rows."""
    x = rows(builder, 2, 3)
    match one_of(builder, ("Einsum", "ReverseSequence")):
        case "Einsum":
            letters = "abc"[: x.rank]
            builder.add("Einsum", [x], equation=f"{letters}->{letters[::-1]}")
        case _:
            if x.is_free:
                x = builder.input([3, 2, 4])
            lengths = builder.ints(np.ones(x.arrays[0].shape[1]))
            builder.add("ReverseSequence", [x, lengths])
