"""The weights of a decoder: drawn by a seed into a file beside its ONNX file, and read back from there.

Numbers are normal as far as 16 bits say it: 16 random bits choose one of the 65536 quantiles of a normal
distribution, each with the same probability, in fp16. So the file depends only on the raw bits of NumPy's
SFC64 generator, which NumPy promises not to change, and is the same on each machine whatever the
number of threads: each block of 4 Mi numbers has a generator of its own, seeded by seed, weight and block.
A number takes some 4 ns of a core: 6.7 G of them 30 s of one core and 2 s of sixteen, less than a disk
takes to write them. Of the file no more lies in memory than a block a thread.

Matrices have variance 1 / inputs, so that a product keeps the size of what it is given; those that end in the
residual stream have it divided by twice the number of layers, as GPT-2 starts (Radford et al. 2019,
section 2.3): all that the layers add to the stream is about as large as what it began with. Queries are three times as
large as that: so a token attends to a few others, as in trained models, and not to all alike, which
would average whatever attention gives away.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import NormalDist

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from subjects.decoder import (
    EMBEDDING,
    OPSET,
    TOKENS,
    Decoder,
    graph_of,
    past_name,
)

Half = NDArray[np.float16]
Places = dict[str, tuple[int, tuple[int, ...]]]

_BLOCK = 2**22
"""Numbers that a generator draws; a multiple of the four that it draws at once."""

_ALIGNMENT = 4096
"""Bytes that a weight starts at a multiple of, as ONNX advises for files that are mapped."""

_INTO_STREAM = ("o_proj.weight", "down_proj.weight")
_QUERIES, _SHARPNESS = "q_proj.weight", 3.0
"""How much larger queries are than keys: the deviation of the scores."""

_NORM_DEVIATION = 0.1
"""Of the factors of a normalisation, about 1."""


def write(decoder: Decoder, path: Path, seed: int = 0) -> None:
    """Write the ONNX file, and its weights into ``NAME.data`` beside it.

    Raises:
        OSError: There is no room.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lies, data = places(decoder), data_of(path)
    graph = graph_of(decoder)
    for name, (offset, shape) in lies.items():
        graph.initializer.append(_reference(name, shape, offset, data.name))
    opsets = [helper.make_opsetid("", OPSET)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    _write_data(decoder, data, lies, seed)


def data_of(path: Path) -> Path:
    """The file of the weights beside an ONNX file."""
    return path.with_suffix(".data")


def places(decoder: Decoder) -> Places:
    """First byte and shape of each weight in the file."""
    found: Places = {}
    end = 0
    for name, shape in decoder.weights().items():
        found[name] = end, shape
        size = int(np.prod(shape)) * np.dtype(np.float16).itemsize
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return found


def open_weights(decoder: Decoder, path: Path) -> Mapping[str, Half]:
    """The weights by name, mapped where they lie: read-only.

    Raises:
        OSError: They are not there.
    """
    data = np.memmap(data_of(path), np.float16, "r")
    found = {}
    for name, (offset, shape) in places(decoder).items():
        start = offset // data.itemsize
        found[name] = data[start : start + int(np.prod(shape))].reshape(shape)
    return found


def draw_inputs(decoder: Decoder, seed: int) -> dict[str, NDArray[np.generic]]:
    """Tokens and a cache: keys and values normal, which is what the layers make of the stream."""
    rng = np.random.Generator(np.random.SFC64([seed, 1]))
    d = decoder
    found: dict[str, NDArray[np.generic]] = {
        TOKENS: rng.integers(d.vocabulary, size=(d.batch, d.new))
    }
    for layer in range(d.layers):
        for what in ("key", "value"):
            drawn = rng.standard_normal(d.cache_shape(d.past), np.float32)
            found[past_name(layer, what)] = drawn.astype(np.float16)
    return found


@dataclass(frozen=True)
class _Block:
    """A part of a weight: its numbers, where they lie in the file, and what they are drawn from."""

    seed: tuple[int, int, int]
    offset: int
    count: int
    mean: float
    deviation: float

    def draw(self) -> Half:
        generator = np.random.Generator(np.random.SFC64(self.seed))
        words = generator.integers(2**64, size=-(-self.count // 4), dtype=np.uint64)
        bits = words.astype("<u8", copy=False).view("<u2")[: self.count]
        return np.take(_quantiles(self.mean, self.deviation), bits, mode="clip")


@cache
def _quantiles(mean: float, deviation: float) -> Half:
    normal = NormalDist(mean, deviation)
    return np.array([normal.inv_cdf((n + 0.5) / 2**16) for n in range(2**16)], np.float16)


def _write_data(decoder: Decoder, path: Path, lies: Places, seed: int) -> None:
    with path.open("wb") as stream, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:

        def fill(block: _Block) -> None:
            data, done = block.draw().view(np.uint8).data, 0
            while done < len(data):
                done += os.pwrite(stream.fileno(), data[done:], block.offset + done)

        for _ in pool.map(fill, _blocks(decoder, lies, seed)):
            pass


def _blocks(decoder: Decoder, lies: Places, seed: int) -> Iterator[_Block]:
    for name, (offset, shape) in lies.items():
        size, key = int(np.prod(shape)), zlib.crc32(name.encode())
        for number, start in enumerate(range(0, size, _BLOCK)):
            count = min(_BLOCK, size - start)
            at = offset + start * np.dtype(np.float16).itemsize
            yield _Block((seed, key, number), at, count, *_distribution(decoder, name, shape))


def _distribution(decoder: Decoder, name: str, shape: tuple[int, ...]) -> tuple[float, float]:
    """Mean and standard deviation of a weight."""
    if len(shape) == 1:
        return 1.0, _NORM_DEVIATION
    if name == EMBEDDING:
        return 0.0, 1.0
    variance = 1 / shape[0]
    if name.endswith(_QUERIES):
        variance *= _SHARPNESS**2
    if name.endswith(_INTO_STREAM):
        variance /= 2 * decoder.layers
    return 0.0, variance**0.5


def _reference(name: str, shape: tuple[int, ...], offset: int, file: str) -> onnx.TensorProto:
    tensor = TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT16)
    tensor.data_location = TensorProto.EXTERNAL
    length = int(np.prod(shape)) * np.dtype(np.float16).itemsize
    for key, value in (("location", file), ("offset", offset), ("length", length)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor
