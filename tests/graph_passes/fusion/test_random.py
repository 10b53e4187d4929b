"""Random graphs mean the same after all of precision, fusion and layout, and bodies keep to one output.

Each graph is drawn operator by operator over feature maps of few sizes, so that residuals, shared
values, views, movements and broadcasts meet in ways that nobody wrote down.
"""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.dtypes import Precision
from wpk.graph_passes import infer_shapes, pass_groups, run_passes
from wpk.graph_passes.core.functions import calls

UNIT_ROUNDOFF = 2.0**-24
NODES = 18


class Drawing:
    """A graph under construction; every value is a feature map [N, C, 6, 6] or [N, C, 1, 1]."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.graph = gs.Graph(opset=20, ir_version=10)
        x = gs.Variable("x", np.float32, ["N", 4, 6, 6])
        z = gs.Variable("z", np.float32, ["N", 6, 6, 4])
        self.graph.inputs = [x, z]
        self.values = [x, self.node("Transpose", [z], x.shape, perm=[0, 3, 1, 2])]

    def node(self, op, inputs, shape, **attrs):
        number = len(self.graph.nodes)
        output = gs.Variable(f"t{number}", np.float32, list(shape))
        self.graph.nodes.append(gs.Node(op, f"n{number}", attrs, inputs, [output]))
        return output

    def constant(self, array):
        return gs.Constant(f"k{self.rng.integers(1 << 40)}", array)

    def weight(self, *shape):
        return self.constant(self.rng.standard_normal(shape).astype(np.float32) / 2)

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def pick(self):
        """Prefer recent values, so that chains grow."""
        index = len(self.values) - 1 - int(self.rng.geometric(0.5) - 1)
        return self.values[max(index, 0)]

    def step(self) -> None:
        moves = [
            self.conv, self.depthwise, self.unary, self.unary, self.binary, self.binary,
            self.scalar, self.pool, self.squeeze, self.concat, self.split, self.shuffle,
            self.turn, self.softmax, self.pad, self.product,
        ]  # fmt: skip
        self.values.append(moves[self.rng.integers(len(moves))](self.pick()))

    def conv(self, x):
        kernel = 3 if x.shape[2] == 6 else 1
        weights = self.weight(4, x.shape[1], kernel, kernel)
        return self.node("Conv", [x, weights], ["N", 4, *x.shape[2:]], pads=[kernel // 2] * 4)

    def depthwise(self, x):
        weights = self.weight(x.shape[1], 1, 1, 1)
        return self.node("Conv", [x, weights, self.weight(x.shape[1])], x.shape, group=x.shape[1])

    def unary(self, x):
        op = self.rng.choice(["Relu", "Sigmoid", "Tanh", "HardSwish", "Gelu", "Neg", "Softplus"])
        return self.node(str(op), [x], x.shape)

    def binary(self, x):
        others = [v for v in self.values if v.shape[1] == x.shape[1]]
        y = others[self.rng.integers(len(others))]
        shape = x.shape if x.shape[2] == 6 else y.shape
        return self.node(str(self.rng.choice(["Add", "Mul", "Sub", "Max"])), [x, y], shape)

    def scalar(self, x):
        scale = self.constant(np.array(self.rng.uniform(0.5, 1.5), np.float32))
        return self.node(str(self.rng.choice(["Mul", "Add", "Div"])), [x, scale], x.shape)

    def pool(self, x):
        kernel = 3 if x.shape[2] == 6 else 1
        op = str(self.rng.choice(["MaxPool", "AveragePool"]))
        pads = [kernel // 2] * 4
        return self.node(op, [x], x.shape, kernel_shape=[kernel, kernel], pads=pads)

    def squeeze(self, x):
        return self.node("GlobalAveragePool", [x], [*x.shape[:2], 1, 1])

    def concat(self, x):
        mates = [v for v in self.values if v.shape[2] == x.shape[2]]
        y = mates[self.rng.integers(len(mates))]
        joined = self.node("Concat", [x, y], ["N", x.shape[1] + y.shape[1], *x.shape[2:]], axis=1)
        return joined if joined.shape[1] <= 16 else self.conv(joined)

    def split(self, x):
        half = [*x.shape[:1], x.shape[1] // 2, *x.shape[2:]]
        if x.shape[1] % 2:
            return self.unary(x)
        first = self.node("Split", [x], half, axis=1, num_outputs=2)
        second = gs.Variable(f"{first.name}_b", np.float32, half)
        first.inputs[0].outputs = [first, second]
        return self.node("Concat", [second, first], x.shape, axis=1)

    def shuffle(self, x):
        if x.shape[1] % 2:
            return self.unary(x)
        shape = ["N", 2, x.shape[1] // 2, *x.shape[2:]]
        parts = self.node("Reshape", [x, self.ints(0, *shape[1:])], shape)
        swapped = [shape[0], shape[2], shape[1], *shape[3:]]
        turned = self.node("Transpose", [parts], swapped, perm=[0, 2, 1, 3, 4])
        return self.node("Reshape", [turned, self.ints(0, *x.shape[1:])], x.shape)

    def turn(self, x):
        return self.node("Transpose", [x], x.shape, perm=[0, 1, 3, 2])

    def softmax(self, x):
        return self.node("Softmax", [x], x.shape, axis=int(self.rng.choice([1, -1])))

    def pad(self, x):
        if x.shape[2] == 1:
            return self.unary(x)
        pads = self.ints(0, 0, 1, 0, 0, 0, -1, 0)
        return self.node("Pad", [x, pads], x.shape)

    def product(self, x):
        rows = self.node("Transpose", [x], ["N", *x.shape[2:], x.shape[1]], perm=[0, 2, 3, 1])
        made = self.node("MatMul", [rows, self.weight(x.shape[1], 4)], [*rows.shape[:3], 4])
        return self.node("Transpose", [made], ["N", 4, *x.shape[2:]], perm=[0, 3, 1, 2])

    def finish(self) -> onnx.ModelProto:
        loose = [v for v in self.values[2:] if not v.outputs][:3]
        self.graph.outputs = loose or [self.values[-1]]
        infer_shapes(self.graph)
        self.graph.cleanup().toposort()
        self.graph.inputs = [t for t in self.graph.inputs if t.outputs]
        return gs.export_onnx(self.graph)


def draw(seed: int) -> onnx.ModelProto:
    """Draw one model."""
    drawing = Drawing(seed)
    for _ in range(NODES):
        drawing.step()
    return drawing.finish()


@pytest.mark.parametrize("simplify", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_keep_their_numbers(run_model, seed, simplify):
    before = draw(seed)
    graph = gs.import_onnx(before)
    groups = pass_groups(Precision.FP32)
    for group in groups if simplify else groups[1:]:
        run_passes(graph, group)
    for group in groups[1:]:
        assert sum(record.rewritten for record in run_passes(graph, group)) == 0
    assert all(len(function.outputs) == 1 for _, function in calls(graph))
    after = gs.export_onnx(graph)
    onnx.checker.check_model(after, full_check=True)
    rng = np.random.default_rng(seed)
    shapes = {t.name: [2, *t.shape[1:]] for t in graph.inputs}
    feeds = {n: rng.standard_normal(shape).astype(np.float32) for n, shape in shapes.items()}
    for old, new in zip(run_model(before, feeds), run_model(after, feeds), strict=True):
        # Eighteen steps, sums of at most 16 * 9 terms, each step at most doubling an error.
        bound = 2 * 144 * NODES * UNIT_ROUNDOFF * max(1.0, float(np.abs(old).max()))
        np.testing.assert_allclose(new, old, rtol=0, atol=bound)
