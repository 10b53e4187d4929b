"""Decide which values of a graph are stored channels last.

A value is *wanted* channels last when it matters more to an operator that reads it to have each pixel's channels
side by side than to another to have it as it is (`body_orders` says how much), directly or through operators, data
movements and shuffles of channels that can pass the order on. It *becomes* channels last when it is wanted and its
producer can write it so: an operator always can (its body transposes), a data movement or a shuffle when what it reads
is channels last.

Graph inputs and outputs keep their order: the operators at the edges read and write it.
"""

from collections.abc import Callable, Sequence

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.functions import calls, is_call
from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.query import is_graph_output, is_op, rank
from wpk.graph_passes.layout.axes import FOLLOWERS, RANKS, to_last, why_not_follow
from wpk.graph_passes.layout.body_orders import Weight, passes_last_on, weight_of
from wpk.graph_passes.movement.chains.views import Views, trace, views_before

CHOICE = "an operator stores what it makes channels last"


class LayoutPlan:
    """The values of one graph that shall be channels last."""

    def __init__(
        self,
        graph: gs.Graph,
        refuse: Callable[[gs.Node, str], None],
        takes: Callable[[Sequence[gs.Node], str], bool],
    ) -> None:
        """Decide for all values.

        Args:
            graph: Its values.
            refuse: Told who could have been asked and cannot.
            takes: Decides, given what an operator computes, whether its result is stored channels last.
        """
        self._graph, self._takes = graph, takes
        self._functions = {id(node): function for node, function in calls(graph)}
        self._asked: set[int] = set()
        self._wanted: set[int] = set()
        self._last: set[int] = set()
        for node in reversed(graph.nodes):
            self._want(node, refuse)
        for node in graph.nodes:
            if self._becomes_last(node):
                self._last.update(id(tensor) for tensor in node.outputs)

    def is_last(self, tensor: gs.Tensor) -> bool:
        """Tell whether ``tensor`` shall be stored channels last."""
        return id(tensor) in self._last

    def _want(self, node: gs.Node, refuse: Callable[[gs.Node, str], None]) -> None:
        """Note the outputs of ``node`` as wanted, if they are and it could write them."""
        if not any(self._is_asked_for(tensor) for tensor in node.outputs):
            return
        if any(rank(tensor) not in RANKS for tensor in node.outputs):
            return
        reason = self._why_not(node)
        if reason is not None:
            refuse(node, reason)
            return
        function = self._functions.get(id(node))
        if function is not None and not self._takes(_computed(function), CHOICE):
            return
        self._wanted.update(id(tensor) for tensor in node.outputs)
        if is_op(node, *VIEWS):
            self._asked.add(id(views_before(node.outputs[0])[0].inputs[0]))

    def _is_asked_for(self, tensor: gs.Tensor) -> bool:
        return (
            id(tensor) in self._asked
            or any(self._passes_on(tensor, reader) for reader in tensor.outputs)
            or self._outweighs(tensor)
        )

    def _outweighs(self, tensor: gs.Tensor) -> bool:
        """Whether channels last matters more to a reader than the order as it is does to any.

        Else a sequence whose readers differ would be turned, and turned back in the next round.
        """
        if rank(tensor) not in RANKS:
            return False
        dimensions = rank(tensor) or 0
        last, as_is = Weight.NONE, Weight.NONE
        for reader in tensor.outputs:
            function = self._functions.get(id(reader))
            if function is not None:
                index = _index(reader, tensor)
                last = max(last, weight_of(function, index, to_last(dimensions)))
                as_is = max(as_is, weight_of(function, index, list(range(dimensions))))
        return last > as_is

    def _passes_on(self, tensor: gs.Tensor, reader: gs.Node) -> bool:
        """Whether what a reader gives is wanted channels last, and ``tensor`` best lies like it."""
        wanted = [each for each in reader.outputs if id(each) in self._wanted]
        function = self._functions.get(id(reader))
        if function is not None:
            index, as_is = _index(reader, tensor), list(range(rank(tensor) or 0))
            return (
                bool(wanted)
                and passes_last_on(function, index)
                and weight_of(function, index, as_is) is Weight.NONE
            )
        return is_op(reader, *FOLLOWERS) and any(rank(each) == rank(tensor) for each in wanted)

    def _why_not(self, node: gs.Node) -> str | None:
        for tensor in node.outputs:
            if is_graph_output(self._graph, tensor):
                return f"'{tensor.name}' is a graph output and keeps its order"
        if is_call(node):
            beside = len(node.outputs) > 1
            return "it gives moments of its rows, and keeps their order" if beside else None
        if is_op(node, *VIEWS):
            return None if _keeps_pixels(node) else f"{node.op} changes more than channels"
        return why_not_follow(node)

    def _becomes_last(self, node: gs.Node) -> bool:
        if not any(id(tensor) in self._wanted for tensor in node.outputs):
            return False
        if is_call(node):
            return True
        if is_op(node, *VIEWS):
            return _keeps_pixels(node) and self.is_last(views_before(node.outputs[0])[0].inputs[0])
        return is_op(node, *FOLLOWERS) and any(self.is_last(tensor) for tensor in node.inputs)


def _computed(function: gs.Function) -> list[gs.Node]:
    """What an operator computes, in whichever order it reads and writes."""
    return [node for node in function.nodes if not is_op(node, *VIEWS)]


def _keeps_pixels(node: gs.Node) -> bool:
    """Whether the views up to ``node`` keep the batch, and move channels within a pixel or to new pixels beside it.

    Or keep both, and write a sequence of pixels as an image, or an image as one.
    """
    chain = views_before(node.outputs[0])
    views = trace(chain[0].inputs[0], chain)
    if views is None or len(views.source) not in RANKS:
        return False
    if len(views.source) != len(views.target):
        return _moves_pixels_alone(views)
    for axis, group in enumerate(views.groups):
        own, others = group[:1], group[1:]
        if axis != 1 and any(factor.axis != axis or factor.step != 1 for factor in own):
            return False
        if any(factor.axis != 1 for factor in (group if axis == 1 else others)):
            return False
    return views.source[0] == views.target[0]


def _moves_pixels_alone(views: Views) -> bool:
    """Whether the batch and the channels stay what they are, so that all else is where pixels are."""
    return views.source[:2] == views.target[:2] and all(
        {factor.axis for factor in group} <= {axis} for axis, group in enumerate(views.groups[:2])
    )


def _index(reader: gs.Node, tensor: gs.Tensor) -> int:
    return next(i for i, candidate in enumerate(reader.inputs) if candidate is tensor)
