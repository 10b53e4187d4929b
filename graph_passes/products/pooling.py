"""Average pooling beside a product over channels, which it commutes with.

    AveragePool(Conv(x; W, b))   ->  Conv(x; [W W ..] / n, b)        windows that tile: stride = size
    Conv(AveragePool(x); W, b)   ->  AveragePool(Conv(x; W)) + b     stride 1, where W narrows

W is 1x1 and dense: it mixes channels, pooling mixes places, in whichever order. The first form is one
operator with as many operations as the product alone had, and rounds nothing between the two. The
second pools fewer channels, and lets the product join those beside it (`join_siblings`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import (
    dims,
    floats,
    given,
    made_by,
    pads,
    rank,
    why_shared,
    window_numbers,
)
from wpk.graph_passes.fold.linear_operator import (
    float_weight,
    input_channels,
    output_channels,
    why_not_linear,
)


@dataclass(frozen=True)
class _PooledProduct:
    """A pooling and a product over channels, one of which reads the other."""

    pool: gs.Node
    product: gs.Node


class PoolIntoProduct(Rule[_PooledProduct]):
    """Replace ``AveragePool(Conv(x))`` by a Conv whose window is the pooling's."""

    name = "pool-into-product"
    ops = ("AveragePool",)
    is_choice = True
    choice_words = "a product computes the average pooling behind it"

    def decided_over(self, match: _PooledProduct) -> Sequence[gs.Node]:
        """Return the product and the pooling."""
        return match.product, match.pool

    def match(self, graph: gs.Graph, node: gs.Node) -> _PooledProduct | Refusal | None:
        """Match poolings that are the only reader of a 1x1 convolution."""
        product = made_by(node.inputs[0], "Conv")
        if product is None:
            return None
        reason = _why_not_channels_only(product) or why_shared(graph, product.outputs[0])
        reason = reason or _why_not_tiles(node)
        return refusal(node, reason) or _PooledProduct(node, product)

    def rewrite(self, editor: GraphEditor, match: _PooledProduct) -> None:
        """Write the Conv."""
        pool, product = match.pool, match.product
        old, output = product.inputs[1], pool.outputs[0]
        weight = float_weight(product)
        window = [int(size) for size in pool.attrs["kernel_shape"]]
        tiled = np.broadcast_to(weight / math.prod(window), (*weight.shape[:2], *window))
        inputs = [
            product.inputs[0],
            editor.constant(f"{old.name}_pooled", tiled, old.dtype),
            *list(product.inputs)[2:],
        ]
        attrs = {"kernel_shape": window, "strides": window}
        editor.replace(
            output,
            editor.add("Conv", inputs, like=output, name=f"{product.name}_pooled", attrs=attrs),
        )


class PoolBehindProduct(Rule[_PooledProduct]):
    """Replace ``Conv(AveragePool(x))`` by the pooling of a narrower product."""

    name = "pool-behind-product"
    ops = ("Conv",)
    is_choice = True
    choice_words = "an average pooling is behind the product that it was before"

    def decided_over(self, match: _PooledProduct) -> Sequence[gs.Node]:
        """Return the pooling and the product."""
        return match.pool, match.product

    def match(self, graph: gs.Graph, node: gs.Node) -> _PooledProduct | Refusal | None:
        """Match 1x1 convolutions that alone read a pooling of stride 1."""
        pool = made_by(node.inputs[0], "AveragePool")
        if pool is None:
            return None
        reason = _why_not_channels_only(node) or why_shared(graph, pool.outputs[0])
        reason = reason or _why_not_cheaper(pool, node)
        return refusal(node, reason) or _PooledProduct(pool, node)

    def rewrite(self, editor: GraphEditor, match: _PooledProduct) -> None:
        """Write the pooling behind the product, and the bias behind both."""
        pool, product = match.pool, match.product
        source, output = pool.inputs[0], product.outputs[0]
        shape = dims(source) or []
        if len(shape) == 4:
            shape[1] = output_channels(product)
        mixed = editor.add(
            "Conv",
            [source, product.inputs[1]],
            like=output,
            shape=shape,
            name=f"{product.name}_before_pool",
            attrs=dict(product.attrs),
        )
        pooled = editor.add("AveragePool", [mixed], like=output, attrs=dict(pool.attrs))
        bias = given(product, 2)
        if bias is not None:
            column = floats(bias)
            if column is None:
                raise ValueError("ask _why_not_channels_only first")
            name = f"{bias.name}_column"
            column_tensor = editor.constant(name, column.reshape(-1, 1, 1), bias.dtype)
            pooled = editor.add("Add", [pooled, column_tensor], like=output)
        editor.replace(output, pooled)


def _why_not_channels_only(product: gs.Node) -> str | None:
    """Say why a Conv does more than mix the channels of each place."""
    reason = why_not_linear(product)
    if reason is not None:
        return reason
    if int(product.attrs.get("group", 1)) != 1:
        return f"'{product.name}' has groups of channels"
    size = product.inputs[1].shape[2:]
    moves = [*product.attrs.get("strides", []), *size]
    if any(step != 1 for step in moves) or pads(product):
        return f"'{product.name}' does more than mix the channels of each place"
    if rank(product.outputs[0]) != 4:
        return f"'{product.outputs[0].name}' is no image"
    return None


def _why_not_tiles(pool: gs.Node) -> str | None:
    """Say why the windows of ``pool`` do not tile: overlap, leave gaps, or reach outside."""
    size = list(pool.attrs["kernel_shape"])
    if window_numbers(pool, "strides", len(size)) != size:
        return f"the windows of '{pool.name}' overlap or leave gaps"
    if pads(pool) or _rounds_up(pool):
        return f"the windows of '{pool.name}' reach outside the image"
    if any(step != 1 for step in pool.attrs.get("dilations", [])):
        return f"'{pool.name}' is dilated"
    return None


def _rounds_up(pool: gs.Node) -> bool:
    """Whether ``ceil_mode`` may add windows that reach outside; it adds none where sizes divide."""
    if not pool.attrs.get("ceil_mode", 0):
        return False
    plane = (dims(pool.inputs[0]) or [])[2:]
    known = [size for size in plane if isinstance(size, int)]
    steps = pool.attrs["kernel_shape"]
    if len(known) != len(plane):
        return True
    return any(size % step for size, step in zip(known, steps, strict=True))


def _why_not_cheaper(pool: gs.Node, product: gs.Node) -> str | None:
    if any(step != 1 for step in pool.attrs.get("strides", [])):
        return f"'{pool.name}' shrinks the image, which makes the product behind it cheaper"
    if len(pool.outputs) != 1 or output_channels(product) >= input_channels(product):
        return f"'{product.name}' does not narrow"
    return None
