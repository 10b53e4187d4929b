"""Which cluster makes what another alone reads, through views and roundings."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs

from wpk.dtypes import DType, from_numpy
from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.query import element_type, is_op, producer, why_any_shared
from wpk.graph_passes.fusion.clusters import Cluster, Clusters


def made_for(clusters: Clusters, reader: Cluster, tensor: gs.Tensor) -> Cluster | None:
    """Return the cluster whose output ``reader`` alone reads as ``tensor``; None where there is none."""
    chain = reader.chains.get(tensor.name, ())
    source = reader.source(tensor)
    maker = producer(source)
    owner = None if maker is None else clusters.owner.get(id(maker))
    if owner is None or owner.output is not source or not all(map(_only_views, chain)):
        return None
    between = [source, *(link.outputs[0] for link in chain)]
    return owner if why_any_shared(clusters.graph, between) is None else None


def rounds(node: gs.Node) -> bool:
    """Whether a node is a cast between types that are computed with in fp32."""
    return is_op(node, "Cast") and all(map(is_multiplied, (*node.inputs, *node.outputs)))


def is_multiplied(tensor: gs.Tensor) -> bool:
    """Whether a tensor is of a type that is computed with in fp32."""
    return stored_type(tensor) in (DType.FP32, DType.FP16, DType.BF16)


def stored_type(tensor: gs.Tensor) -> DType | None:
    """Return a tensor's type; None of one that wpk has not."""
    dtype = element_type(tensor)
    if isinstance(dtype, int):
        return DType.BF16 if dtype == onnx.TensorProto.BFLOAT16 else None
    return None if dtype is None else from_numpy(np.dtype(dtype))


def _only_views(node: gs.Node) -> bool:
    return is_op(node, *VIEWS) or rounds(node)
