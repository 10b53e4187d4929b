"""Norms of groups of channels as torch writes them: Reshape(InstanceNormalization(Reshape(x))), of x's shape (Wu and He 2018)."""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import Dims, dims, made_by, same_dims


@dataclass(frozen=True)
class GroupNorm:
    """A norm of groups.

    Attributes:
        last: The Reshape that gives them x's shape again.
        norm: The InstanceNormalization.
        source: x.
        shape: Of x: the batch, channels and at least two axes more.
        rows: The shape that is normalised.
    """

    last: gs.Node
    norm: gs.Node
    source: gs.Tensor
    shape: Dims
    rows: Dims


def group_norm(last: gs.Node) -> GroupNorm | None:
    """Return the norm of groups of maps that a Reshape is the last node of; None if there is none."""
    norm = made_by(last.inputs[0], "InstanceNormalization")
    first = made_by(norm.inputs[0], "Reshape") if norm is not None else None
    if norm is None or first is None:
        return None
    source, rows = first.inputs[0], dims(norm.inputs[0])
    shape = dims(source)
    if shape is None or rows is None or len(shape) < 4:
        return None
    if not same_dims(shape, dims(last.outputs[0])):
        return None
    return GroupNorm(last, norm, source, shape, rows)
