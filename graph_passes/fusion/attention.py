"""Join the operators of attention into one.

    e(MatMul(softmax(s(MatMul(q, k)) [NaN -> 0]), v))  ->  one function that holds all of it

The three operators are clusters by then: scales and masks belong to the first product or to the
softmax, views of split heads to the products, what is computed element by element of the result (``e``) to
the last one. The scores, queries x keys numbers for each head, are
then nobody's output, and no kernel writes them.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import VIEWS, Numbers, is_floating, numbers_of
from wpk.graph_passes.core.query import dims, is_op, producer, rank, same_dims, why_any_shared
from wpk.graph_passes.fusion.attention_rows import why_apart
from wpk.graph_passes.fusion.attention_windows import take_windows
from wpk.graph_passes.fusion.clusters import Cluster, Clusters

MAX_HEAD = 256
"""Elements of a head: what kernels sum in registers."""

NAME = "attention"

JOINED = "two products and the softmax between them are one operator"


@dataclass(frozen=True)
class _Attention:
    """The clusters of queries times keys, softmax, and weights times values."""

    scores: Cluster
    softmax: Cluster
    values: Cluster


def join_attention(clusters: Clusters) -> None:
    """Join the clusters of every attention; what looks like one and is none is refused."""
    for softmax in list(clusters.all):
        node = softmax.anchor
        if node is None or not is_op(node, "Softmax"):
            continue
        found = _around(clusters, softmax)
        if found is None:
            continue
        reason = _why_not(clusters, found)
        if reason is not None:
            clusters.refuse(node, reason)
            continue
        parts = (found.scores, found.softmax, found.values)
        if clusters.takes([node for part in parts for node in part.nodes], JOINED):
            first, last = found.scores.anchor, found.values.anchor
            clusters.join(parts, node, NAME)
            if first is not None and last is not None:
                take_windows(clusters, found.scores, (*first.inputs, last.inputs[1]))


def _around(clusters: Clusters, softmax: Cluster) -> _Attention | None:
    """The products before and behind a softmax; None where there are no two."""
    readers = list(softmax.output.outputs)
    if len(readers) != 1:
        return None
    values = clusters.owner.get(id(readers[0])) or _copier(clusters, readers[0])
    before = {id(c): c for c in (_maker(clusters, t) for t in _reads(softmax)) if c is not None}
    products = [c for c in before.values() if c.anchor is not None and is_op(c.anchor, "MatMul")]
    if values is None or values.anchor is None or not is_op(values.anchor, "MatMul"):
        return None
    return _Attention(products[0], softmax, values) if len(products) == 1 else None


def _copier(clusters: Clusters, link: gs.Node) -> Cluster | None:
    """The only cluster that copied a node into its body."""
    holders = [
        cluster
        for cluster in clusters.all
        if any(each is link for chain in cluster.chains.values() for each in chain)
    ]
    return holders[0] if len(holders) == 1 else None


def _reads(cluster: Cluster) -> list[gs.Tensor]:
    """Tensors that a cluster reads, behind the chains that it copies."""
    inside = {id(node) for node in cluster.nodes}
    found = []
    for node in cluster.nodes:
        for tensor in node.inputs:
            source = cluster.source(tensor)
            if id(producer(source)) not in inside:
                found.append(source)
    return found


def _maker(clusters: Clusters, tensor: gs.Tensor) -> Cluster | None:
    node = producer(tensor)
    owner = None if node is None else clusters.owner.get(id(node))
    return owner if owner is not None and owner.output is tensor else None


def _why_not(clusters: Clusters, found: _Attention) -> str | None:
    scores, softmax, values = found.scores, found.softmax, found.values
    node, first, last = softmax.anchor, scores.anchor, values.anchor
    assert node is not None
    assert first is not None
    assert last is not None
    if Numbers.FP64 in map(numbers_of, (node, first, last)):
        return "attention in one kernel is computed in fp32"
    shared = why_any_shared(clusters.graph, (scores.output, softmax.output))
    if shared is not None:
        return shared
    dimensions = rank(node.inputs[0])
    if dimensions is None or node.attrs.get("axis", -1) not in (-1, dimensions - 1):
        return "the softmax is not along the last axis"
    if dimensions < 3:
        return f"attention over {dimensions} dimensions has no batch"
    if any(isinstance(tensor, gs.Constant) for tensor in (*first.inputs, *last.inputs)):
        return "queries, keys or values are constant"
    reason = _why_not_plain(found, first, last) or _why_not_behind(values)
    return reason or _why_sizes(first, last) or why_apart(first, last)


def _why_not_plain(found: _Attention, first: gs.Node, last: gs.Node) -> str | None:
    """What stands between the three operators that a kernel of attention does not compute."""
    scores, softmax, values = found.scores, found.softmax, found.values
    assert softmax.anchor is not None
    if not same_dims(dims(first.outputs[0]), dims(softmax.anchor.inputs[0])):
        return "scores are viewed in another shape between product and softmax"
    for cluster in (scores, softmax):
        link = next((n for n in _behind(cluster) if is_op(n, *VIEWS)), None)
        if link is not None:
            return f"{link.op} '{link.name}' stands between the scores and their product"
    weights = values.chains.get(last.inputs[0].name, ())
    if any(is_op(n, *VIEWS) for n in weights) or not _reaches(softmax, last.inputs[0], weights):
        return "the weights are not the first operand of the product, as they are"
    guards = ("IsNaN", "Where")
    extra = next((n for n in _behind(softmax) if _works_on(n, guards)), None)
    if extra is not None:
        return f"{extra.op} '{extra.name}' works on the weights"
    if any(is_op(n, "Where") for n in _behind(softmax)) and not _guards(softmax):
        return "the weights are chosen among by something else than whether they are numbers"
    return None


def _why_not_behind(values: Cluster) -> str | None:
    """What happens to the result that a kernel of attention does not compute."""
    assert values.anchor is not None
    behind = _behind(values)
    cast = next((n for n in behind if is_op(n, "Cast") and _works_on(n, ())), None)
    if cast is not None:
        return f"Cast '{cast.name}' makes no floating point of the result"
    rows, keys = dims(values.anchor.outputs[0]) or [], dims(values.anchor.inputs[0]) or []
    if all(isinstance(size, int) for size in (*rows[-2:], *keys[-1:])):
        return None
    made = {id(t) for n in (values.anchor, *behind) for t in n.outputs}
    work = (n for n in behind if not is_op(n, *VIEWS))
    read = next((t for n in work for t in outside_inputs(n) if id(t) not in made), None)
    return None if read is None else f"'{read.name}' joins a result whose rows are free"


def _works_on(node: gs.Node, others: Collection[str]) -> bool:
    """Whether a node is none of ``others``, and no Cast that only rounds."""
    rounds = is_op(node, "Cast") and all(is_floating(t) for t in (*node.inputs, *node.outputs))
    return not rounds and not is_op(node, *others)


def _behind(cluster: Cluster) -> Sequence[gs.Node]:
    """The nodes of a cluster that follow its anchor."""
    reached = {id(t) for t in (cluster.anchor.outputs if cluster.anchor is not None else ())}
    nodes = []
    for node in cluster.nodes:
        if any(id(t) in reached for t in node.inputs):
            reached |= {id(t) for t in node.outputs}
            nodes.append(node)
    return nodes


def _reaches(softmax: Cluster, tensor: gs.Tensor, chain: Sequence[gs.Node]) -> bool:
    source = chain[0].inputs[0] if chain else tensor
    return source is softmax.output


def _guards(softmax: Cluster) -> bool:
    """Whether what follows the softmax is ``Where(IsNaN(p), 0, p)``."""
    behind = _behind(softmax)
    tests = [n for n in behind if is_op(n, "IsNaN")]
    choices = [n for n in behind if is_op(n, "Where")]
    assert softmax.anchor is not None
    p = softmax.anchor.outputs[0]
    if len(tests) != 1 or len(choices) != 1 or tests[0].inputs[0] is not p:
        return False
    condition, instead, otherwise = choices[0].inputs
    zero = isinstance(instead, gs.Constant) and not instead.values.any()
    return condition is tests[0].outputs[0] and zero and otherwise is p


def _why_sizes(first: gs.Node, last: gs.Node) -> str | None:
    q, k, v = first.inputs[0], first.inputs[1], last.inputs[1]
    for tensor, rows in ((q, -2), (k, -1), (v, -2), (last.outputs[0], -2)):
        shape = list(tensor.shape or ())
        known = len(shape) == len(first.outputs[0].shape)
        inner = [n for axis, n in enumerate(shape) if axis and axis != rows % len(shape)]
        if not known or shape[rows] is None or not all(isinstance(n, int) for n in inner):
            return (
                f"'{tensor.name}' has shape {dims(tensor)}: all but the first and the rows of its "
                "matrices must be known"
            )
    most = max(q.shape[-1], v.shape[-1])
    if most > MAX_HEAD:
        return f"heads of {most} elements, attention in one kernel has {MAX_HEAD} at most"
    return None
