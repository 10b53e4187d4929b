"""In which order tensors have the rows of an image, where row-wise operators pass it on.

A movement that only changes the order of rows begins a region: operators that treat each row alike keep the
order, attention over windows keeps it too, and a movement that undoes it ends the region. Nothing in a region
needs the order but attention.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core.kinds import ROWS, is_elementwise
from wpk.graph_passes.core.query import is_graph_output, is_op, producer, static_shape
from wpk.graph_passes.movement.chains.element_places import (
    Places,
    elements_of,
    moved_runs,
    moves,
    whole_rows,
)
from wpk.graph_passes.movement.windows.row_wise import is_row_wise
from wpk.graph_passes.movement.windows.window_cores import Core, core_of
from wpk.problems import windows_of

Rows = NDArray[np.int64]
"""Of each row of a tensor: which one of the image's it is."""

_MOST_ELEMENTS = 1 << 25


@dataclass(frozen=True)
class Reading:
    """An input of a node that is to read rows in the image's order.

    Attributes:
        node: The node.
        index: Which of its inputs.
        source: What movements make the input of; in the image's order, or to be so.
        source_first: Whether its channels are its second dimension; else rows are runs of its last.
        result_first: Whether those of the input are.
    """

    node: gs.Node
    index: int
    source: gs.Tensor
    source_first: bool
    result_first: bool


@dataclass(frozen=True)
class Attending:
    """Attention inside of a region.

    Attributes:
        sources: What views make queries, keys and values of, each row of one row of what is projected.
        merged: Its result, heads side by side.
        rows: The order of rows in which both have windows one after another.
    """

    sources: tuple[gs.Tensor, ...]
    merged: gs.Tensor
    rows: Rows


@dataclass(eq=False)
class Region:
    """What is computed between movements that undo each other."""

    is_sound: bool = True
    nodes: list[gs.Node] = field(default_factory=list)
    ordered: list[gs.Tensor] = field(default_factory=list)
    readings: list[Reading] = field(default_factory=list)
    attending: list[Attending] = field(default_factory=list)


@dataclass(frozen=True)
class _Ordered:
    """A tensor whose rows have another order than the image's."""

    rows: Rows
    region: Region


@dataclass(frozen=True)
class _Operand:
    """What a node reads: ``rows`` is None where they lie as the image's do."""

    source: gs.Tensor
    region: Region | None
    rows: Rows | None
    source_first: bool = False
    result_first: bool = False

    def reading(self, node: gs.Node, index: int) -> Reading:
        return Reading(node, index, self.source, self.source_first, self.result_first)


