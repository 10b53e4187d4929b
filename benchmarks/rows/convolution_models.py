"""Models of single convolutions, each between neighbours as in the network that it is of.

What is in front of a convolution makes it read what it would within the network: channels last, but for
a first layer, which reads the image as it is given. With 16 bits cuDNN cannot read an image of fp32, so
an operator before the first layer writes it with 16 bits, in channels last with padding. What is behind
keeps it from writing a model's output.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rows.sketch import Sketch
from wpk.dtypes import Precision


@dataclass(frozen=True)
class Layer:
    """A convolution with bias, and ReLU where it is no shortcut.

    Attributes:
        c: Channels in.
        k: Channels out.
        size: Height and width of the image.
        filter: Height and width.
        stride: Along both axes.
        pad: On all sides.
    """

    c: int
    k: int
    size: tuple[int, int]
    filter: int
    stride: int
    pad: int

    @property
    def name(self) -> str:
        """``conv3x3s1_64to64_56``, with ``x`` and the width where the image is no square."""
        h, w = self.size
        across = "" if h == w else f"x{w}"
        return f"conv{self.filter}x{self.filter}s{self.stride}_{self.c}to{self.k}_{h}{across}"


Layers = Mapping[str, Layer]


def _named(*layers: Layer) -> Layers:
    return {layer.name: layer for layer in layers}


RESNET18 = _named(
    *(
        Layer(c, k, (size, size), f, s, f // 2)
        for c, k, size, f, s in (
            (3, 64, 224, 7, 2),
            (64, 64, 56, 3, 1),
            (64, 64, 56, 1, 1),
            (64, 128, 56, 3, 2),
            (64, 128, 56, 1, 2),
            (128, 128, 28, 3, 1),
            (128, 256, 28, 3, 2),
            (128, 256, 28, 1, 2),
            (256, 256, 14, 3, 1),
            (256, 512, 14, 3, 2),
            (256, 512, 14, 1, 2),
            (512, 512, 7, 3, 1),
        )
    )
)
"""ResNet-18's distinct convolutions."""

WOODPECKER = _named(
    *(
        Layer(c, k, size, 3, s, 0)
        for c, k, size, s in (
            (3, 64, (112, 96), 1),
            (64, 96, (110, 94), 2),
            (96, 128, (54, 46), 2),
            (128, 256, (26, 22), 2),
            (256, 512, (12, 10), 1),
        )
    )
)
"""The five of Woodpecker-DL's table 1; each one's output is the next one's input."""

IMAGE_CHANNELS = 3

_WIDE = (Precision.FP32, Precision.TF32)
"""Precisions that keep 32 bits in memory."""


def write_model(path: Path, layers: Layers, precision: Precision, batch: int) -> None:
    """The layers with their neighbours, as a model with an input and an output for each."""
    sketch = Sketch("convolutions")
    for name, layer in layers.items():
        _add(sketch, name, layer, precision, batch)
    sketch.save(path)


def _add(sketch: Sketch, name: str, layer: Layer, precision: Precision, batch: int) -> None:
    shape = (batch, layer.c, *layer.size)
    if layer.c != IMAGE_CHANNELS:
        x = sketch.channels_last(name, shape)
    else:
        x = sketch.input(f"{name}.given", shape)
        if precision not in _WIDE:
            x = sketch.node("Relu", f"{name}.before", [x])
    weight = (layer.k, layer.c, layer.filter, layer.filter)
    y = sketch.convolution(name, x, weight, strides=[layer.stride] * 2, pads=[layer.pad] * 4)
    if layer.filter > 1:
        y = sketch.node("Relu", f"{name}.relu", [y])
    sketch.pooled(name, y, (batch, layer.k))
