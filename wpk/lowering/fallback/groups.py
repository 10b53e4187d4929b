"""Nodes that go to ONNX Runtime, neighbours together where that makes no cycle.

TopK -> GatherElements           one group
TopK -> Relu -> GatherElements   two, though TopK's indices go to GatherElements directly
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
    for place, makers in enumerate(clusters.makers):
        for maker in makers if joined[place] else ():
            if joined[maker]:
                clusters.join(maker, place)
    found: dict[int, list[gs.Node]] = {}
    for place, node in enumerate(nodes):
        if chosen[place]:
            found.setdefault(clusters.of(place), []).append(node)
    return list(found.values())


class _Clusters:
    """Nodes by their places, joined step by step.

    Attributes:
        makers: For each node the places of those whose results it reads.
    """

    def __init__(self, nodes: Sequence[gs.Node]) -> None:
        place = {id(node): number for number, node in enumerate(nodes)}
        self.makers = [
            sorted({place[id(m)] for t in read_tensors(n) for m in t.inputs if id(m) in place})
            for n in nodes
        ]
        self._parent = list(range(len(nodes)))
        self._readers: list[set[int]] = [set() for _ in nodes]
        for reader, makers in enumerate(self.makers):
            for maker in makers:
                self._readers[maker].add(reader)

    def of(self, place: int) -> int:
        """The cluster of a node."""
        while self._parent[place] != place:
            place = self._parent[place] = self._parent[self._parent[place]]
        return place

    def join(self, maker: int, reader: int) -> None:
        """Join two nodes' clusters, unless something between them would have to wait for itself."""
        one, other = self.of(maker), self.of(reader)
        if one == other or self._leads_around(one, other):
            return
        self._parent[other] = one
        self._readers[one] |= self._readers[other]

    def _leads_around(self, one: int, other: int) -> bool:
        """Whether a way leads from one cluster to another through a third."""
        seen = {one}
        waiting = [c for r in self._readers[one] if (c := self.of(r)) not in (one, other)]
        while waiting:
            cluster = waiting.pop()
            if cluster == other:
                return True
            if cluster in seen:
                continue
            seen.add(cluster)
            waiting.extend(self.of(reader) for reader in self._readers[cluster])
        return False
