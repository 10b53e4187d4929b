"""Let convolutions read and write channels where they lie, instead of moving channels between them.

    Conv(x[i]; W)                  ->  Conv(x; W')                    W' is 0 for the channels that are not read
    DepthwiseConv(x[i]; W)         ->  DepthwiseConv(x; W')[i]        i holds every channel once
    Concat(x[i], f(Conv(y; W)))    ->  Where(m, x, f(Conv(y; W')))[j] new channels take the places of others
    Concat(f(Conv(z)), g(Conv(y))) ->  Where(m, f(Conv'(z)), g(Conv'(y)))[j]   where a part begins unaligned

``[i]`` is what Split, Slice and channel shuffles make. Networks that shuffle channels (ShuffleNet V2, Ma et al.
2018) move all channels in front of and behind each unit; here none is moved, and half of each sum is of zeros.
Exact for finite numbers: a channel that was not read before makes no difference unless it is infinite. All
readers of such a tensor must take the order that it gets.
"""

from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.query import is_op, live_nodes, rank
from wpk.graph_passes.fold.linear_operator import output_channels, why_not_linear
from wpk.graph_passes.products.channel_places import (
    AXIS,
    Channels,
    channel_count,
    channels_of,
    readers_behind_movement,
)
from wpk.graph_passes.products.placed_channels import (
    Made,
    is_depthwise,
    made_by_convolution,
    read_among,
    why_not_wider,
    with_channels,
    write_among,
)

_ALIGNED_BYTES = 16


@dataclass(frozen=True)
class _Join:
    """A Concat of channels that stay where they are, and of those that a convolution makes.

    Attributes:
        node: The Concat.
        kept: What stays.
        last: What a convolution writes into the places between.
        is_made: Whether ``kept`` is made, too, by a convolution that leaves these places.
    """

    node: gs.Node
    kept: gs.Tensor
    last: gs.Tensor
    is_made: bool


class ChannelOrders(GraphPass):
    """Move orders of channels into weights.

    The pass sees the whole graph first: an order may only be changed where everyone who reads the tensor, also
    behind further joins, takes the new one.
    """

    name = "channel-orders"
    is_choice = True

    def __init__(self, storage: DType = DType.FP32) -> None:
        """Make the pass for tensors that will be stored in ``storage``."""
        self._aligned = _ALIGNED_BYTES // storage.bytes

    def apply(self, graph: gs.Graph) -> PassResult:
        """Decide over every Concat from the last to the first, then rewrite from the first to the last."""
        result = PassResult()
        plan = _Plan(graph, self._aligned, result)
        nodes = list(live_nodes(graph, "Concat"))
        for node in reversed(nodes):
            plan.decide(node)
        found = [node for node in nodes if plan.is_rewritten(node)]
        if found and self.takes(result, found, "channels stay where convolutions write them"):
            for node in found:
                plan.rewrite(node)
        return result


