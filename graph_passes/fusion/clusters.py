"""Grow sets of nodes that become one function.

A cluster gives one tensor, and perhaps moments of its rows. Everything in it is an ancestor of that tensor and nothing else that it
makes is read outside, so clusters can never wait for each other in a circle: a node of A that
reads B, and a node of B that reads A, would already be a cycle of single nodes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.byte_products import byte_type, multiplies_bytes, restoration
from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import (
    MATRIX,
    MAX_INPUTS,
    VIEWS,
    is_elementwise,
    is_floating,
    is_widening,
    numbers_of,
)
from wpk.graph_passes.core.query import (
    Dims,
    dims,
    is_graph_output,
    is_op,
    producer,
    same_dims,
    split_constant,
    why_shared,
)
from wpk.graph_passes.fusion.casts_before_joins import is_only_given

# Nodes that may be gathered while several tensors are still open: the widest known decomposed
# activation (tanh GELU) has eight nodes between its input and its output.
MAX_OPEN_NODES = 12

Chain = Sequence[gs.Node]

EPILOGUE = "an operator computes the element-wise nodes behind it"
PROLOGUE = "an operator computes the element-wise nodes before it"
LIMITS = "a convolution applies limits as it reads"

Takes = Callable[[Sequence[gs.Node], str], bool]
"""Asked before two consecutive subsets are merged, given the nodes of both and what merging means; whether to."""


@dataclass(frozen=True)
class Moments:
    """Moments of the rows that a cluster gives, which it gives too (`wpk.graph_passes.fusion.row_moments`).

    Attributes:
        kind: The operator that they are for.
        nodes: What computes them from the cluster's output.
        tensor: They themselves.
    """

    kind: str
    nodes: list[gs.Node]
    tensor: gs.Variable


@dataclass
class Cluster:
    """Nodes that become one function.

    Attributes:
        nodes: The nodes, in the graph's order once `Clusters.seal` was called.
        output: The one tensor that is read outside.
        anchor: The node that decides the kernel; None for an element-wise graph.
        chains: For the name of a tensor that the nodes read: nodes outside to copy into the body.
        name: What the function is called; by default after its nodes.
        moments: Of the rows that it gives, where it gives them.
    """

    nodes: list[gs.Node]
    output: gs.Tensor
    anchor: gs.Node | None = None
    chains: dict[str, Chain] = field(default_factory=dict)
    name: str | None = None
    moments: Moments | None = None

    def source(self, tensor: gs.Tensor) -> gs.Tensor:
        """Return what ``tensor`` is read from, through the chain that is copied into the body, if there is one."""
        chain = self.chains.get(tensor.name)
        return chain[0].inputs[0] if chain else tensor


class Clusters:
    """All clusters of a graph while they grow; a node belongs to one at most."""

    def __init__(
        self,
        graph: gs.Graph,
        refuse: Callable[[gs.Node, str], None],
        takes: Takes,
    ) -> None:
        """Start without clusters.

        Args:
            graph: Its bare nodes are clustered.
            refuse: Told why a neighbour was left out.
            takes: Decides wherever merging is a choice.
        """
        self.graph = graph
        self.refuse = refuse
        self.takes = takes
        self.all: list[Cluster] = []
        self.owner: dict[int, Cluster] = {}
        self._position = {id(node): index for index, node in enumerate(graph.nodes)}

    def start(self, node: gs.Node, *, anchor: bool) -> Cluster:
        """Open a cluster with one node."""
        cluster = Cluster([node], node.outputs[0], node if anchor else None)
        self.all.append(cluster)
        self.owner[id(node)] = cluster
        return cluster

    def take(self, cluster: Cluster, nodes: Sequence[gs.Node]) -> None:
        """Put nodes into ``cluster``."""
        for node in nodes:
            cluster.nodes.append(node)
            self.owner[id(node)] = cluster
        cluster.nodes.sort(key=self._place)

    def extend(self, cluster: Cluster, chain: Chain) -> None:
        """Put a chain behind the output into ``cluster``; readers hold no copies of it any more."""
        self.take(cluster, chain)
        cluster.output = chain[-1].outputs[0]
        gone = {id(node) for node in chain}
        for other in self.all:
            for name, links in other.chains.items():
                other.chains[name] = [node for node in links if id(node) not in gone]

    def drop(self, cluster: Cluster) -> None:
        """Give up a cluster whose nodes all readers have copied."""
        self.all = [other for other in self.all if other is not cluster]
        for node in cluster.nodes:
            del self.owner[id(node)]

    def join(self, parts: Sequence[Cluster], anchor: gs.Node | None, name: str) -> None:
        """Make one cluster of several, each of which reads what the one before gives."""
        first, *others = parts
        for cluster in others:
            first.chains.update(cluster.chains)
            self.take(first, cluster.nodes)
        first.output, first.anchor, first.name = parts[-1].output, anchor, name
        gone = {id(cluster) for cluster in others}
        self.all = [cluster for cluster in self.all if id(cluster) not in gone]

    def _place(self, node: gs.Node) -> int:
        return self._position[id(node)]

    def grow_epilogue(self, cluster: Cluster) -> None:
        """Take the element-wise nodes after the cluster's output, as far as one output remains."""
        shape = dims(cluster.output) or []
        members = list(cluster.nodes)
        start = settled = len(members)
        output = cluster.output
        blocked: set[int] = set()
        while len(members) - settled <= MAX_OPEN_NODES:
            following = self._next(members, blocked)
            if following is None:
                break
            reason = self._why_not_after(following, members, shape)
            if reason is not None:
                blocked.add(id(following))
                self.refuse(following, reason)
                continue
            members.append(following)
            visible = self._visible(members)
            if len(visible) == 1 and self._may_end(visible[0], cluster.anchor):
                if not self.takes(members, EPILOGUE):
                    break
                settled, output = len(members), visible[0]
        self.take(cluster, members[start:settled])
        cluster.output = output
        self._refuse_readers(output)

    def grow_prologue(self, cluster: Cluster, tensors: Sequence[gs.Tensor], shape: Dims) -> None:
        """Take the element-wise nodes before ``tensors`` that only this cluster reads.

        They must work on ``shape``, so that no element is computed twice. Merging element-wise nodes
        with each other is no choice: it saves what lies between them and costs nothing.
        """
        waiting = list(tensors)
        refused: dict[int, tuple[gs.Node, str]] = {}
        while waiting:
            node = producer(waiting.pop())
            if not is_elementwise(node) or node is None or id(node) in self.owner:
                continue
            reason = self._why_not_before(node, cluster, shape)
            if reason is not None:
                refused[id(node)] = (node, reason)
                continue
            refused.pop(id(node), None)
            if cluster.anchor is not None and not self.takes([*cluster.nodes, node], PROLOGUE):
                continue
            self.take(cluster, [node])
            waiting.extend(node.inputs)
        for node, reason in refused.values():
            self.refuse(node, reason)

    def grow_limits(self, cluster: Cluster) -> None:
        """Take Min and Max by constants before a convolution, which applies them as it reads."""
        if cluster.anchor is None:
            return
        tensor = cluster.anchor.inputs[0]
        for op in ("Min", "Max"):
            node = producer(tensor)
            if node is None or not is_op(node, op) or id(node) in self.owner:
                continue
            sides = split_constant(node)
            if sides is None or why_shared(self.graph, tensor) is not None:
                return
            if not self.takes([*cluster.nodes, node], LIMITS):
                return
            self.take(cluster, [node])
            tensor = sides[0]

    def _next(self, members: list[gs.Node], blocked: set[int]) -> gs.Node | None:
        inside = {id(node) for node in members}
        readers = [
            reader
            for node in members
            for tensor in node.outputs
            for reader in tensor.outputs
            if id(reader) in self._position  # a subgraph of If or Loop reads, too
            if id(reader) not in inside and id(reader) not in blocked
            if is_elementwise(reader) and id(reader) not in self.owner
        ]
        return min(readers, key=self._place, default=None)

    def _why_not_after(self, node: gs.Node, members: list[gs.Node], shape: Dims) -> str | None:
        if not same_dims(shape, dims(node.outputs[0])):
            return f"{node.op} makes {dims(node.outputs[0])} of the operator's {shape}"
        if numbers_of(node) is not numbers_of(members[0]):
            return f"{node.op} computes with another kind of numbers"
        if count_operands([*members, node]) > MAX_INPUTS + 2:
            return f"the operator would read more than {MAX_INPUTS} tensors besides its own"
        return None

    def _why_not_before(self, node: gs.Node, cluster: Cluster, shape: Dims) -> str | None:
        output = node.outputs[0]
        inside = {id(member) for member in cluster.nodes}
        if is_graph_output(self.graph, output):
            return f"'{output.name}' is a graph output"
        if any(id(reader) not in inside for reader in output.outputs):
            return f"'{output.name}' is also read by another operator"
        if numbers_of(node) is not numbers_of(cluster.nodes[0]):
            return f"{node.op} computes with another kind of numbers"
        if not same_dims(shape, dims(output)):
            return f"{node.op} makes {dims(output)}, the operator works on {shape}"
        if count_operands([node, *cluster.nodes]) > MAX_INPUTS:
            return f"the operator would read more than {MAX_INPUTS} tensors"
        return None

    def _visible(self, members: list[gs.Node]) -> list[gs.Tensor]:
        """Tensors that the members make and that others read or the graph gives."""
        inside = {id(node) for node in members}
        return [
            tensor
            for node in members
            for tensor in node.outputs
            if is_graph_output(self.graph, tensor)
            or any(id(reader) not in inside for reader in tensor.outputs)
        ]

    def _may_end(self, tensor: gs.Tensor, anchor: gs.Node | None) -> bool:
        if is_op(anchor, *MATRIX) and not is_floating(tensor):
            return stores_bytes(anchor, tensor)
        if is_only_given(self.graph, tensor) or is_graph_output(self.graph, tensor):
            return True
        node, links = producer(tensor), restoration(tensor)
        if links and all(map(takes_restoration, tensor.outputs)):
            node = links[0]
        if node is None or not is_widening(node):
            return True
        stored = node.inputs[0]
        is_byte = byte_type(stored) is not None
        return is_byte and is_op(anchor, *MATRIX) and not stores_bytes(anchor, stored)

    def _refuse_readers(self, tensor: gs.Tensor) -> None:
        """Say why the element-wise readers of a finished cluster stay outside."""
        for reader in tensor.outputs:
            if not is_elementwise(reader) or id(reader) in self.owner:
                continue
            if is_graph_output(self.graph, tensor):
                self.refuse(reader, f"'{tensor.name}' is a graph output")
            elif len(tensor.outputs) > 1:
                self.refuse(reader, f"'{tensor.name}' has {len(tensor.outputs)} readers")


