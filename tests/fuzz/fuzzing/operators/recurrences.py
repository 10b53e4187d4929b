"""LSTM, GRU and RNN, as exporters write them: with views around them."""

import numpy as np

from fuzzing.builder import Builder, Rejected, Value
from fuzzing.operators.registry import move, one_of
from fuzzing.operators.rows import rows

_GATES = {"GRU": 3, "RNN": 1, "LSTM": 4}
_DIRECTIONS = ("forward", "reverse", "bidirectional")


@move("GRU", "RNN", "LSTM", weight=0.6)
def recurrent(builder: Builder) -> None:
    """Of sequences; behind a Transpose where the batch lies in front."""
    x = rows(builder, 3)
    if x.dtype != np.float32:
        raise Rejected("of another type")
    if x.is_free or builder.random.random() < 0.3:
        x = builder.add("Transpose", [x], perm=[1, 0, 2])
    steps, _, width = x.arrays[0].shape
    op, hidden = one_of(builder, tuple(_GATES)), one_of(builder, (3, 4, 8))
    direction = one_of(builder, _DIRECTIONS)
    ways, gates = 1 + (direction == "bidirectional"), _GATES[op] * hidden
    inputs: list[Value | None] = [
        x,
        builder.weight(ways, gates, width),
        builder.weight(ways, gates, hidden),
        builder.weight(ways, 2 * gates) if builder.random.random() < 0.5 else None,
    ]
    batch = x.shape[1] if isinstance(x.shape[1], int) else None
    if batch is not None and builder.random.random() < 0.5:
        lengths = [builder.random.randint(1, steps) for _ in range(batch)]
        inputs.append(builder.ints(lengths, np.int32))
    if batch is not None and builder.random.random() < 0.5:
        inputs += [None] * (5 - len(inputs))
        inputs.append(builder.input([ways, batch, hidden]))
    made = builder.add_many(
        op,
        inputs,
        outputs=2,
        hidden_size=hidden,
        direction=direction,
        clip=one_of(builder, (None, 0.75)),
        linear_before_reset=builder.random.randint(0, 1) if op == "GRU" else None,
    )
    if builder.random.random() < 0.5:
        flat = builder.add("Transpose", [made[0]], perm=[0, 2, 1, 3])
        builder.add("Reshape", [flat, builder.ints([0, 0, ways * hidden])])