class _Plan:
    def __init__(self, graph: gs.Graph, aligned: int, result: PassResult) -> None:
        self._graph, self._aligned, self._result = graph, aligned, result
        self._editor = GraphEditor(graph)
        self._joins: dict[int, _Join] = {}
        self._folding: set[int] = set()
        self._new: dict[int, Channels] = {}

    def decide(self, node: gs.Node) -> None:
        """Decide whether a Concat is rewritten, and whether its readers take it as it lies."""
        output = node.outputs[0]
        if int(node.attrs["axis"]) % (rank(output) or 1) != AXIS or channel_count(output) is None:
            return
        readers = list(readers_behind_movement(self._graph, output))
        if not any(self._is_moved(tensor) for tensor, _ in readers):
            return
        reason = next((r for r in (self._why_not(output, *each) for each in readers) if r), None)
        if reason is not None:
            self._result.refuse(node, reason)
            return
        self._folding.add(id(node))
        join = self._join(node)
        if join is not None:
            self._joins[id(node)] = join

    def _is_moved(self, tensor: gs.Tensor) -> bool:
        channels = channels_of(tensor)
        return channels is not None and not channels.lie_together(self._aligned)

    def _why_not(self, source: gs.Tensor, tensor: gs.Tensor, reader: gs.Node | None) -> str | None:
        """Why a reader cannot read the channels of ``source`` in another order than it does."""
        channels = channels_of(tensor)
        if reader is None:
            return f"'{tensor.name}' is a graph output"
        if channels is None or channels.source is not source:
            return f"'{tensor.name}' holds other than whole channels of '{source.name}'"
        if is_op(reader, "Concat"):
            join = self._joins.get(id(reader))
            kept = join is not None and not join.is_made and join.kept is tensor
            return None if kept else f"Concat '{reader.name}' moves '{tensor.name}'"
        if not is_op(reader, "Conv") or reader.inputs[0] is not tensor:
            return f"{reader.op} '{reader.name}' reads '{tensor.name}'"
        reason = why_not_linear(reader)
        if reason is not None:
            return reason
        if int(reader.attrs.get("group", 1)) == 1:
            return why_not_wider(reader, channel_count(source) or 0, len(channels.places))
        return self._why_not_depthwise(reader, channels)

    def _why_not_depthwise(self, conv: gs.Node, channels: Channels) -> str | None:
        output = conv.outputs[0]
        if not is_depthwise(conv) or not channels.are_all():
            return f"'{conv.name}' has groups of channels"
        readers = readers_behind_movement(self._graph, output)
        return next((r for r in (self._why_not(output, *each) for each in readers) if r), None)

    def _join(self, node: gs.Node) -> _Join | None:
        """What a Concat joins; None where it stays."""
        if len(node.inputs) != 2:
            return None
        made = [made_by_convolution(self._graph, tensor) for tensor in node.inputs]
        total = channel_count(node.outputs[0]) or 0
        for place in (1, 0):
            kept, writer = node.inputs[1 - place], made[place]
            if writer is not None and _leaves_room(kept, writer, total):
                return _Join(node, kept, node.inputs[place], is_made=False)
        is_aligned = (channel_count(node.inputs[0]) or 0) % self._aligned == 0
        if is_aligned or not all(each is not None and _can_grow(each, total) for each in made):
            return None
        first, last = node.inputs
        return _Join(node, first, last, is_made=True)

    def is_rewritten(self, node: gs.Node) -> bool:
        """Whether the readers of a Concat take its channels as they lie."""
        return id(node) in self._folding

    def rewrite(self, node: gs.Node) -> None:
        """Write what a Concat becomes, and let its readers read it."""
        output = node.outputs[0]
        join = self._joins.get(id(node))
        if join is not None:
            self._new[id(output)] = self._written(join)
        self._read(output)
        self._result.rewritten += 1

    def _written(self, join: _Join) -> Channels:
        editor, output = self._editor, join.node.outputs[0]
        last = made_by_convolution(self._graph, join.last)
        assert last is not None
        if join.is_made:
            first = made_by_convolution(self._graph, join.kept)
            assert first is not None
            kept = np.arange(output_channels(first.conv), dtype=np.int64)
            source = write_among(editor, first, channel_count(output) or 0, kept)
        else:
            found = self._now(join.kept)
            source, kept = found.source, found.places
        width = channel_count(source) or 0
        places = np.setdiff1d(np.arange(width, dtype=np.int64), kept)
        stays = np.ones((1, width, *[1] * ((rank(output) or 2) - 2)), np.bool_)
        stays[:, places] = False
        new = write_among(editor, last, width, places)
        mask = editor.constant(f"{output.name}_stays", stays)
        name, shape = f"{output.name}_in_place", with_channels(output, width)
        whole = editor.add("Where", [mask, source, new], like=output, shape=shape, name=name)
        parts = (kept, places) if join.node.inputs[0] is join.kept else (places, kept)
        return Channels(whole, np.concatenate(parts))

    def _now(self, tensor: gs.Tensor) -> Channels:
        """The channels that a tensor has of what is there now."""
        channels = channels_of(tensor)
        assert channels is not None
        new = self._new.get(id(channels.source))
        return channels if new is None else Channels(new.source, new.places[channels.places])

    def _read(self, output: gs.Tensor) -> None:
        """Let the convolutions behind a tensor read it as it lies; joins follow in their turn."""
        for tensor, reader in list(readers_behind_movement(self._graph, output)):
            if not is_op(reader, "Conv") or reader is None:
                continue
            channels = self._now(tensor)
            if channels.source is tensor:
                continue
            made, new = reader.outputs[0], read_among(self._editor, reader, channels)
            if is_depthwise(reader):
                self._new[id(made)] = Channels(new, channels.places)
                self._read(made)
            else:
                self._editor.replace(made, new)


def _leaves_room(kept: gs.Tensor, last: Made, total: int) -> bool:
    """Whether what stays comes from a tensor whose other channels are as many as are written."""
    channels = channels_of(kept)
    if channels is None or len(np.unique(channels.places)) < len(channels.places):
        return False
    is_part = len(channels.places) < total == channel_count(channels.source)
    return is_part and _can_grow(last, total)


def _can_grow(made: Made, total: int) -> bool:
    return why_not_wider(made.conv, total, output_channels(made.conv)) is None
