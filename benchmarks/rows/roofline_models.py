"""For each schedule template three operators: from one that leaves a GPU idle to one that fills it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto

from rows.sketch import Sketch
from wpk.dtypes import Precision

SIZES = ("small", "medium", "large")
"""Names of the operators; each is also the name of a node of it."""

Shape = tuple[int, ...]
Draw = Callable[[Sketch, str, Any], None]
"""Adds an operator of a name and a size to a model."""


@dataclass(frozen=True)
class Study:
    """What a template is measured on.

    Attributes:
        precision: What products may use.
        draw: Adds one operator.
        sizes: What `draw` is given, for each of `SIZES`.
        left_out: Rivals that carry the operators too, and would have the trials where they are faster;
            not those that the model's other operators need.
        changed: Keys of sites that passes decide otherwise there, where operators are no others' usual form.
    """

    precision: Precision
    draw: Draw
    sizes: tuple[Any, Any, Any]
    left_out: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    def write(self, path: Path) -> None:
        """The model that holds all three."""
        sketch = Sketch("roofline")
        for name, size in zip(SIZES, self.sizes, strict=True):
            self.draw(sketch, name, size)
        sketch.save(path)


def _convolution(sketch: Sketch, name: str, size: Shape, *, of_group: int | None = None) -> None:
    """A 3 x 3 that keeps the image; ``size`` is batch, channels and width, ``of_group`` a group's channels if not all."""
    n, c, width = size
    of_group = of_group or c
    weight, groups = (c, of_group, 3, 3), c // of_group
    x = sketch.channels_last(name, (n, c, width, width))
    y = sketch.convolution(name, x, weight, pads=[1] * 4, group=groups)
    sketch.pooled(name, sketch.node("Relu", f"{name}.relu", [y]), (n, c))


def _first_layer(sketch: Sketch, name: str, size: Shape) -> None:
    """ResNet's 7 x 7 over an image as models give it; ``size`` is batch, channels out and width."""
    n, k, width = size
    x = sketch.input(f"{name}.given", (n, 3, width, width))
    y = sketch.convolution(name, x, (k, 3, 7, 7), strides=[2, 2], pads=[3] * 4)
    sketch.pooled(name, sketch.node("Relu", f"{name}.relu", [y]), (n, k))


def _product(sketch: Sketch, name: str, size: Shape) -> None:
    """Rows times a constant matrix; ``size`` is m, n and k."""
    m, n, k = size
    weight = sketch.weight(f"{name}.weight", (k, n), k)
    y = sketch.node("Gemm", name, [sketch.rows(name, (m, k)), weight])
    axis = sketch.constant(f"{name}.axis", np.asarray([1]))
    sketch.output(sketch.node("ReduceMean", f"{name}.after", [y, axis]), (m, 1))


