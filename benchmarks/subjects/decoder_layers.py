"""What a decoder computes, layer by layer, in whatever precision its weights are given: formulas, no ONNX.

They are written for arrays of NumPy and tensors of torch alike. The rotation is that of the model's fp16
constants; everything else is rounded as the arrays' type says. With float64 weights they are what an
engine is held to: each layer on the engine's own input of that layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from subjects.decoder import EPSILON, HEAD, NORM, Decoder, weight_name


@dataclass(frozen=True)
class LayerResult:
    """What a layer gives.

    Attributes:
        key: Of the new tokens: (batch, kv_heads, new, elements of a head).
        value: Likewise.
        middle: The residual stream between attention and feed-forward: (batch, new, hidden).
        stream: That behind the layer.
    """

    key: Any
    value: Any
    middle: Any
    stream: Any


@dataclass(frozen=True)
class DecoderLayers:
    """A decoder's formulas.

    Attributes:
        decoder: Its sizes.
        weight: Gives a weight by its name, in the type to compute in.
        place: Gives a NumPy array in that type, and where the weights are.
        fetch: Gives what was computed as a NumPy array.
        library: The module `numpy` or `torch`.
    """

    decoder: Decoder
    weight: Callable[[str], Any]
    place: Callable[[NDArray[Any]], Any]
    fetch: Callable[[Any], NDArray[Any]]
    library: Any

    def layer(self, number: int, x: Any, past_key: Any, past_value: Any) -> LayerResult:
        """A layer of the stream that it is given and of its cache."""
        d, join = self.decoder, self.library.concatenate

        def product(values: Any, name: str) -> Any:
            return values @ self.weight(weight_name(number, name))

        def heads(values: Any, name: str) -> Any:
            wide = product(values, f"self_attn.{name}")
            return wide.reshape(d.batch, d.new, -1, d.head).swapaxes(1, 2)

        normed = self._normed(x, weight_name(number, "input_layernorm"))
        query, key = (self._rotated(heads(normed, name)) for name in ("q_proj", "k_proj"))
        value = heads(normed, "v_proj")
        mixed = self._attention(query, join((past_key, key), 2), join((past_value, value), 2))
        middle = x + product(mixed, "self_attn.o_proj")
        normed = self._normed(middle, weight_name(number, "post_attention_layernorm"))
        gate = product(normed, "mlp.gate_proj")
        fed = gate / (1 + self.library.exp(-gate)) * product(normed, "mlp.up_proj")
        return LayerResult(key, value, middle, middle + product(fed, "mlp.down_proj"))

    def logits(self, x: Any) -> Any:
        """Scores of all tokens, of the stream behind the last layer."""
        return self._normed(x, NORM) @ self.weight(HEAD)

    def _normed(self, x: Any, name: str) -> Any:
        power = (x * x).mean(-1)[..., None]
        return x / (power + EPSILON) ** 0.5 * self.weight(name)

    def _rotated(self, x: Any) -> Any:
        half = self.decoder.head // 2
        cosines, sines = (self.place(each) for each in self.decoder.rotation())
        turned = self.library.concatenate((-x[..., half:], x[..., :half]), -1)
        return x * cosines + turned * sines

    def _attention(self, query: Any, key: Any, value: Any) -> Any:
        """Of all heads that share keys and values at once: (batch, new, hidden)."""
        d, library = self.decoder, self.library
        grouped = query.reshape(d.batch, d.kv_heads, -1, d.new, d.head)
        scores = grouped @ key[:, :, None].swapaxes(-1, -2) / d.head**0.5
        length = d.past + d.new
        for place in range(d.new - 1):  # the keys of later tokens
            scores[..., place, d.past + place + 1 : length] = -float("inf")
        powers = library.exp(scores - library.amax(scores, -1)[..., None])
        shares = powers / powers.sum(-1)[..., None]
        mixed = (shares @ value[:, :, None]).reshape(d.batch, d.heads, d.new, d.head)
        return mixed.swapaxes(1, 2).reshape(d.batch, d.new, d.hidden)


def in_numpy(decoder: Decoder, weights: Mapping[str, NDArray[np.float16]]) -> DecoderLayers:
    """The formulas in float64 on the CPU."""

    def wide(array: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(array, np.float64)

    return DecoderLayers(decoder, lambda name: wide(weights[name]), wide, wide, np)