class RowOrders:
    """The regions of a graph whose nodes are in topological order."""

    def __init__(self, graph: gs.Graph) -> None:
        """Follow all orders of rows through the graph."""
        self._graph = graph
        self._ordered: dict[int, _Ordered] = {}
        self._regions: list[Region] = []
        self._cores: dict[int, Core] = {}
        inside: set[int] = set()
        for node in graph.nodes:
            core = core_of(graph, node)
            if core is not None:
                inside |= {id(each) for each in core.nodes}
                self._cores[id(core.nodes[-1])] = core
            if id(node) in self._cores:
                self._attend(self._cores[id(node)])
            elif id(node) not in inside and not moves(node):
                self._follow(node)

    def regions(self) -> Iterator[Region]:
        """Yield those in which attention alone needs the order, and that end everywhere."""
        known = {id(node) for node in self._graph.nodes}
        for region in self._regions:
            kept = (t for t in region.ordered if is_graph_output(self._graph, t))
            away = (n for t in region.ordered for n in t.outputs if id(n) not in known)
            if region.is_sound and region.attending and not any(kept) and not any(away):
                yield region

    def _follow(self, node: gs.Node) -> None:
        """Let a node pass its operands' order on, or see that it has none."""
        inputs = [(i, t) for i, t in enumerate(node.inputs) if isinstance(t, gs.Variable)]
        operands = [(i, self._operand(node, t)) for i, t in inputs if not t.is_empty()]
        regions = [each.region for _, each in operands if each is not None and each.region]
        orders = [each.rows if each is not None else None for _, each in operands]
        certain = all(each is not None for _, each in operands)
        if certain and all(rows is None for rows in orders):
            for index, each in operands:
                if each is not None and each.region is not None:
                    each.region.readings.append(each.reading(node, index))
            return
        begins = is_op(node, "MatMul", "Gemm", *ROWS)
        same = all(_equal(rows, orders[0]) for rows in orders)
        if not certain or not same or not is_row_wise(node) or not (regions or begins):
            self._give_up(regions)
            return
        region = self._one(regions)
        region.nodes.append(node)
        for index, each in operands:
            if each is not None:
                region.readings.append(each.reading(node, index))
        rows = orders[0]
        assert rows is not None
        self._order(node.outputs[0], rows, region)

    def _attend(self, core: Core) -> None:
        """Let attention pass the order of its windows on."""
        operands = (core.q, core.k, core.v)
        sources = [self._source(each) for each in operands]
        known = [self._ordered.get(id(each)) for each in sources]
        regions = [each.region for each in known if each is not None]
        if not regions:
            return
        first = known[0]
        merged = core.merged(self._graph)
        reads = (core.reads(*pair) for pair in zip(operands, sources, strict=True))
        parts = [core.parts(*pair) for pair in zip(operands, sources, strict=True)]
        if (
            merged is None
            or first is None
            or not all(each is not None and _equal(each.rows, first.rows) for each in known)
            or any(each is None for each in parts)
            or not all(reads)
            or windows_of(first.rows, core.tokens) is None
        ):
            self._give_up(regions)
            return
        region = self._one(regions)
        region.nodes += core.nodes
        unique = tuple({id(each): each for each in parts if each is not None}.values())
        region.attending.append(Attending(unique, merged, first.rows))
        self._order(merged, first.rows, region)
        region.ordered.pop()  # it keeps its order, and what reads it reads what is moved of it

    def _order(self, tensor: gs.Tensor, rows: Rows, region: Region) -> None:
        region.ordered.append(tensor)
        self._ordered[id(tensor)] = _Ordered(rows, region)

    def _source(self, tensor: gs.Tensor) -> gs.Tensor:
        """What movements make a tensor of, up to one whose order is known."""
        while id(tensor) not in self._ordered:
            node = producer(tensor)
            if node is None or not moves(node):
                break
            tensor = node.inputs[0]
        return tensor

    def _operand(self, node: gs.Node, tensor: gs.Tensor) -> _Operand | None:
        """How an input lies; None where its source has an order and it is not certain."""
        source = self._source(tensor)
        known = self._ordered.get(id(source))
        region = None if known is None else known.region
        if source is tensor:
            return _Operand(source, region, None if known is None else known.rows)
        begins = is_op(node, "MatMul", "Gemm", *ROWS) or is_elementwise(node)
        if known is None and not begins:
            return _Operand(source, None, None)
        found = _moved_rows(tensor, source, ends=known is not None)
        if found is None:
            return _Operand(source, None, None) if known is None else None
        rows, source_first, result_first = found
        rows = rows if known is None else known.rows[rows]
        straight = np.array_equal(rows, np.arange(len(rows)))
        return _Operand(source, region, None if straight else rows, source_first, result_first)

    def _one(self, regions: list[Region]) -> Region:
        """One region of several, or a new one."""
        unique = list({id(each): each for each in regions}.values())
        if not unique:
            self._regions.append(Region())
            return self._regions[-1]
        first, *others = unique
        for other in others:
            first.is_sound &= other.is_sound
            for name in ("nodes", "ordered", "readings", "attending"):
                getattr(first, name).extend(getattr(other, name))
            self._regions = [each for each in self._regions if each is not other]
            for key, each in self._ordered.items():
                if each.region is other:
                    self._ordered[key] = _Ordered(each.rows, first)
        return first

    def _give_up(self, regions: list[Region]) -> None:
        for each in regions:
            each.is_sound = False


def _equal(a: Rows | None, b: Rows | None) -> bool:
    return a is b or (a is not None and b is not None and np.array_equal(a, b))


def _moved_rows(
    tensor: gs.Tensor, source: gs.Tensor, *, ends: bool
) -> tuple[Rows, bool, bool] | None:
    """Rows of the source that a tensor has, all of them, and where both have their channels.

    Args:
        tensor: What movements make.
        source: What they make it of.
        ends: Whether the tensor may have its channels as second dimension.
    """
    shape, before = static_shape(tensor), static_shape(source)
    if shape is None or before is None or min(len(shape), len(before)) < 2:
        return None
    if np.prod(shape) != np.prod(before) or np.prod(shape) > _MOST_ELEMENTS:
        return None
    source_first = shape[-1] != before[-1] and len(before) > 2 and shape[-1] == before[1]
    result_first = ends and not source_first and len(shape) > 2 and shape[1] == before[-1]
    result_first = result_first and shape[-1] != before[-1]
    if not (source_first or result_first or shape[-1] == before[-1]):
        return None
    found = moved_runs(tensor, source)
    if found is None:
        return None
    if not (source_first or result_first):
        places, run = found
        rows = whole_rows(places, before[-1] // run)
        return None if rows is None else (rows, source_first, result_first)
    places = elements_of(*found)
    if source_first:
        places = _channels_last(places, before)
    if result_first:
        places = np.moveaxis(places, 1, -1)
    width = before[1] if source_first else before[-1]
    rows = whole_rows(np.ascontiguousarray(places), width)
    return None if rows is None else (rows, source_first, result_first)


def _channels_last(places: Places, shape: Sequence[int]) -> Places:
    """Where elements of a tensor whose channels are its second dimension lie in one that has them last."""
    images, channels, *pixels = shape
    elements = np.arange(int(np.prod(shape)), dtype=np.int64)
    last = elements.reshape(images, int(np.prod(pixels)), channels)
    return np.ascontiguousarray(last.swapaxes(1, 2)).ravel()[places]
