"""A BERT-like encoder whose products onnxruntime's quantiser put between QuantizeLinear and DequantizeLinear."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_MASKED = np.float32(-1e4)


@dataclass(frozen=True)
class Encoder:
    """Sizes of an encoder; BERT-base has 12 layers, 12 heads and 768 hidden, and words are ids below 30522."""

    layers: int
    heads: int
    hidden: int
    tokens: int
    words: int = 100


class _Writer:
    """Nodes and weights of an encoder."""

    def __init__(self, sizes: Encoder, seed: int) -> None:
        self.sizes, self.rng = sizes, np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []

    def add(self, op: str, *inputs: str, **attrs: object) -> str:
        made = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [made], name=f"n_{made}", **attrs))
        return made

    def held(self, array: NDArray[np.generic]) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def drawn(self, *shape: int, scale: float) -> str:
        return self.held(self.rng.normal(0, scale, shape).astype(np.float32))

    def linear(self, x: str, inner: int, outer: int) -> str:
        product = self.add("MatMul", x, self.drawn(inner, outer, scale=inner**-0.5))
        return self.add("Add", product, self.drawn(outer, scale=0.1))

    def normalised(self, x: str) -> str:
        hidden = self.sizes.hidden
        gain = self.held(self.rng.uniform(0.8, 1.2, hidden).astype(np.float32))
        return self.add("LayerNormalization", x, gain, self.drawn(hidden, scale=0.1), axis=-1)

    def heads(self, x: str, perm: list[int]) -> str:
        s = self.sizes
        shape = self.held(np.array([0, 0, s.heads, s.hidden // s.heads], np.int64))
        return self.add("Transpose", self.add("Reshape", x, shape), perm=perm)

    def attention(self, x: str, mask: str) -> str:
        s = self.sizes
        q, k, v = (self.linear(x, s.hidden, s.hidden) for _ in range(3))
        scores = self.add("MatMul", self.heads(q, [0, 2, 1, 3]), self.heads(k, [0, 2, 3, 1]))
        root = self.held(np.array((s.hidden / s.heads) ** 0.5, np.float32))
        scores = self.add("Add", self.add("Div", scores, root), mask)
        mixed = self.add(
            "MatMul", self.add("Softmax", scores, axis=-1), self.heads(v, [0, 2, 1, 3])
        )
        together = self.add("Transpose", mixed, perm=[0, 2, 1, 3])
        joined = self.add("Reshape", together, self.held(np.array([0, 0, s.hidden], np.int64)))
        return self.linear(joined, s.hidden, s.hidden)

    def layer(self, x: str, mask: str) -> str:
        hidden = self.sizes.hidden
        x = self.normalised(self.add("Add", x, self.attention(x, mask)))
        inner = self.linear(x, hidden, 4 * hidden)
        part = self.add("Erf", self.add("Div", inner, self.held(np.array(2**0.5, np.float32))))
        part = self.add("Add", part, self.held(np.array(1, np.float32)))
        active = self.add("Mul", self.add("Mul", inner, part), self.held(np.array(0.5, np.float32)))
        return self.normalised(self.add("Add", x, self.linear(active, 4 * hidden, hidden)))


def encoder(sizes: Encoder, seed: int = 0) -> onnx.ModelProto:
    """Return the encoder in fp32: ids and a mask of tokens to the last layer's vectors."""
    writer = _Writer(sizes, seed)
    table = writer.drawn(sizes.words, sizes.hidden, scale=1.0)
    x = writer.normalised(writer.add("Gather", table, "ids"))
    away = writer.add("Sub", writer.held(np.array(1, np.float32)), "mask")
    mask = writer.add("Mul", away, writer.held(np.array(_MASKED)))
    for _ in range(sizes.layers):
        x = writer.layer(x, mask)
    shape = [1, sizes.tokens]
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, shape)
    kept = helper.make_tensor_value_info("mask", TensorProto.FLOAT, [1, 1, 1, sizes.tokens])
    y = helper.make_tensor_value_info(x, TensorProto.FLOAT, [*shape, sizes.hidden])
    graph = helper.make_graph(writer.nodes, "encoder", [ids, kept], [y], writer.weights)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def quantised(model: onnx.ModelProto, path: Path, sizes: Encoder, **options: object) -> None:
    """Write the model to ``path`` as onnxruntime quantises it: int8, QDQ, scales of weights by channel."""
    from onnxruntime.quantization import (
        CalibrationDataReader,
        QuantFormat,
        QuantType,
        quantize_static,
    )

    rng = np.random.default_rng(1)

    class Reader(CalibrationDataReader):
        def __init__(self) -> None:
            mask = np.ones((1, 1, 1, sizes.tokens), np.float32)
            drawn = (rng.integers(0, sizes.words, (1, sizes.tokens)) for _ in range(3))
            self._left = iter([{"ids": each, "mask": mask} for each in drawn])

        def get_next(self) -> dict[str, NDArray[np.generic]] | None:
            return next(self._left, None)

    plain = path.with_suffix(".fp32.onnx")
    onnx.save(onnx.shape_inference.infer_shapes(model), plain)
    types = {"activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8}
    quantize_static(
        plain, path, Reader(), quant_format=QuantFormat.QDQ, per_channel=True, **types, **options
    )
