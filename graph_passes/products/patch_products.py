"""Write convolutions of patches that do not overlap as products of matrices.

    Conv(x; W, b)            ->  patches(x) · W' + b, the rows of an image     window = stride
    ConvTranspose(x; W, b)   ->  the patches of rows(x) · W' + b

Exact: every element is the same sum. The patches of an image are its elements in another order: a Reshape, a
Transpose and a Reshape. What this costs is one more operator where nothing beside it moves elements anyway. What it
brings is that the reduction of the product runs along all of a patch: a convolution reads the channels of one pixel at
a time, and the three of a picture are no vector of 16 bytes. A transposed convolution has a kernel for each place of
a patch at its worst; its product has one, with as many columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.exact import moved_constant
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    given,
    pads,
    pads_by_itself,
    static_shape,
    window_numbers,
)
from wpk.graph_passes.fold.linear_operator import why_not_linear

VECTOR = 8
"""Channels of 16-bit numbers that one access takes: with fewer a convolution has no pixel to read at a time."""

LONG = 64
"""Terms of a sum from which on a product gains more than the copy takes: by estimates for an H100, a first layer of
48 terms loses 1 µs, one of 768 gains 6."""

LONGER = 256
"""The same where patches of several images of several channels move more axes than one copy does, so that there are two:
of 32 images a first layer of 768 terms takes 62 µs instead of 164, but the copies of one of 48 terms take 25 µs and the
convolution 13."""


@dataclass(frozen=True)
class _Patches:
    """A convolution of patches.

    Attributes:
        node: The Conv or ConvTranspose.
        window: Sizes of a patch.
        grid: Patches along each axis.
    """

    node: gs.Node
    window: tuple[int, ...]
    grid: tuple[int, ...]


class _PatchRule(Rule[_Patches]):
    """Looks at convolutions whose windows lie beside each other."""

    is_choice = True

    def decided_over(self, match: _Patches) -> Sequence[gs.Node]:
        """Return the convolution."""
        return (match.node,)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Patches | Refusal | None:
        """Match convolutions whose stride is their window, that pad nothing and leave nothing out."""
        del graph
        weight = static_shape(node.inputs[1])
        if weight is None or prod(weight[2:]) == 1 or self.is_usual is not _is_usual(node, weight):
            return None
        window = tuple(weight[2:])
        if window_numbers(node, "strides", len(window)) != [*window]:
            return None
        reason = why_not_linear(node) or _why_no_patches(node)
        image = dims(node.outputs[0] if node.op == "ConvTranspose" else node.inputs[0]) or []
        sizes = [size for size in image[2:] if isinstance(size, int)]
        if reason is None and len(sizes) != len(window):
            reason = f"the size of its image, {image[2:]}, is not known"
        if reason is None and any(n % k for n, k in zip(sizes, window, strict=True)):
            reason = f"an image of {sizes} is no whole number of patches of {[*window]}"
        if reason is not None:
            return refusal(node, reason)
        return _Patches(node, window, tuple(n // k for n, k in zip(sizes, window, strict=True)))

    def rewrite(self, editor: GraphEditor, match: _Patches) -> None:
        """Write the product."""
        write = _from_rows if match.node.op == "ConvTranspose" else _to_rows
        editor.replace(match.node.outputs[0], write(editor, match))


class PatchProducts(_PatchRule):
    """Replace the first layers of networks that cut pictures into patches, and upsampling convolutions."""

    name = "patch-products"
    ops = ("Conv", "ConvTranspose")
    choice_words = "a convolution of patches that do not overlap is a product of matrices"


class OtherPatchProducts(_PatchRule):
    """Replace those that read whole pixels, or of which little is summed, where that is chosen."""

    name = "other-patch-products"
    ops = ("Conv", "ConvTranspose")
    is_usual = False
    choice_words = "a convolution of patches that do not overlap stays one"


def _is_usual(node: gs.Node, weight: list[int]) -> bool:
    """Whether a product is expected to be faster."""
    if node.op == "ConvTranspose":
        return weight[0] >= LONG
    single = 1 in ((dims(node.inputs[0]) or [None])[0], weight[1])
    return weight[1] < VECTOR and prod(weight[1:]) >= (LONG if single else LONGER)


def _why_no_patches(node: gs.Node) -> str | None:
    if int(node.attrs.get("group", 1)) != 1:
        return f"'{node.name}' has groups of channels"
    if pads(node) or pads_by_itself(node):
        return f"'{node.name}' pads"
    if any(int(each) != 1 for each in node.attrs.get("dilations", [])):
        return f"'{node.name}' is dilated"
    if any(int(each) for each in node.attrs.get("output_padding", [])):
        return f"'{node.name}' pads its output"
    return None


def _to_rows(editor: GraphEditor, match: _Patches) -> gs.Tensor:
    """An image made of the product of the patches of another one."""
    node, part = match.node, NodeParts(editor, match.node)
    x, weight = node.inputs[:2]
    batch, filters, channels = x.shape[0], *map(int, weight.shape[:2])
    cut = [size for pair in zip(match.grid, match.window, strict=True) for size in pair]
    places, inside = range(2, 2 + len(cut), 2), range(3, 2 + len(cut), 2)
    apart = part.reshaped(x, [batch, channels, *cut])
    patches = part.transposed(apart, [0, *places, 1, *inside])
    rows = part.reshaped(patches, [batch, prod(match.grid), channels * prod(match.window)])
    name = editor.new_name(f"{weight.name}_rows")
    matrix = moved_constant(name, weight, lambda held: held.reshape(filters, -1).T)
    product = _product(part, rows, matrix, given(node, 2))
    return part.reshaped(part.transposed(product, [0, 2, 1]), [batch, filters, *match.grid])


def _from_rows(editor: GraphEditor, match: _Patches) -> gs.Tensor:
    """An image made of patches that are the rows of a product, whose other rows are pixels."""
    node, part = match.node, NodeParts(editor, match.node)
    x, weight = node.inputs[:2]
    batch, channels, filters = x.shape[0], *map(int, weight.shape[:2])
    axes, patch = len(match.window), prod(match.window)
    pixels = part.reshaped(x, [batch, channels, prod(match.grid)])
    order = (0, *range(2, 2 + axes), 1)
    name = editor.new_name(f"{weight.name}_rows")
    matrix = moved_constant(
        name, weight, lambda held: held.transpose(order).reshape(channels, patch * filters)
    )
    bias = given(node, 2)
    if bias is not None:
        name = editor.new_name(f"{bias.name}_rows")
        bias = moved_constant(name, bias, lambda held: np.tile(held, patch))
    product = _product(part, part.transposed(pixels, [0, 2, 1]), matrix, bias)
    apart = part.reshaped(product, [batch, *match.grid, *match.window, filters])
    places = [
        axis for pair in zip(range(axes), range(axes, 2 * axes), strict=True) for axis in pair
    ]
    image = part.transposed(apart, [0, 1 + 2 * axes, *(1 + axis for axis in places)])
    return part.reshaped(image, list(node.outputs[0].shape))


def _product(
    part: NodeParts, rows: gs.Tensor, matrix: gs.Constant, bias: gs.Tensor | None
) -> gs.Tensor:
    shape: Dims = [*rows.shape[:2], int(matrix.shape[1])]
    product = part.add("MatMul", rows, matrix, shape=shape)
    return product if bias is None else part.add("Add", product, bias, shape=shape)
