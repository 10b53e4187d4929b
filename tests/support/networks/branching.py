"""A network with branches: an inception-like block, then a residual block with a projection."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx

from wpk.emulator import Emulator
from wpk.execution import OneByOne, Predecessors, Work

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
