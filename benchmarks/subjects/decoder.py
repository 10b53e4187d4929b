"""Decoders like Llama in fp16, of any size, whose cache of keys and values is read and written: as ONNX.

The graph has the form in which torch's exporter writes `LlamaForCausalLM` with a cache (see
`hf_llama_cached.script.fixed` in `exporters/kept.zip`) in fp16: RMS normalisation in fp32 between two casts,
rotary embedding by slices, keys and values repeated for the heads that share them, a causal mask.
The residual stream in front of each layer and behind the last is an output, too, as transformers gives it
with ``output_hidden_states``: with it and the cache a layer can be checked alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
EPSILON = 1e-5
THETA = 10000.0
TOKENS, LOGITS = "input_ids", "logits"
EMBEDDING, NORM, HEAD = "model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"

_HALF = TensorProto.FLOAT16


@dataclass(frozen=True)
class Decoder:
    """What a decoder is made of, and what one call of it computes.

    Attributes:
        layers: How many.
        hidden: Elements of the residual stream.
        heads: Of queries.
        kv_heads: Of keys and values, a divisor of `heads`.
        intermediate: Elements between the matrices of the feed-forward part.
        vocabulary: Tokens that there are.
        past: Tokens in the cache that is given.
        new: Tokens that a call adds.
        batch: Sequences.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    intermediate: int
    vocabulary: int
    past: int
    new: int = 1
    batch: int = 1

    @property
    def head(self) -> int:
        """Elements of a head."""
        return self.hidden // self.heads

    def cache_shape(self, length: int) -> tuple[int, int, int, int]:
        """Of the keys, and of the values, of one layer."""
        return self.batch, self.kv_heads, length, self.head

    def weights(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all weights by name; matrices stand as a product reads them: inputs, outputs."""
        found: dict[str, tuple[int, ...]] = {EMBEDDING: (self.vocabulary, self.hidden)}
        for layer in range(self.layers):
            found |= self.weights_of(layer)
        return found | {NORM: (self.hidden,), HEAD: (self.hidden, self.vocabulary)}

    def weights_of(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Those of one layer."""
        wide, narrow, inner = self.hidden, self.kv_heads * self.head, self.intermediate
        shapes: dict[str, tuple[int, ...]] = {
            "input_layernorm": (wide,),
            "self_attn.q_proj": (wide, wide),
            "self_attn.k_proj": (wide, narrow),
            "self_attn.v_proj": (wide, narrow),
            "self_attn.o_proj": (wide, wide),
            "post_attention_layernorm": (wide,),
            "mlp.gate_proj": (wide, inner),
            "mlp.up_proj": (wide, inner),
            "mlp.down_proj": (inner, wide),
        }
        return {weight_name(layer, name): shape for name, shape in shapes.items()}

    def parameters(self) -> int:
        """Elements of all weights."""
        return sum(int(np.prod(shape)) for shape in self.weights().values())

    def rotation(self) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
        """Cosines and sines of the new tokens' positions, of shape (1, 1, new, head)."""
        steps = THETA ** -(np.arange(0, self.head, 2) / self.head)
        angles = np.outer(self.past + np.arange(self.new), np.concatenate([steps, steps]))
        return tuple(f(angles)[None, None].astype(np.float16) for f in (np.cos, np.sin))


LLAMA_7B = Decoder(32, 4096, 32, 32, 11008, 32000, past=512)
"""Sizes of Llama 2 7B: 6.7 G parameters."""


def weight_name(layer: int, name: str) -> str:
    """A layer's weight, as transformers calls it."""
    return f"model.layers.{layer}.{name}.weight"


def past_name(layer: int, what: str) -> str:
    """The cache that is given; ``what`` is ``key`` or ``value``."""
    return f"past_key_values.{layer}.{what}"


def present_name(layer: int, what: str) -> str:
    """The cache that is handed back."""
    return f"present.{layer}.{what}"


def stream_name(layer: int) -> str:
    """The residual stream that a layer is given; that of the first layer that is not there is the last's result."""
    return f"hidden_states.{layer}"


def graph_of(decoder: Decoder) -> onnx.GraphProto:
    """The decoder's nodes, inputs and outputs; its initializers are small ones only, without the weights."""
    writer = _Writer(decoder)
    writer.write()
    d = decoder
    shape = d.batch, d.new
    info = helper.make_tensor_value_info
    inputs = [info(TOKENS, TensorProto.INT64, shape)]
    outputs = [info(LOGITS, _HALF, (*shape, d.vocabulary))]
    for layer, what in ((n, what) for n in range(d.layers) for what in ("key", "value")):
        inputs.append(info(past_name(layer, what), _HALF, d.cache_shape(d.past)))
        outputs.append(info(present_name(layer, what), _HALF, d.cache_shape(d.past + d.new)))
    outputs += [info(stream_name(n), _HALF, (*shape, d.hidden)) for n in range(d.layers + 1)]
    return helper.make_graph(writer.nodes, "decoder", inputs, outputs, writer.constants)


class _Writer:
    """Writes nodes one behind the other."""

    def __init__(self, decoder: Decoder) -> None:
        self.d = decoder
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._known: dict[tuple[bytes, str, tuple[int, ...]], str] = {}

    def write(self) -> None:
        d = self.d
        self.node("Gather", [EMBEDDING, TOKENS], stream_name(0))
        keys = np.arange(d.past + d.new)[None, None, None, :]
        queries = (d.past + np.arange(d.new))[None, None, :, None]
        seen = self.node("LessOrEqual", [self.constant(keys), self.constant(queries)], "/causal")
        zero, never = (self.half(each) for each in (0, -np.inf))
        mask = self.node("Where", [seen, zero, never], "/mask")
        for layer in range(d.layers):
            self.layer(layer, mask)
        normed = self.normed(stream_name(d.layers), NORM, "/model/norm")
        self.node("MatMul", [normed, HEAD], LOGITS)

    def layer(self, layer: int, mask: str) -> None:
        at = f"/model/layers.{layer}"
        weight = {n: weight_name(layer, n) for n in ("input_layernorm", "post_attention_layernorm")}
        x = stream_name(layer)
        normed = self.normed(x, weight["input_layernorm"], f"{at}/input_layernorm")
        mixed = self.attention(layer, normed, mask, f"{at}/self_attn")
        x = self.node("Add", [x, mixed], f"{at}/Add_output_0")
        name = "post_attention_layernorm"
        normed = self.normed(x, weight[name], f"{at}/{name}")
        fed = self.feed_forward(layer, normed, f"{at}/mlp")
        self.node("Add", [x, fed], stream_name(layer + 1))

    def normed(self, x: str, weight: str, at: str) -> str:
        """RMS normalisation: in fp32, but for the product with the weights."""
        wide = self.node("Cast", [x], f"{at}/Cast_output_0", to=TensorProto.FLOAT)
        two, one, epsilon = (self.constant(np.float32(each)) for each in (2, 1, EPSILON))
        squares = self.node("Pow", [wide, two], f"{at}/Pow_output_0")
        mean = self.node("ReduceMean", [squares], f"{at}/ReduceMean_output_0", axes=[-1])
        root = self.node("Add", [mean, epsilon], f"{at}/Add_output_0")
        root = self.node("Sqrt", [root], f"{at}/Sqrt_output_0")
        factor = self.node("Div", [one, root], f"{at}/Div_output_0")
        scaled = self.node("Mul", [wide, factor], f"{at}/Mul_output_0")
        narrow = self.node("Cast", [scaled], f"{at}/Cast_1_output_0", to=_HALF)
        return self.node("Mul", [weight, narrow], f"{at}/Mul_1_output_0")

    def attention(self, layer: int, x: str, mask: str, at: str) -> str:
        d = self.d
        q, k, v = (self.heads(layer, x, name, at) for name in ("q_proj", "k_proj", "v_proj"))
        q, k = (self.rotated(each, f"{at}/{name}") for each, name in ((q, "q"), (k, "k")))
        cached = [
            self.node("Concat", [past_name(layer, what), each], present_name(layer, what), axis=-2)
            for what, each in (("key", k), ("value", v))
        ]
        k, v = (self.repeated(n, f"{at}/{what}") for n, what in zip(cached, "kv", strict=True))
        k = self.node("Transpose", [k], f"{at}/Transpose_3_output_0", perm=[0, 1, 3, 2])
        root = self.half(d.head**-0.25)
        q, k = (
            self.node("Mul", [each, root], f"{at}/{name}_scaled")
            for each, name in ((q, "q"), (k, "k"))
        )
        scores = self.node("MatMul", [q, k], f"{at}/MatMul_output_0")
        scores = self.node("Add", [scores, mask], f"{at}/Add_2_output_0")
        shares = self.node("Softmax", [scores], f"{at}/Softmax_output_0", axis=-1)
        mixed = self.node("MatMul", [shares, v], f"{at}/MatMul_1_output_0")
        mixed = self.node("Transpose", [mixed], f"{at}/Transpose_4_output_0", perm=[0, 2, 1, 3])
        mixed = self.reshaped(mixed, (d.batch, d.new, -1), f"{at}/Reshape_5_output_0")
        weight = weight_name(layer, "self_attn.o_proj")
        return self.node("MatMul", [mixed, weight], f"{at}/o_proj/MatMul_output_0")

    def heads(self, layer: int, x: str, name: str, at: str) -> str:
        """A projection, a head behind the other: (batch, heads, new, elements of a head)."""
        d, weight = self.d, weight_name(layer, f"self_attn.{name}")
        y = self.node("MatMul", [x, weight], f"{at}/{name}/MatMul_output_0")
        y = self.reshaped(y, (d.batch, d.new, -1, d.head), f"{at}/{name}/Reshape_output_0")
        return self.node("Transpose", [y], f"{at}/{name}/Transpose_output_0", perm=[0, 2, 1, 3])

    def rotated(self, x: str, at: str) -> str:
        """Rotary embedding: x cos + (second half negated, first half) sin."""
        half, end = self.d.head // 2, np.iinfo(np.int64).max
        cosines, sines = (self.constant(each) for each in self.d.rotation())
        straight = self.node("Mul", [x, cosines], f"{at}/Mul_output_0")
        first, second = (
            self.node("Slice", [x, *self.integers(*cut, 3, 1)], f"{at}/Slice_{n}_output_0")
            for n, cut in enumerate(((0, half), (half, end)))
        )
        negated = self.node("Neg", [second], f"{at}/Neg_output_0")
        turned = self.node("Concat", [negated, first], f"{at}/Concat_output_0", axis=-1)
        turned = self.node("Mul", [turned, sines], f"{at}/Mul_1_output_0")
        return self.node("Add", [straight, turned], f"{at}/Add_output_0")

    def repeated(self, x: str, at: str) -> str:
        """Keys or values for every head of queries."""
        d = self.d
        times = d.heads // d.kv_heads
        if times == 1:
            return x
        batch, count, length, size = d.cache_shape(d.past + d.new)
        axis = self.constant(np.array([2]))
        x = self.node("Unsqueeze", [x, axis], f"{at}/Unsqueeze_output_0")
        shape = self.constant(np.array([batch, count, times, length, size]))
        x = self.node("Expand", [x, shape], f"{at}/Expand_output_0")
        return self.reshaped(x, (batch, d.heads, length, size), f"{at}/Reshape_output_0")

    def feed_forward(self, layer: int, x: str, at: str) -> str:
        gate, up = (
            self.node("MatMul", [x, weight_name(layer, f"mlp.{n}")], f"{at}/{n}/MatMul_output_0")
            for n in ("gate_proj", "up_proj")
        )
        share = self.node("Sigmoid", [gate], f"{at}/act_fn/Sigmoid_output_0")
        gate = self.node("Mul", [gate, share], f"{at}/act_fn/Mul_output_0")
        both = self.node("Mul", [gate, up], f"{at}/Mul_output_0")
        weight = weight_name(layer, "mlp.down_proj")
        return self.node("MatMul", [both, weight], f"{at}/down_proj/MatMul_output_0")

    def reshaped(self, x: str, shape: tuple[int, ...], output: str) -> str:
        return self.node("Reshape", [x, self.constant(np.array(shape))], output)

    def node(self, kind: str, inputs: list[str], output: str, **attributes: object) -> str:
        self.nodes.append(
            helper.make_node(kind, inputs, [output], f"{output}/{kind}", **attributes)
        )
        return output

    def half(self, value: float) -> str:
        return self.constant(np.float16(value))

    def integers(self, *values: int) -> Iterator[str]:
        return (self.constant(np.array([each])) for each in values)

    def constant(self, value: NDArray[np.generic] | np.generic) -> str:
        array = np.asarray(value)
        key = array.tobytes(), str(array.dtype), array.shape
        if key not in self._known:
            self._known[key] = f"constant_{len(self._known)}"
            self.constants.append(numpy_helper.from_array(array, self._known[key]))
        return self._known[key]
