"""A decoder of torch's own operators in fp16, with a cache that is read and written: what a user of PyTorch would run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from subjects.decoder import (
    EMBEDDING,
    EPSILON,
    HEAD,
    LOGITS,
    NORM,
    TOKENS,
    Decoder,
    past_name,
    present_name,
    stream_name,
    weight_name,
)
from subjects.decoder_layers import DecoderLayers
from subjects.decoder_weights import data_of, places

from rows.torch_baselines import WARM_UPS

Arrays = Mapping[str, NDArray[np.generic]]


class TorchDecoder:
    """The weights on a device, matrices as `torch.nn.Linear` keeps them: outputs, inputs."""

    def __init__(self, decoder: Decoder, path: Path, device: str) -> None:
        """Read the weights of an ONNX file.

        Args:
            decoder: Its sizes.
            path: The ONNX file that `subjects.decoder_weights.write` wrote.
            device: As torch calls it.
        """
        import torch

        self._decoder, self._device = decoder, device
        data, size = data_of(path), torch.float16.itemsize
        count = data.stat().st_size // size
        mapped = torch.from_file(str(data), size=count, dtype=torch.float16)
        self._weights: dict[str, Any] = {}
        for name, (offset, shape) in places(decoder).items():
            start = offset // size
            weight = mapped[start : start + int(np.prod(shape))].view(shape).to(device)
            self._weights[name] = weight.T.contiguous() if _is_matrix(name, weight) else weight
        cosines, sines = (torch.from_numpy(each).to(device) for each in decoder.rotation())
        self._rotation = cosines, sines
        seen = torch.ones(decoder.new, decoder.past + decoder.new, dtype=torch.bool, device=device)
        self._mask = None if decoder.new == 1 else seen.tril(decoder.past)

    def in_float64(self) -> DecoderLayers:
        """The decoder's formulas in float64, on the same weights and device."""
        import torch

        def weight(name: str) -> Any:
            found = self._weights[name]
            return (found.T if _is_matrix(name, found) else found).double()

        def place(array: NDArray[Any]) -> Any:
            return torch.from_numpy(np.ascontiguousarray(array)).to(self._device).double()

        def fetch(tensor: Any) -> NDArray[Any]:
            array: NDArray[Any] = tensor.cpu().numpy()
            return array

        return DecoderLayers(self._decoder, weight, place, fetch, torch)

    def placed(self, inputs: Arrays) -> dict[str, Any]:
        """Inputs on the device."""
        import torch

        return {name: torch.from_numpy(array).to(self._device) for name, array in inputs.items()}

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """All outputs of the ONNX file by name, of inputs by name."""
        from torch.nn import functional

        found: dict[str, Any] = {}
        x = found[stream_name(0)] = functional.embedding(inputs[TOKENS], self._weights[EMBEDDING])
        for number in range(self._decoder.layers):
            x = found[stream_name(number + 1)] = self._layer(number, x, inputs, found)
        found[LOGITS] = functional.linear(self._normed(x, NORM), self._weights[HEAD])
        return found

    def _layer(self, number: int, x: Any, inputs: Mapping[str, Any], found: dict[str, Any]) -> Any:
        import torch
        from torch.nn import functional

        d = self._decoder

        def product(values: Any, name: str) -> Any:
            return functional.linear(values, self._weights[weight_name(number, name)])

        normed = self._normed(x, weight_name(number, "input_layernorm"))
        query, key, value = (
            product(normed, f"self_attn.{name}_proj")
            .view(d.batch, d.new, -1, d.head)
            .transpose(1, 2)
            for name in "qkv"
        )
        for what, new in (("key", self._rotated(key)), ("value", value)):
            whole = torch.cat((inputs[past_name(number, what)], new), 2)
            found[present_name(number, what)] = whole
        mixed = functional.scaled_dot_product_attention(
            self._rotated(query),
            *(found[present_name(number, what)] for what in ("key", "value")),
            attn_mask=self._mask,
            enable_gqa=d.kv_heads != d.heads,
        )
        mixed = mixed.transpose(1, 2).reshape(d.batch, d.new, d.hidden)
        x = x + product(mixed, "self_attn.o_proj")
        normed = self._normed(x, weight_name(number, "post_attention_layernorm"))
        fed = functional.silu(product(normed, "mlp.gate_proj")) * product(normed, "mlp.up_proj")
        return x + product(fed, "mlp.down_proj")

    def _normed(self, x: Any, name: str) -> Any:
        from torch.nn import functional

        return functional.rms_norm(x, (self._decoder.hidden,), self._weights[name], EPSILON)

    def _rotated(self, x: Any) -> Any:
        import torch

        half, (cosines, sines) = self._decoder.head // 2, self._rotation
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * cosines + turned * sines


class TorchDecoderGraph:
    """One call of a decoder, captured in a CUDA graph that is started on a given stream."""

    def __init__(self, decoder: TorchDecoder, inputs: Arrays, stream: int) -> None:
        """Warm up and capture."""
        import torch

        self._inputs = decoder.placed(inputs)
        self._stream = torch.cuda.ExternalStream(stream)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.no_grad(), torch.cuda.stream(side):
            for _ in range(WARM_UPS):
                decoder(self._inputs)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(self._graph):
            self._outputs = decoder(self._inputs)

    def replay(self) -> None:
        """Start it once."""
        import torch

        with torch.cuda.stream(self._stream):
            self._graph.replay()

    def logits(self) -> NDArray[np.float16]:
        """What it gives."""
        import torch

        self.replay()
        torch.cuda.synchronize()
        array: NDArray[np.float16] = self._outputs[LOGITS].cpu().numpy()
        return array


def _is_matrix(name: str, weight: Any) -> bool:
    return weight.ndim == 2 and name != EMBEDDING
