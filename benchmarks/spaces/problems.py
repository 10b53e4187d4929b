"""The problems whose schedule spaces are recorded: layers of several networks, as engines have them.

A name is ``NETWORK.LAYER.PRECISION``, so that what is learnt from all networks but one can be tested on
that one. The batch is 1 where the layer does not say otherwise.
"""

from collections.abc import Callable
from dataclasses import replace

from subjects.problems import channels_first, convolution, matmul

from wpk.dtypes import Precision
from wpk.extent import Extent
from wpk.problems import Convolution, Matmul

Layer = Convolution | Matmul
Make = Callable[[Precision], Layer]

FP16, FP32, TF32 = Precision.FP16, Precision.FP32, Precision.TF32


def _conv(
    c: int,
    k: int,
    size: int,
    filter: int | tuple[int, int] = 1,
    stride: int = 1,
    *,
    pads: int | None = None,
    n: int = 1,
    residual: bool = False,
) -> Make:
    """A convolution with bias and ReLU, whose images have their channels last."""
    return lambda p: convolution(
        *(c, k, size, filter),
        stride=stride,
        pads=pads,
        n=Extent(n),
        precision=p,
        bias=p.storage,
        residual=residual,
        relu=True,
    )


def _stem(k: int, size: int, filter: int, stride: int) -> Make:
    """A first layer: three channels, which come first in memory, as models take their images."""

    def make(precision: Precision) -> Layer:
        made = _conv(3, k, size, filter, stride)(precision)
        return replace(made, x=channels_first(precision.storage, 3, size, size))

    return make


def _product(m: int, n: int, k: int, *, residual: bool = False) -> Make:
    """Rows times a weight, with bias."""
    return lambda p: matmul(m, n, k, precision=p, bias=p.storage, residual=residual)


_FIRST: dict[str, tuple[Make, tuple[Precision, ...]]] = {
    "resnet50.3x3_14": (_conv(256, 256, 14, 3), (FP16, FP32)),
    "distilbert.qkv": (_product(128, 2304, 768), (FP16,)),
    "densenet121.1x1_14": (_conv(512, 128, 14), (FP16, TF32)),
    "inception_v3.1x7_17": (_conv(192, 192, 17, (1, 7)), (FP16,)),
    "mobilenet_v2.1x1_7": (_conv(320, 1280, 7), (FP16, FP32)),
    "vit_b16.up": (_product(197, 3072, 768), (FP16,)),
    "resnet50.stem": (_stem(64, 224, 7, 2), (FP16,)),
    "distilbert.down": (_product(128, 768, 3072, residual=True), (FP16, TF32)),
    "densenet121.3x3_28": (_conv(128, 32, 28, 3), (FP16,)),
    "inception_v3.3x3_35": (_conv(288, 384, 35, 3, 2, pads=0), (FP16,)),
    "gpt2.decode": (_product(1, 3072, 768), (FP16,)),
    "densenet121.3x3_14": (_conv(128, 32, 14, 3), (FP32,)),
    "inception_v3.1x1_17_reduced": (_conv(768, 160, 17), (TF32,)),
    "resnet50.1x1_14": (_conv(1024, 256, 14), (FP16,)),
    "vit_b16.projection": (_product(197, 768, 768, residual=True), (FP16,)),
    "mobilenet_v2.1x1_14": (_conv(96, 576, 14), (FP16,)),
    "resnet50.3x3_14_b32": (_conv(256, 256, 14, 3, n=32), (FP16,)),
    "distilbert.qkv_b32": (_product(4096, 2304, 768), (FP16,)),
}
"""Recorded first, in this order; by name of the layer: what makes it, and at which precisions."""

_THEN: dict[str, tuple[Make, tuple[Precision, ...]]] = {
    "resnet50.1x1_7": (_conv(512, 2048, 7, residual=True), (FP16,)),
    "resnet50.3x3_56": (_conv(64, 64, 56, 3), (FP16,)),
    "inception_v3.1x1_17": (_conv(768, 192, 17), (FP16,)),
    "distilbert.up": (_product(128, 3072, 768), (FP32,)),
    "gpt2.prefill": (_product(64, 3072, 768), (FP16,)),
    "mobilenet_v2.1x1_28": (_conv(32, 192, 28), (FP16,)),
    "vit_b16.down": (_product(197, 768, 3072, residual=True), (TF32,)),
    "densenet121.1x1_14_b32": (_conv(512, 128, 14, n=32), (FP16,)),
    "inception_v3.stem": (_stem(32, 299, 3, 2), (FP16,)),
}
"""Recorded when all of the first are."""


def _named(layers: dict[str, tuple[Make, tuple[Precision, ...]]]) -> dict[str, Layer]:
    return {
        f"{name}.{precision}": make(precision)
        for name, (make, precisions) in layers.items()
        for precision in precisions
    }


TIERS: tuple[dict[str, Layer], ...] = (_named(_FIRST), _named(_THEN))
"""The problems by name, in the order in which they are recorded."""

PROBLEMS: dict[str, Layer] = {name: made for tier in TIERS for name, made in tier.items()}
"""All of them."""


def network_of(name: str) -> str:
    """Return the network that a problem's name begins with."""
    return name.partition(".")[0]
