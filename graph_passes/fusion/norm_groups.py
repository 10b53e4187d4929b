"""Take the Reshapes around a norm of groups into its operator.

    Reshape(Mul(InstanceNormalization(Cast(Reshape(x))), c))        x and the result of one shape

Before the norm channels get two axes, behind it they have one again (`norms-of-groups`): a kernel reads and writes
elements where they lie.
"""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.functions import outside_inputs
from wpk.graph_passes.core.kinds import is_elementwise
from wpk.graph_passes.core.query import dims, is_op, made_by, same_dims, why_shared
from wpk.graph_passes.fusion.clusters import Cluster, Clusters


def take_groups(clusters: Clusters, cluster: Cluster) -> None:
    """Take both Reshapes, and what lies between them and the norm, where nothing else reads it."""
    before, behind = _to_groups(clusters.graph, cluster), _from_groups(clusters.graph, cluster)
    if not before or not behind:
        return
    if same_dims(dims(before[0].inputs[0]), dims(behind[-1].outputs[0])):
        clusters.take(cluster, [*before, *behind])
        cluster.output = behind[-1].outputs[0]


def _to_groups(graph: gs.Graph, cluster: Cluster) -> list[gs.Node]:
    """The Reshape before a norm, and a Cast behind it; nothing where others read it, too."""
    chain: list[gs.Node] = []
    node = cluster.nodes[0]
    for op in ("Cast", "Reshape"):
        maker = made_by(node.inputs[0], op)
        if maker is not None and why_shared(graph, node.inputs[0]) is None:
            chain.insert(0, maker)
            node = maker
    return chain if chain and is_op(chain[0], "Reshape") else []


def _from_groups(graph: gs.Graph, cluster: Cluster) -> list[gs.Node]:
    """The Reshape behind a norm, and the element-wise nodes between them."""
    chain: list[gs.Node] = []
    tensor = cluster.output
    while why_shared(graph, tensor) is None:
        node = tensor.outputs[0]
        chain.append(node)
        tensor = node.outputs[0]
        if is_op(node, "Reshape"):
            return chain
        if not is_elementwise(node) or len(list(outside_inputs(node))) > 1:
            break
    return []