def _maximum_pool(sketch: Sketch, name: str, size: Shape) -> None:
    """3 x 3 with a stride of 2."""
    n, c, width = size
    x = sketch.channels_last(name, (n, c, width, width))
    y = sketch.node("MaxPool", name, [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    sketch.pooled(name, y, (n, c))


def _attention(sketch: Sketch, name: str, size: Shape) -> None:
    """``size`` is batch, sequence, heads and their size."""
    batch, sequence, heads, features = size
    shape = (batch, sequence, heads * features)
    apart = sketch.constant(f"{name}.apart", np.asarray([batch, sequence, heads, features]))
    queries, values = (
        sketch.node("Transpose", f"{name}.{each}.heads", [split], perm=[0, 2, 1, 3])
        for each in ("q", "v")
        for split in [
            sketch.node("Reshape", f"{name}.{each}", [sketch.rows(f"{name}.{each}", shape), apart])
        ]
    )
    split = sketch.node("Reshape", f"{name}.k", [sketch.rows(f"{name}.k", shape), apart])
    keys = sketch.node("Transpose", f"{name}.k.heads", [split], perm=[0, 2, 3, 1])
    scale = sketch.constant(f"{name}.scale", np.asarray(features**-0.5, np.float32))
    scores = sketch.node("MatMul", f"{name}.scores", [queries, keys])
    scores = sketch.node("Mul", f"{name}.scaled", [scores, scale])
    shares = sketch.node("Softmax", name, [scores], axis=-1)
    y = sketch.node("MatMul", f"{name}.weighted", [shares, values])
    y = sketch.node("Transpose", f"{name}.together", [y], perm=[0, 2, 1, 3])
    whole = sketch.constant(f"{name}.whole", np.asarray(shape))
    sketch.output(sketch.node("Reshape", f"{name}.joined", [y, whole]), shape)


def _squeeze(sketch: Sketch, name: str, size: Shape) -> None:
    """Squeeze and excitation; ``size`` is batch, channels, width and the hidden row."""
    n, c, width, hidden = size
    x = sketch.channels_last(name, (n, c, width, width))
    mean = sketch.node("GlobalAveragePool", name, [x])
    row = sketch.convolution(f"{name}.down", mean, (hidden, c, 1, 1))
    row = sketch.node("Relu", f"{name}.relu", [row])
    gates = sketch.convolution(f"{name}.up", row, (c, hidden, 1, 1))
    gates = sketch.node("Sigmoid", f"{name}.gates", [gates])
    sketch.pooled(name, sketch.node("Mul", f"{name}.scaled", [x, gates]), (n, c))


def _feed_forward(sketch: Sketch, name: str, size: Shape) -> None:
    """A block of rows with a bias, a GELU and a residual; ``size`` is batch, rows and columns."""
    n, rows, columns = size
    hidden = 4 * columns
    x = sketch.rows(name, size)
    up = sketch.weight(f"{name}.up", (columns, hidden), columns)
    down = sketch.weight(f"{name}.down", (hidden, columns), hidden)
    middle = sketch.node("MatMul", f"{name}.hidden", [x, up])
    middle = sketch.node("Add", f"{name}.biased", [middle, sketch.weight(f"{name}.b", (hidden,))])
    root = sketch.constant(f"{name}.root", np.asarray(2**-0.5, np.float32))
    half, one = (
        sketch.constant(f"{name}.{word}", np.asarray(value, np.float32))
        for word, value in (("half", 0.5), ("one", 1.0))
    )
    bell = sketch.node("Erf", f"{name}.erf", [sketch.node("Mul", f"{name}.z", [middle, root])])
    bell = sketch.node("Add", f"{name}.bell", [bell, one])
    middle = sketch.node("Mul", f"{name}.gelu", [middle, bell])
    middle = sketch.node("Mul", f"{name}.halved", [middle, half])
    y = sketch.node("MatMul", name, [middle, down])
    y = sketch.node("Add", f"{name}.residual", [y, x])
    sketch.output(y, (n, rows, columns))


def _mean(sketch: Sketch, name: str, size: Shape) -> None:
    """Of the last axis."""
    axis = sketch.constant(f"{name}.axis", np.asarray([1]))
    x = sketch.input(f"{name}.given", size)
    sketch.output(sketch.node("ReduceMean", name, [x, axis]), (size[0], 1))


def _softmax(sketch: Sketch, name: str, size: Shape) -> None:
    """Of the last axis."""
    x = sketch.input(f"{name}.given", size)
    sketch.output(sketch.node("Softmax", name, [x], axis=-1), size)


def _softmax_across(sketch: Sketch, name: str, size: Shape) -> None:
    """Of an axis that is not the last."""
    x = sketch.input(f"{name}.given", size)
    sketch.output(sketch.node("Softmax", name, [x], axis=1), size)


def _group_norm(sketch: Sketch, name: str, size: Shape) -> None:
    """With a scale of each channel and ReLU; ``size`` is batch, channels, width and groups."""
    n, c, width, groups = size
    x = sketch.channels_last(name, (n, c, width, width))
    rows = sketch.constant(f"{name}.rows", np.asarray([n, groups, -1]))
    back = sketch.constant(f"{name}.back", np.asarray([n, c, width, width]))
    one, none = (
        sketch.constant(f"{name}.{each}", np.full(groups, value, np.float32))
        for each, value in (("one", 1.0), ("none", 0.0))
    )
    y = sketch.node("Reshape", f"{name}.grouped", [x, rows])
    y = sketch.node("InstanceNormalization", name, [y, one, none])
    y = sketch.node("Reshape", f"{name}.joined", [y, back])
    y = sketch.node("Mul", f"{name}.scaled", [y, sketch.weight(f"{name}.scale", (c, 1, 1))])
    sketch.pooled(name, sketch.node("Relu", f"{name}.relu", [y]), (n, c))


def _sum(sketch: Sketch, name: str, size: Shape) -> None:
    """Of two tensors, with ReLU."""
    x, other = (sketch.input(f"{name}.{each}", size) for each in ("given", "other"))
    y = sketch.node("Add", name, [x, other])
    sketch.output(sketch.node("Relu", f"{name}.relu", [y]), size)


def _crossed(sketch: Sketch, name: str, size: Shape) -> None:
    """The sum of a matrix and a transposed one."""
    x, other = sketch.input(f"{name}.given", size), sketch.input(f"{name}.other", size[::-1])
    y = sketch.node("Transpose", f"{name}.crossed", [x], perm=[1, 0])
    sketch.output(sketch.node("Add", name, [y, other]), size[::-1])


def _gather(sketch: Sketch, name: str, size: Shape) -> None:
    """So many rows of a table; ``size`` is the table's, then how many."""
    rows, features, count = size
    table = sketch.weight(f"{name}.table", (rows, features))
    index = sketch.input(f"{name}.given", (1, count), TensorProto.INT64)
    sketch.output(sketch.node("Gather", name, [table, index]), (1, count, features))


def _repeated(sketch: Sketch, name: str, size: Shape) -> None:
    """The rows of a sequence of free length, of one token unless the caller says, for so many sequences."""
    count, features = size
    x = sketch.input(f"{name}.given", (1, "tokens", features))
    shape = sketch.node("Shape", f"{name}.shape", [x], start=1, end=3)
    outer = sketch.constant(f"{name}.count", np.asarray([count]))
    target = sketch.node("Concat", f"{name}.target", [outer, shape], axis=0)
    sketch.output(sketch.node("Expand", name, [x, target]), (count, "tokens", features))


def _gather_elements(sketch: Sketch, name: str, size: Shape) -> None:
    """An element of a column by each index; ``size`` is the table's, then how many rows."""
    rows, features, count = size
    table = sketch.weight(f"{name}.table", (rows, features))
    index = sketch.input(f"{name}.given", (count, features), TensorProto.INT64)
    sketch.output(sketch.node("GatherElements", name, [table, index]), (count, features))


def _scatter(sketch: Sketch, name: str, size: Shape) -> None:
    """Sixteen rows of a matrix written anew."""
    x = sketch.input(f"{name}.given", size)
    index = sketch.input(f"{name}.rows", (16, 1), TensorProto.INT64)
    updates = sketch.input(f"{name}.updates", (16, size[1]))
    sketch.output(sketch.node("ScatterND", name, [x, index, updates]), size)


def _rewritten(sketch: Sketch, name: str, size: Shape) -> None:
    """A quarter of each row's elements written anew, as a pool's places are."""
    part = (size[0], size[1] // 4)
    x = sketch.input(f"{name}.given", size)
    index = sketch.input(f"{name}.places", part, TensorProto.INT64)
    updates = sketch.input(f"{name}.updates", part)
    y = sketch.node("ScatterElements", name, [x, index, updates], axis=1)
    sketch.output(y, size)


def _largest(sketch: Sketch, name: str, size: Shape) -> None:
    """Where the largest element of each row is."""
    x = sketch.input(f"{name}.given", size)
    y = sketch.node("ArgMax", name, [x], axis=-1)
    sketch.output(y, (size[0], 1), TensorProto.INT64)


def _running_sums(sketch: Sketch, name: str, size: Shape) -> None:
    """Along the last axis."""
    x = sketch.input(f"{name}.given", size)
    axis = sketch.constant(f"{name}.axis", np.asarray(1))
    sketch.output(sketch.node("CumSum", name, [x, axis]), size)


def _determinants(sketch: Sketch, name: str, size: Shape) -> None:
    """Of square matrices; ``size`` is how many, and their rows."""
    count, rows = size
    x = sketch.input(f"{name}.given", (count, rows, rows))
    sketch.output(sketch.node("Det", name, [x]), (count,))


def _boxes(sketch: Sketch, name: str, size: Shape) -> None:
    """The best hundred boxes of each class; ``size`` is batch, classes and boxes."""
    n, classes, count = size
    limits = [
        sketch.constant(f"{name}.most", np.asarray([100])),
        sketch.constant(f"{name}.overlap", np.asarray([0.5], np.float32)),
    ]
    x = sketch.input(f"{name}.boxes", (n, count, 4))
    scores = sketch.input(f"{name}.scores", (n, classes, count))
    y = sketch.node("NonMaxSuppression", name, [x, scores, *limits])
    sketch.output(y, (f"{name}.selected", 3), TensorProto.INT64)


def _top(sketch: Sketch, name: str, size: Shape) -> None:
    """Where the largest of each row are; ``size`` is the matrix's, then how many."""
    *shape, count = size
    x = sketch.input(f"{name}.given", shape)
    k = sketch.constant(f"{name}.count", np.asarray([count]))
    y = sketch.node("TopK", name, [x, k], unread=1, axis=-1)
    sketch.output(y, (shape[0], count), TensorProto.INT64)


def _pad(sketch: Sketch, name: str, size: Shape) -> None:
    """One pixel around every image."""
    n, c, width = size
    pads = sketch.constant(f"{name}.pads", np.asarray([0, 0, 1, 1, 0, 0, 1, 1]))
    x = sketch.input(f"{name}.given", (n, c, width, width))
    sketch.output(sketch.node("Pad", name, [x, pads]), (n, c, width + 2, width + 2))


def _resize(sketch: Sketch, name: str, size: Shape) -> None:
    """Twice as large along both axes."""
    n, c, width = size
    scales = sketch.constant(f"{name}.scales", np.asarray([1, 1, 2, 2], np.float32))
    x = sketch.input(f"{name}.given", (n, c, width, width))
    y = sketch.node("Resize", name, [x, "", scales], mode="nearest")
    sketch.output(y, (n, c, 2 * width, 2 * width))


def _recurrent(sketch: Sketch, name: str, size: Shape) -> None:
    """An LSTM with as many inputs as units; ``size`` is batch, steps and units."""
    n, steps, hidden = size
    shape = (1, 4 * hidden, hidden)
    weights = [sketch.weight(f"{name}.{part}", shape, hidden) for part in ("w", "r")]
    x = sketch.input(f"{name}.given", (steps, n, hidden))
    y = sketch.node("LSTM", name, [x, *weights], hidden_size=hidden)
    sketch.output(y, (steps, 1, n, hidden))


def _regions(sketch: Sketch, name: str, size: Shape) -> None:
    """Windows of seven by seven over a map of a pyramid; ``size`` is regions, channels and width."""
    n, c, width = size
    rois = np.random.default_rng(0).uniform(0.0, 0.6 * width, (n, 4)).astype(np.float32)
    rois[:, 2:] = rois[:, :2] + 14.0  # two samples along each side of a window
    images = sketch.constant(f"{name}.images", np.zeros(n, np.int64))
    x = sketch.channels_last(name, (1, c, width, width))
    inputs = [x, sketch.constant(f"{name}.rois", rois), images]
    y = sketch.node("RoiAlign", name, inputs, output_height=7, output_width=7)
    sketch.pooled(name, y, (n, c))


_CONVOLUTIONS = (_convolution, ((1, 512, 7), (8, 256, 14), (16, 256, 56)))
_PRODUCTS = (_product, ((128, 768, 768), (1024, 1024, 1024), (4096, 2048, 2048)))
_THIN = (_product, ((3136, 288, 96), (25088, 288, 96), (100352, 288, 96)))
_FEW_ROWS = (_product, ((1, 48, 1152), (1, 1000, 1280), (1, 4096, 2048)))
_ATTENTIONS = (_attention, ((1, 128, 12, 64), (8, 128, 12, 64), (8, 512, 12, 64)))
_RECURRENCES = (_recurrent, ((1, 16, 128), (8, 16, 256), (32, 16, 512)))
_MATRICES = ((128, 768), (4096, 1024), (32768, 1024))
_IMAGES = ((1, 64, 56), (8, 64, 56), (16, 64, 112))
_TABLES = ((8192, 512, 128), (8192, 512, 4096), (8192, 512, 32768))
_SHORT_ROWS = ((16, 128, 4), (1024, 128, 4), (16384, 128, 4))
_LONG_ROWS = ((1, 8192, 100), (64, 8192, 100), (1024, 8192, 100))

STUDIES: Mapping[str, Study] = {
    "attention_mma": Study(Precision.FP16, *_ATTENTIONS, ("attention_simt", "attention_wgmma")),
    "attention_simt": Study(Precision.FP32, *_ATTENTIONS, ("attention_mma",)),
    "attention_wgmma": Study(
        Precision.FP16,
        _attention,
        ((1, 128, 12, 64), (8, 512, 12, 64), (4, 1500, 12, 64)),
        ("attention_mma", "attention_simt"),
    ),
    "conv_grouped": Study(
        Precision.FP16,
        partial(_convolution, of_group=8),
        ((1, 256, 28), (8, 256, 28), (64, 256, 28)),
        ("conv_mma",),
    ),
    "conv_halo": Study(
        Precision.FP16,
        _convolution,
        ((1, 64, 56), (8, 128, 28), (64, 64, 56)),
        ("conv_mma", "conv_wgmma"),
    ),
    "conv_mma": Study(Precision.FP16, *_CONVOLUTIONS, ("conv_halo", "conv_simt", "conv_wgmma")),
    "conv_patch": Study(
        Precision.FP16,
        _first_layer,
        ((1, 64, 224), (8, 64, 224), (64, 64, 224)),
        ("conv_mma", "conv_simt"),
    ),
    "conv_simt": Study(Precision.FP32, *_CONVOLUTIONS, ("conv_mma", "conv_wgmma")),
    "conv_wgmma": Study(Precision.FP16, *_CONVOLUTIONS, ("conv_halo", "conv_mma")),
    "gemm_mma": Study(Precision.FP16, *_PRODUCTS, ("gemm_simt", "gemm_wgmma")),
    "gemm_simt": Study(Precision.FP32, *_PRODUCTS, ("gemm_mma", "gemm_wgmma")),
    "gemm_skinny": Study(Precision.FP16, *_FEW_ROWS, ("gemm_mma", "gemm_simt", "gemm_wgmma")),
    "gemm_wgmma": Study(Precision.FP16, *_PRODUCTS, ("gemm_mma",)),
    "thin_wgmma": Study(Precision.FP16, *_THIN, ("gemm_mma", "gemm_wgmma")),
    "depthwise": Study(
        Precision.FP16,
        partial(_convolution, of_group=1),
        ((1, 576, 14), (8, 144, 56), (64, 144, 56)),
        ("conv_simt", "depthwise_rows"),
    ),
    "depthwise_rows": Study(
        Precision.FP16,
        partial(_convolution, of_group=1),
        ((8, 192, 28), (32, 192, 28), (64, 144, 56)),
        ("conv_simt", "depthwise"),
    ),
    "pooling": Study(Precision.FP16, _maximum_pool, ((1, 64, 112), (8, 64, 112), (64, 64, 112))),
    "roi_align": Study(Precision.FP16, _regions, ((16, 64, 56), (300, 256, 56), (1000, 256, 112))),
    "recurrence_mma": Study(Precision.FP16, *_RECURRENCES, ("recurrence_simt",)),
    "recurrence_simt": Study(Precision.FP32, *_RECURRENCES),
    "squeeze": Study(
        Precision.FP16, _squeeze, ((1, 96, 14, 24), (1, 480, 28, 120), (32, 240, 28, 60))
    ),
    "feed_forward_wgmma": Study(
        Precision.FP16,
        _feed_forward,
        ((1, 3136, 96), (8, 3136, 96), (32, 3136, 96)),
        changed=("fuse-feed-forwards:*",),
    ),
    "reduction": Study(Precision.FP32, _mean, _MATRICES),
    "normalisation": Study(Precision.FP32, _softmax, _MATRICES),
    "normalisation_cluster": Study(
        Precision.FP16, _group_norm, ((1, 64, 56, 1), (1, 256, 64, 32), (16, 256, 56, 32))
    ),
    "normalisation_across": Study(
        Precision.FP16,
        _softmax_across,
        ((1, 3200, 512), (8, 3200, 512), (16, 784, 2048)),
        ("normalisation",),
    ),
    "elementwise": Study(Precision.FP32, _sum, _MATRICES),
    "elementwise_tiled": Study(Precision.FP32, _crossed, _MATRICES, ("elementwise",)),
    "gather": Study(Precision.FP32, _gather, _TABLES),
    "indexed_read": Study(Precision.FP32, _gather_elements, _TABLES),
    "indexed_write": Study(Precision.FP32, _scatter, _MATRICES, ("latest_write",)),
    "latest_write": Study(Precision.FP32, _rewritten, _MATRICES, ("indexed_write",)),
    "box_selection": Study(Precision.FP32, _boxes, ((1, 1, 8400), (1, 80, 8400), (8, 80, 25200))),
    "determinant": Study(Precision.FP32, _determinants, ((256, 4), (65536, 4), (4096, 32))),
    "prefix_scan": Study(Precision.FP32, _running_sums, _MATRICES),
    "arg_reduction": Study(Precision.FP32, _largest, _MATRICES, ("top_by_rank", "top_by_sorting")),
    "top_by_rank": Study(Precision.FP32, _top, _SHORT_ROWS, ("top_by_sorting",)),
    "top_by_sorting": Study(Precision.FP32, _top, _LONG_ROWS, ("top_by_rank",)),
    "placed_rows": Study(Precision.FP32, _repeated, _MATRICES),
    "pad": Study(Precision.FP32, _pad, _IMAGES),
    "resize": Study(Precision.FP32, _resize, _IMAGES),
}
"""By template."""
