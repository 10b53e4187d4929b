"""Nodes that only compute shapes at run time: what they would say, strides already know.

    Expand(cls, Concat(Shape(x)[0], 1, 768))     the batch of x, which kernels take at run time

An exporter writes this where the batch is free. Lowering reads the shape of the Expand's output
instead, so the nodes behind its second input need no kernels.
"""

from collections.abc import Collection, Sequence

import onnx_graphsurgeon as gs

from wpk.graph_passes import free_part
from wpk.lowering.free_axis import extent_of, stand_in
from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import View


def shape_only_nodes(graph: gs.Graph, handed: Collection[str] = ()) -> set[str]:
    """Return the names of the nodes whose results are read as shapes of Expands and by nothing else.

    Args:
        graph: Whose nodes.
        handed: Nodes that are executed as they are, Expands among them.
    """
    outputs, own = {t.name for t in graph.outputs}, {id(node) for node in graph.nodes}
    found: set[str] = set()
    for node in reversed(graph.nodes):
        readers = [(reader, t) for t in node.outputs for reader in t.outputs]
        leaves = any(tensor.name in outputs for tensor in node.outputs)
        if (
            readers
            and not leaves
            and all(
                id(r) in own and r.name not in handed and _is_shape(r, tensor, found)
                for r, tensor in readers
            )
        ):
            found.add(node.name)
    return found


def _is_shape(reader: gs.Node, tensor: gs.Tensor, found: set[str]) -> bool:
    if reader.name in found:
        return True
    sized = reader.op == "Expand" or free_part(reader) is not None
    return sized and reader.inputs[0] is not tensor


def expanded(view: View, shape: Sequence[int | str | None] | None, free: Collection[str]) -> View:
    """Return a view with the known shape of an Expand's output.

    Raises:
        RefusedError: The shape is not known.
    """
    sizes = [n for n in shape or (None,) if isinstance(n, int) or n in free]
    if shape is None or len(sizes) != len(shape):
        raise RefusedError(f"Expand to a shape that is not known: {shape}")
    wide = tuple(stand_in(n, list(free)) for n in sizes if n is not None)
    return view.broadcast(wide, extent_of(wide[0]))
