"""Replays of an engine's steps, one after the other or as captured, and what they write over poison."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from wpk.engine import Engine
from wpk.engine.placement import footprint
from wpk.execution import Replay

Arrays = Mapping[str, NDArray[np.generic]]

_POISON = 255


def one_after_the_other(engine: Engine, dims: Mapping[str, int] | None = None) -> Replay:
    """An engine's steps as a graph in which each follows the one in front."""
    steps = engine.bind(dims).steps
    return engine.device.capture([work for step in steps for work in step])


def outputs_of(
    engine: Engine,
    replay: Replay,
    inputs: Sequence[Arrays],
    times: int,
    dims: Mapping[str, int] | None = None,
) -> list[tuple[bytes, ...]]:
    """What a replay of an engine's steps writes over poison, so many times, on inputs in turn.

    Args:
        engine: Whose steps.
        replay: Of them.
        inputs: Of the model.
        times: How often.
        dims: Sizes of the free dimensions, of replay and inputs; the tuned ones by default.
    """
    bound, plan = engine.bind(dims), engine.plan
    places = [
        (bound.address(port.name), footprint(plan.values[port.name], dims or plan.free))
        for port in plan.outputs
    ]
    found = []
    for turn in range(times):
        engine.run(inputs[turn % len(inputs)])  # leaves the input where the replay reads it
        for address, size in places:
            engine.device.fill(address, size, _POISON)
        replay.replay()
        found.append(tuple(engine.device.read(*place).tobytes() for place in places))
    return found
