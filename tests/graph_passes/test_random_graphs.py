"""Random graphs, simplified, compute what they computed.

Each is grown from nodes that passes look for (constants beside products, normalisations, views,
splits of concatenations, activations), connected at random, so that patterns come half-finished,
shared, and next to graph outputs.
"""

from collections.abc import Callable

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.graph_passes import infer_shapes, run_passes
from wpk.graph_passes.catalogue import simplifying_passes
from wpk.graph_passes.core import GraphEditor

NODES = 14


class _Grower:
    """Adds random nodes to a graph of four-dimensional and matrix-like tensors."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        x = gs.Variable("x", np.dtype(np.float32), ["n", 4, 6, 6])
        self.graph = gs.Graph([], [x], [], opset=int(self.rng.choice([13, 17, 20])), ir_version=9)
        self.editor = GraphEditor(self.graph)
        self.tensors: list[gs.Variable] = [x]

    def grow(self) -> gs.Graph:
        """Return the finished graph; two of its inner tensors may be outputs too."""
        rules: list[Callable[[gs.Variable], None]] = [
            self._constant_operation, self._constant_operation, self._convolution,
            self._convolution, self._norm, self._activation, self._sum, self._split_and_join,
            self._transposes, self._flat_product, self._mean, self._pad_and_pool, self._gelu,
        ]  # fmt: skip
        for _ in range(NODES):
            source = self.tensors[
                int(self.rng.integers(max(0, len(self.tensors) - 4), len(self.tensors)))
            ]
            rules[int(self.rng.integers(len(rules)))](source)
        picks = {len(self.tensors) - 1, *self.rng.integers(1, len(self.tensors), 2).tolist()}
        self.graph.outputs = [self.tensors[index] for index in sorted(picks)]
        return self.graph

    def _random(self, *shape: int, scale: float = 1.0) -> gs.Constant:
        array = self.rng.standard_normal(shape) * scale
        return self.editor.constant("c", np.asarray(array, np.float32))

    def _add(self, op: str, *inputs: gs.Tensor, **attrs: object) -> gs.Variable:
        output = self.editor.add(op, inputs, like=inputs[0], name="t", attrs=attrs)
        output.shape = None
        infer_shapes(_closed(self.graph, output))
        self.tensors.append(output)
        return output

    def _channels(self, x: gs.Variable) -> int:
        return int(x.shape[1])

    def _constant_operation(self, x: gs.Variable) -> None:
        shapes: list[tuple[int, ...]] = [(), (1,), (self._channels(x), *[1] * (len(x.shape) - 2))]
        constant = self._random(*shapes[int(self.rng.integers(3))])
        if self.rng.random() < 0.3:
            neutral = np.full(constant.shape, self.rng.choice([0.0, 1.0, 2.0]), np.float32)
            constant = self.editor.constant("c", neutral)
        op = str(self.rng.choice(["Add", "Mul", "Sub"]))
        inputs = [x, constant] if self.rng.random() < 0.7 else [constant, x]
        self._add(op, *inputs)

    def _convolution(self, x: gs.Variable) -> None:
        if len(x.shape) != 4:
            return self._flat_product(x)
        channels = self._channels(x)
        group = 2 if channels % 2 == 0 and self.rng.random() < 0.3 else 1
        weight = self._random(4, channels // group, 3, 3, scale=0.3)
        bias = [self._random(4)] if self.rng.random() < 0.5 else []
        if min(x.shape[2:]) < 3 or self.rng.random() < 0.6:
            self._add("Conv", x, weight, *bias, pads=[1, 1, 1, 1], group=group)
        else:
            self._add("Conv", x, weight, *bias, group=group)
        return None

    def _norm(self, x: gs.Variable) -> None:
        channels = self._channels(x)
        variance = self.editor.constant(
            "v", self.rng.random(channels, np.float32) + np.float32(0.5)
        )
        vectors = [self._random(channels) for _ in range(3)]
        self._add("BatchNormalization", x, *vectors, variance)

    def _activation(self, x: gs.Variable) -> None:
        op = str(self.rng.choice(["Relu", "Sigmoid", "Identity", "Neg", "Clip", "Dropout"]))
        if op != "Clip":
            self._add(op, x)
            return
        low, high = (self.editor.constant("c", np.array(v, np.float32)) for v in (0, 6))
        three = self.editor.constant("c", np.array(3, np.float32))
        clip = self._add("Clip", self._add("Add", x, three), low, high)
        self._add(
            "Mul", x, self._add("Mul", clip, self.editor.constant("c", np.array(1 / 6, np.float32)))
        )

    def _sum(self, x: gs.Variable) -> None:
        others = [t for t in self.tensors if t.shape == x.shape]
        self._add("Add", x, others[int(self.rng.integers(len(others)))])

    def _split_and_join(self, x: gs.Variable) -> None:
        joined = self._add("Concat", x, x, axis=1)
        bounds = [0, self._channels(x)] if self.rng.random() < 0.5 else [1, 1 + self._channels(x)]
        inputs = [self.editor.constant("i", np.array([v], np.int64)) for v in (*bounds, 1)]
        self._add("Slice", joined, *inputs)

    def _transposes(self, x: gs.Variable) -> None:
        perm = [int(axis) for axis in self.rng.permutation(len(x.shape))]
        turned = self._add("Transpose", x, perm=perm)
        active = self._add("Relu", turned)
        back = [perm.index(axis) for axis in range(len(perm))]
        self._add("Transpose", active, perm=back)
        self.tensors = [t for t in self.tensors if t is not turned and t is not active]

    def _flat_product(self, x: gs.Variable) -> None:
        flat = self._add("Flatten", x, axis=1)
        product = self._add("MatMul", flat, self._random(int(flat.shape[1]), 8, scale=0.1))
        if self.rng.random() < 0.5:
            self._add("Add", product, self._random(8))

    def _mean(self, x: gs.Variable) -> None:
        if len(x.shape) != 4:
            return self._activation(x)
        if self.graph.opset >= 18:
            axes = self.editor.constant("i", np.array([2, 3], np.int64))
            self._add("ReduceMean", x, axes, keepdims=1)
        else:
            self._add("ReduceMean", x, axes=[2, 3], keepdims=1)
        return None

    def _pad_and_pool(self, x: gs.Variable) -> None:
        if len(x.shape) != 4 or min(x.shape[2:]) < 3:
            return self._activation(x)
        pads = self.editor.constant("i", np.array([0, 0, 1, 0, 0, 0, 1, 1], np.int64))
        padded = self._add("Pad", x, pads)
        op = str(self.rng.choice(["MaxPool", "AveragePool"]))
        self._add(op, padded, kernel_shape=[3, 3])
        return None

    def _gelu(self, x: gs.Variable) -> None:
        root, one, half = (
            self.editor.constant("c", np.array(v, np.float32)) for v in (0.5**0.5, 1, 0.5)
        )
        shifted = self._add("Add", self._add("Erf", self._add("Mul", x, root)), one)
        self._add("Mul", self._add("Mul", x, shifted), half)


def _closed(graph: gs.Graph, output: gs.Variable) -> gs.Graph:
    graph.outputs = [output]
    return graph


@pytest.mark.parametrize("seed", range(24))
def test_simplified_graphs_compute_the_same(seed, export, run_model):
    graph = _Grower(seed).grow()
    before = export(graph)
    onnx.checker.check_model(before)
    after_graph = gs.import_onnx(before)
    run_passes(after_graph, simplifying_passes())
    after = export(after_graph)
    assert len(after.graph.node) <= len(before.graph.node)
    for batch in (1, 3):
        x = np.random.default_rng(seed).standard_normal((batch, 4, 6, 6)).astype(np.float32)
        olds, news = run_model(before, {"x": x}), run_model(after, {"x": x})
        for old, new in zip(olds, news, strict=True):
            # Up to 30 layers, each a sum of at most 512 terms in blocks, which err by log2(512)
            # roundings (Higham, eq. 4.6) on both sides; errors grow no faster than values do.
            bound = 2 * 30 * 9 * 2.0**-24 * float(np.abs(old).max(initial=1.0))
            assert old.shape == new.shape
            np.testing.assert_allclose(new, old, rtol=0.0, atol=bound)
