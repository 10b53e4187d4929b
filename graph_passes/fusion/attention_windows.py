"""Take the movements of rows around attention over windows into its operator.

    attention(Gather(x, rows)), Gather(attention, places)  ->  one function that holds them

where ``rows`` are those of windows of an image, one after another, and ``places`` take the result back. The
kernel then reads and writes where the image lies.
"""

from collections.abc import Sequence

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.query import is_graph_output, is_op, made_by, values
from wpk.graph_passes.fusion.clusters import Cluster, Clusters
from wpk.graph_passes.movement.chains.views import views_before
from wpk.problems import windows_of


def take_windows(clusters: Clusters, attention: Cluster, operands: Sequence[gs.Tensor]) -> None:
    """Take the Gathers before and behind an attention, where all of them are of the same windows.

    Args:
        clusters: All of them.
        attention: The joined cluster.
        operands: Its queries, keys and values.
    """
    gathers = [_gather_before(attention, each) for each in operands]
    behind = _behind(clusters, attention)
    rows = None if gathers[0] is None else _rows(gathers[0])
    places = _rows(behind[-1]) if behind else None
    if rows is None or places is None or not _undo(places, rows):
        return
    found = [None if g is None else _rows(g) for g in gathers]
    same = all(each is not None and np.array_equal(each, rows) for each in found)
    if not same or windows_of(rows, int(operands[0].shape[-2])) is None:
        return
    for tensor, gather in zip(operands, gathers, strict=True):
        assert gather is not None
        chain = [*views_before(gather.inputs[0]), gather, *attention.chains[tensor.name]]
        attention.chains[tensor.name] = chain
    clusters.extend(attention, behind)


def _undo(places: NDArray[np.int64], rows: NDArray[np.int64]) -> bool:
    """Whether places take rows back; those of another matrix may reach beyond them."""
    if len(places) != len(rows) or max(places.max(), -places.min() - 1) >= len(rows):
        return False
    return np.array_equal(rows[places], np.arange(len(rows)))


def _gather_before(attention: Cluster, operand: gs.Tensor) -> gs.Node | None:
    """The Gather of rows whose result an operand is viewed from."""
    chain = attention.chains.get(operand.name, ())
    gather = made_by(chain[0].inputs[0], "Gather") if chain else None
    return gather if gather is not None and _rows(gather) is not None else None


def _behind(clusters: Clusters, attention: Cluster) -> list[gs.Node]:
    """The views behind an attention and the Gather that they end in; none where there is no such chain."""
    tensor, chain = attention.output, list[gs.Node]()
    while len(tensor.outputs) == 1 and not is_graph_output(clusters.graph, tensor):
        reader = tensor.outputs[0]
        if id(reader) in clusters.owner:
            break
        chain.append(reader)
        if is_op(reader, "Gather") and _rows(reader) is not None:
            return chain
        if not is_op(reader, *VIEWS):
            break
        tensor = reader.outputs[0]
    return []


def _rows(gather: gs.Node) -> NDArray[np.int64] | None:
    """The rows of a matrix, or of heads beside each other, that a Gather moves; None where it does something else."""
    index, dimensions = values(gather.inputs[1]), len(gather.inputs[0].shape or ())
    if gather.attrs.get("axis", 0) != 1 or dimensions not in (3, 4) or index is None:
        return None
    return index.astype(np.int64) if index.ndim == 1 else None
