"""Nodes that go to ONNX Runtime, neighbours together where that makes no cycle.

TopK -> GatherElements           one group
TopK -> Relu -> GatherElements   two, though TopK's indices go to GatherElements directly
NonZero -> Shape -> Concat -> ReduceMin -> TopK   one, where Concat, which has a kernel, joins a few numbers
"""

from collections.abc import Collection, Sequence

import onnx_graphsurgeon as gs

from wpk.graph_passes import read_tensors


def grouped(
    nodes: Sequence[gs.Node], names: Collection[str], alone: Collection[str] = ()
) -> list[list[gs.Node]]:
    """Return the named nodes as groups, in order; each holds a node and what it is joined to.

    Args:
        nodes: All nodes of the graph, in an order in which they can run.
        names: Of those that are grouped.
        alone: Of those of them that are joined to nothing.
    """
    clusters = _Clusters(nodes)
    chosen = [node.name in names for node in nodes]
    joined = [each and node.name not in alone for node, each in zip(nodes, chosen, strict=True)]
    pairs = [
        (maker, place)
        for place, makers in enumerate(clusters.makers)
        for maker in makers
        if joined[place] and joined[maker]
    ]
    while sum(clusters.join(*pair) for pair in pairs):
        # What led around two may be a part of one of them now.
        apart = {(clusters.of(maker), clusters.of(reader)) for maker, reader in pairs}
        pairs = sorted(pair for pair in apart if pair[0] != pair[1])
    found: dict[int, list[gs.Node]] = {}
    for place, node in enumerate(nodes):
        if chosen[place]:
            found.setdefault(clusters.of(place), []).append(node)
    return list(found.values())


def between(nodes: Sequence[gs.Node], names: Collection[str], few: Collection[str]) -> set[str]:
    """Return the nodes that only stand between such as go to ONNX Runtime: on every way from one to others.

    Args:
        nodes: All nodes of the graph, in an order in which they can run.
        names: Of those that go to ONNX Runtime.
        few: Of those that may stand between them.
    """
    clusters, behind = _Clusters(nodes), set[int]()
    for place, node in enumerate(nodes):
        if node.name in names or (
            node.name in few and any(maker in behind for maker in clusters.makers[place])
        ):
            behind.add(place)
    found = set[int]()
    for place in sorted(behind, reverse=True):
        readers = clusters.readers[place]
        if nodes[place].name in names or (readers and readers <= found):
            found.add(place)
    return {nodes[place].name for place in found} - set(names)


class _Clusters:
    """Nodes by their places, joined step by step.

    Attributes:
        makers: For each node the places of those whose results it reads.
        readers: For each node the places of those that read its results, and in time those of its cluster.
    """

    def __init__(self, nodes: Sequence[gs.Node]) -> None:
        place = {id(node): number for number, node in enumerate(nodes)}
        self.makers = [
            sorted({place[id(m)] for t in read_tensors(n) for m in t.inputs if id(m) in place})
            for n in nodes
        ]
        self._parent = list(range(len(nodes)))
        self.readers: list[set[int]] = [set() for _ in nodes]
        for reader, makers in enumerate(self.makers):
            for maker in makers:
                self.readers[maker].add(reader)

    def of(self, place: int) -> int:
        """The cluster of a node."""
        while self._parent[place] != place:
            self._parent[place] = self._parent[self._parent[place]]
            place = self._parent[place]
        return place

    def join(self, maker: int, reader: int) -> bool:
        """Join two nodes' clusters, unless something between them would have to wait for itself; say whether."""
        one, other = self.of(maker), self.of(reader)
        if one == other or self._leads_around(one, other):
            return False
        self._parent[other] = one
        self.readers[one] |= self.readers[other]
        return True

    def _leads_around(self, one: int, other: int) -> bool:
        """Whether a way leads from one cluster to another through a third."""
        seen = {one}
        waiting = [c for r in self.readers[one] if (c := self.of(r)) not in (one, other)]
        while waiting:
            cluster = waiting.pop()
            if cluster == other:
                return True
            if cluster in seen:
                continue
            seen.add(cluster)
            waiting.extend(self.of(reader) for reader in self.readers[cluster])
        return False