def takes_restoration(reader: gs.Node) -> bool:
    """Whether ``reader`` computes element by element, so that it can restore the bytes that it reads."""
    return is_elementwise(reader) and not is_op(reader, "Cast")


def stores_bytes(anchor: gs.Node | None, tensor: gs.Tensor) -> bool:
    """Whether a product's kernel stores bytes: where it multiplies some, or one that reads it does.

    Others store floating point, as the fastest of their kernels do.
    """
    if byte_type(tensor) is None or anchor is None:
        return False
    return multiplies_bytes(anchor) or _is_multiplied(tensor)


def _is_multiplied(tensor: gs.Tensor) -> bool:
    """Whether a product of bytes reads ``tensor``, through views and a cast."""
    made = [(reader, reader.outputs[0]) for reader in tensor.outputs if reader.outputs]
    if any(is_op(each, "Cast") and any(map(multiplies_bytes, t.outputs)) for each, t in made):
        return True
    return any(is_op(each, *VIEWS) and _is_multiplied(t) for each, t in made)


MOST_BESIDE = 8
"""Tensors besides x and the weights of products that become one operator."""


def count_beside(products: Sequence[Cluster]) -> int:
    """Count the tensors that products read from outside, each what the one before gives, besides x and the weights."""
    weights = {id(part.anchor.inputs[1]) for part in products if part.anchor is not None}
    return count_operands([node for part in products for node in part.nodes]) - len(weights) - 1


def count_operands(nodes: Sequence[gs.Node]) -> int:
    """Count the tensors that ``nodes`` read from outside, without constants that stay inside."""
    made = {id(tensor) for node in nodes for tensor in node.outputs}
    return len({id(t) for node in nodes for t in outside_inputs(node) if id(t) not in made})
