"""Valid nodes of operators that wpk does not carry: they must be refused in words."""

import numpy as np

from fuzzing.builder import Builder, Rejected
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


@move("GRU", "RNN", "LSTM", weight=0.15)
def recurrent(builder: Builder) -> None:
    """As exporters write them: with a Slice or a Squeeze behind."""
    x = rows(builder, 3)
    if x.is_free:
        x = builder.input([3, 2, 4])
    op, width, hidden = one_of(builder, ("GRU", "RNN", "LSTM")), x.arrays[0].shape[-1], 4
    gates = {"GRU": 3, "RNN": 1, "LSTM": 4}[op] * hidden
    w, r = builder.weight(1, gates, width), builder.weight(1, gates, hidden)
    if x.dtype != np.float32:
        raise Rejected("of another type")
    y = builder.add_many(op, [x, w, r], outputs=2, hidden_size=hidden)[0]
    builder.add("Slice", [y, *(builder.ints([n]) for n in (0, 1, 1))])


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
