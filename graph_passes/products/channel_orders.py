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

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.core import GraphEditor, GraphPass, PassResult
from wpk.graph_passes.core.kinds import ELEMENTWISE
from wpk.graph_passes.core.query import (
    floats,
    given,
    is_op,
    live_nodes,
    made_by,
    producer,
    rank,
    why_shared,
)
from wpk.graph_passes.fold.linear_operator import float_weight, output_channels, why_not_linear
from wpk.graph_passes.products.channel_places import (
    AXIS,
    Channels,
    Places,
    channel_count,
    channels_of,
    readers_behind_movement,
)

_ALIGNED_BYTES = 16
_MOST_GROWTH = 2
"""How many times as many channels a product may read or write."""


@dataclass(frozen=True)
class _Made:
    """What a convolution and the element-wise nodes behind it make."""

    conv: gs.Node
    behind: tuple[gs.Node, ...]


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
            grown = len(channels.places) < (channel_count(source) or 0)
            return _why_not_wider(reader, channel_count(source) or 0, len(channels.places), grown)
        return self._why_not_depthwise(reader, channels)

    def _why_not_depthwise(self, conv: gs.Node, channels: Channels) -> str | None:
        output, shape = conv.outputs[0], conv.inputs[1].shape
        depthwise = int(shape[1]) == 1 and int(shape[0]) == len(channels.places)
        if not depthwise or not channels.are_all():
            return f"'{conv.name}' has groups of channels"
        readers = readers_behind_movement(self._graph, output)
        return next((r for r in (self._why_not(output, *each) for each in readers) if r), None)

    def _join(self, node: gs.Node) -> _Join | None:
        """What a Concat joins; None where it stays."""
        if len(node.inputs) != 2:
            return None
        made = [_made(self._graph, tensor) for tensor in node.inputs]
        channels = [channels_of(tensor) for tensor in node.inputs]
        total = channel_count(node.outputs[0]) or 0
        for place in (1, 0):
            last, kept = made[place], channels[1 - place]
            if (
                last is None
                or kept is None
                or len(kept.places) == (channel_count(kept.source) or 0)
            ):
                continue
            width = channel_count(kept.source) or 0
            own = output_channels(last.conv)
            unique = len(set(kept.places.tolist())) == len(kept.places)
            if width >= total and unique and _why_not_wider(last.conv, width, own, True) is None:
                return _Join(node, node.inputs[1 - place], node.inputs[place], is_made=False)
        first, last = made
        begins = channel_count(node.inputs[0]) or 0
        if first is None or last is None or begins % self._aligned == 0:
            return None
        if any(_why_not_wider(m.conv, total, output_channels(m.conv), True) for m in (first, last)):
            return None
        return _Join(node, *node.inputs, is_made=True)

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
        last = _made(self._graph, join.last)
        assert last is not None
        own = output_channels(last.conv)
        if join.is_made:
            first = _made(self._graph, join.kept)
            assert first is not None
            kept = np.arange(output_channels(first.conv), dtype=np.int64)
            source = self._wider(first, len(kept) + own, kept)
        else:
            found = self._now(join.kept)
            source, kept = found.source, found.places
        width = channel_count(source) or 0
        places = np.setdiff1d(np.arange(width, dtype=np.int64), kept)[:own]
        stays = np.ones((1, width, *[1] * ((rank(output) or 2) - 2)), np.bool_)
        stays[:, places] = False
        new = self._wider(last, width, places)
        mask = editor.constant(f"{output.name}_stays", stays)
        name, shape = f"{output.name}_in_place", _with_channels(output, width)
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
            made, width = reader.outputs[0], channel_count(channels.source) or 0
            weight = float_weight(reader)
            depthwise = int(reader.attrs.get("group", 1)) != 1
            if depthwise:
                wide = weight[np.argsort(channels.places)]
            else:
                wide = np.zeros((len(weight), width, *weight.shape[2:]))
                np.add.at(wide, (slice(None), channels.places), weight)
            bias = floats(given(reader, 2))
            if bias is not None and depthwise:
                bias = bias[np.argsort(channels.places)]
            new = self._convolution(reader, channels.source, wide, bias, len(wide))
            if depthwise:
                self._new[id(made)] = Channels(new, channels.places)
                self._read(made)
            else:
                self._editor.replace(made, new)

    def _wider(self, made: _Made, width: int, places: Places) -> gs.Tensor:
        """Compute what is made as some of ``width`` channels; what the others hold is not read."""
        weight, bias = float_weight(made.conv), floats(given(made.conv, 2))
        wide = np.zeros((width, *weight.shape[1:]))
        wide[places] = weight
        wide_bias = None
        if bias is not None:
            wide_bias = np.zeros(width)
            wide_bias[places] = bias
        tensor = self._convolution(made.conv, made.conv.inputs[0], wide, wide_bias, width)
        for node in made.behind:
            inputs = [tensor if t is _data(node) else t for t in node.inputs]
            shape = _with_channels(node.outputs[0], width)
            tensor = self._editor.add(
                node.op, inputs, like=node.outputs[0], shape=shape, attrs=node.attrs
            )
        return tensor

    def _convolution(
        self,
        conv: gs.Node,
        source: gs.Tensor,
        weight: np.ndarray,
        bias: np.ndarray | None,
        width: int,
    ) -> gs.Tensor:
        editor, old = self._editor, conv.inputs[1]
        inputs = [source, editor.constant(f"{old.name}_placed", weight, old.dtype)]
        if bias is not None:
            inputs.append(editor.constant(f"{conv.inputs[2].name}_placed", bias, old.dtype))
        shape = _with_channels(conv.outputs[0], width)
        name = f"{conv.name}_placed"
        return editor.add(
            "Conv", inputs, like=conv.outputs[0], shape=shape, name=name, attrs=conv.attrs
        )


def _made(graph: gs.Graph, tensor: gs.Tensor) -> _Made | None:
    """The convolution that makes a tensor for one reader, with the nodes behind it that take one number."""
    behind: list[gs.Node] = []
    while why_shared(graph, tensor) is None:
        conv = made_by(tensor, "Conv")
        if conv is not None:
            plain = int(conv.attrs.get("group", 1)) == 1 and why_not_linear(conv) is None
            return _Made(conv, tuple(behind)) if plain else None
        node = producer(tensor)
        if node is None or not is_op(node, *ELEMENTWISE) or _data(node) is None:
            return None
        behind.insert(0, node)
        tensor = node.inputs[0]
    return None


def _data(node: gs.Node) -> gs.Tensor | None:
    """The first input, where all others are single constants."""
    others: Sequence[gs.Tensor] = node.inputs[1:]
    single = all(
        each.is_empty() or (isinstance(each, gs.Constant) and each.values.size == 1)
        for each in others
    )
    return node.inputs[0] if single else None


def _why_not_wider(conv: gs.Node, width: int, own: int, grown: bool) -> str | None:
    """Why a convolution cannot read or write ``width`` channels instead of ``own``."""
    window = conv.inputs[1].shape[2:]
    if grown and (width > _MOST_GROWTH * own or any(size != 1 for size in window)):
        return f"'{conv.name}' would multiply {width} channels instead of {own}"
    return None


def _with_channels(tensor: gs.Tensor, channels: int) -> list[int | str | None]:
    shape = list(tensor.shape)
    shape[AXIS] = channels
    return shape
