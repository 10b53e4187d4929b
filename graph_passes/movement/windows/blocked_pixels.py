"""Put the pixels of an image in the order of its blocks by one Gather, where no views can read them so.

    Reshape(Transpose(Reshape(x)))  ->  views of Gather(pixels of x, places)        x: [b, c, h, w], of a convolution
    Reshape(Transpose(Reshape(y)))  ->  Gather(pixels of y, places)                 to [b, c, h, w], for one

A block's row and column become one dimension, which has no single stride in the image: each reader would make a copy of its
own, or two. Exact: no element is computed. What attention reads and writes itself has no such views left
(`windows-in-attention`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import GraphEditor, Rule
from wpk.graph_passes.core.kinds import SPATIAL, is_elementwise
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import is_op, producer, static_shape
from wpk.graph_passes.movement.chains.reshape_chains import RESHAPES
from wpk.graph_passes.movement.chains.views import Factor, Views, trace, views_before

_LEAST_CHANNELS = 8
"""Of a pixel that is worth copying as a run."""


@dataclass(frozen=True)
class _Blocks:
    """Views between an image and its blocks.

    Attributes:
        last: The last of the views.
        source: What the first one reads.
        views: What they do.
        from_image: Whether the source is the image; else their result is.
    """

    last: gs.Node
    source: gs.Tensor
    views: Views
    from_image: bool


class BlockedPixels(Rule[_Blocks]):
    """Write a Gather of pixels where a Reshape joins what lies apart."""

    name = "blocked-pixels"
    ops = RESHAPES

    def match(self, graph: gs.Graph, node: gs.Node) -> _Blocks | None:
        """Match the Reshape that first has a dimension without a stride in an image, or that makes an image."""
        del graph
        chain = views_before(node.outputs[0])
        source = chain[0].inputs[0]
        views = trace(source, chain)
        if views is None or any(not isinstance(n, int) for n in (*views.source, *views.target)):
            return None
        if views.reads_strided() or views.writes_strided():
            return None
        before = trace(source, chain[:-1])
        if _is_image(views.source) and _is_made_by_convolution(source):
            is_first = before is not None and before.reads_strided()
            return _Blocks(node, source, views, True) if is_first and _has_parts(views) else None
        if _is_image(views.target) and _is_read_by_convolution(node.outputs[0]):
            return _Blocks(node, source, views, False) if _has_rows(views) else None
        return None

    def rewrite(self, editor: GraphEditor, match: _Blocks) -> None:
        """Write the Gather between views that have strides."""
        parts = NodeParts(editor, match.last)
        made = (_from_image if match.from_image else _to_image)(parts, match)
        editor.replace(match.last.outputs[0], made)


def _is_image(shape: Sequence[object]) -> bool:
    return len(shape) == 4 and isinstance(shape[1], int) and shape[1] >= _LEAST_CHANNELS


def _is_made_by_convolution(tensor: gs.Tensor) -> bool:
    node = producer(tensor)
    while node is not None and is_elementwise(node):
        node = producer(node.inputs[0])
    return is_op(node, *SPATIAL)


def _is_read_by_convolution(tensor: gs.Tensor) -> bool:
    """Whether all ways on, through element-wise nodes, end in such operators."""
    waiting, seen = [tensor], {id(tensor)}
    while waiting:
        readers = [node for node in waiting.pop().outputs if not is_op(node, *SPATIAL)]
        made = [node.outputs[0] for node in readers if is_elementwise(node)]
        if len(made) < len(readers) or any(not each.outputs for each in made):
            return False
        waiting += [each for each in made if id(each) not in seen]
        seen.update(map(id, made))
    return bool(tensor.outputs)


def _has_parts(views: Views) -> bool:
    """Whether an image's pixels change their order, and the batch stays in front of all that comes of it."""
    factors = _in_order(views)
    places = [factor for factor in factors if factor.axis > 1]
    return all(factor.axis for factor in factors[1:]) and places != _by_place(places)


def _has_rows(views: Views) -> bool:
    """Whether an image is made of rows of channels, in another order than its pixels', its batch in front."""
    batch, channels, *_ = views.groups
    places = [f for group in views.groups[2:] for f in group]
    is_made_of_rows = all(f.axis == 0 for f in batch) and bool(channels)
    return is_made_of_rows and places != _by_place(places)


def _in_order(views: Views) -> list[Factor]:
    """All factors in the order of the target."""
    return [factor for group in views.groups for factor in group]


def _sizes(factors: Sequence[Factor]) -> list[int]:
    return [int(factor.size) for factor in factors]


def _by_place(factors: Sequence[Factor]) -> list[Factor]:
    """Factors in the order in which they lie in the source."""
    return sorted(factors, key=lambda factor: (factor.axis, -factor.step))


def _turned(factors: Sequence[Factor], wanted: Sequence[Factor]) -> list[int]:
    """The permutation that puts factors in another order."""
    return [factors.index(factor) for factor in wanted]


def _from_image(parts: NodeParts, match: _Blocks) -> gs.Tensor:
    views = match.views
    batch, channels, height, width = (int(size) for size in views.source if size is not None)
    wanted = _in_order(views)
    front = [f for f in wanted if f.axis == 0]
    depth = _by_place([f for f in wanted if f.axis == 1])
    places = [f for f in wanted if f.axis > 1]
    lying = _by_place(places)
    order = np.arange(height * width).reshape(_sizes(lying)).transpose(_turned(lying, places))
    rows = parts.reshaped(
        parts.transposed(match.source, [0, 2, 3, 1]), [batch, height * width, channels]
    )
    blocks = _gathered(parts, rows, order)
    held = [*front, *places, *depth]
    whole = parts.reshaped(blocks, _sizes(held))
    turned = parts.transposed(whole, _turned(held, wanted))
    return parts.reshaped(turned, static_shape(match.last.outputs[0]) or [])


def _to_image(parts: NodeParts, match: _Blocks) -> gs.Tensor:
    views = match.views
    batch, channels, height, width = (int(size) for size in views.target if size is not None)
    front, depth = list(views.groups[0]), list(views.groups[1])
    places = [f for group in views.groups[2:] for f in group]
    lying, held = _by_place(places), _by_place(_in_order(views))
    order = np.arange(height * width).reshape(_sizes(lying)).transpose(_turned(lying, places))
    whole = parts.reshaped(match.source, _sizes(held))
    turned = parts.transposed(whole, _turned(held, [*front, *lying, *depth]))
    rows = parts.reshaped(turned, [batch, height * width, channels])
    image = parts.reshaped(_gathered(parts, rows, order), [batch, height, width, channels])
    return parts.transposed(image, [0, 3, 1, 2])


def _gathered(parts: NodeParts, rows: gs.Tensor, order: NDArray[np.int64]) -> gs.Tensor:
    return parts.add("Gather", rows, parts.ints(order.reshape(-1)), axis=1)
