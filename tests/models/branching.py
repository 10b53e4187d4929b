"""A network with branches: an inception-like block, then a residual block with a projection."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray

from wpk.emulator.emulator import Emulator
from wpk.engine.engine import Engine
from wpk.engine.placement import footprint
from wpk.execution import OneByOne, Predecessors, Replay, Work

Arrays = Mapping[str, NDArray[np.generic]]

_POISON = 255

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 16, 9, 7] x) => (float[batch, 24, 9, 7] y)
{
  a0 = Conv(x, wa)  a1 = Relu(a0)  a2 = Conv<pads = [1, 1, 1, 1]>(a1, wb)  a = Relu(a2)
  b0 = Conv(x, wc)  b1 = Sigmoid(b0)  b2 = Conv<pads = [1, 1, 1, 1]>(b1, wd)  b3 = Relu(b2)
  b4 = Conv<pads = [1, 1, 1, 1]>(b3, we)  b = Relu(b4)
  p0 = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x)  p1 = Conv(p0, wf)  p = Relu(p1)
  c = Concat<axis = 1>(a, b, p)
  d0 = Conv<pads = [1, 1, 1, 1]>(c, wg)  d1 = Relu(d0)  d2 = Conv<pads = [1, 1, 1, 1]>(d1, wh)
  s = Conv(c, wi)
  r = Add(d2, s)  y = Relu(r)
}
"""
WEIGHTS = {
    "wa": (8, 16, 1, 1),
    "wb": (16, 8, 3, 3),
    "wc": (8, 16, 1, 1),
    "wd": (24, 8, 3, 3),
    "we": (16, 24, 3, 3),
    "wf": (8, 16, 1, 1),
    "wg": (24, 40, 3, 3),
    "wh": (24, 24, 3, 3),
    "wi": (24, 40, 1, 1),
}


def write_branching(path: Path) -> Path:
    """The network, with drawn weights."""
    rng = np.random.default_rng(7)
    model = onnx.parser.parse_model(MODEL)
    for name, shape in WEIGHTS.items():
        values = (rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(model, path)
    return path


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


class Shuffled(Emulator):
    """Executes captured work in an order drawn among those that its predecessors allow.

    Attributes:
        drawn: The orders so far.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.drawn: list[tuple[int, ...]] = []
        self._pick: Callable[[Sequence[int]], int] = np.random.default_rng(seed).choice

    def capture(self, works: Sequence[Work], predecessors: Predecessors | None = None) -> OneByOne:
        assert predecessors is not None
        order: list[int] = []
        waiting = set(range(len(works)))
        while waiting:
            ready = sorted(n for n in waiting if not waiting & set(predecessors[n]))
            order.append(int(self._pick(ready)))
            waiting.remove(order[-1])
        self.drawn.append(tuple(order))
        return super().capture([works[number] for number in order])
