"""Which nodes stay in fp32 when a graph is converted to a 16-bit type."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.dtypes import DType
from wpk.graph_passes.core.byte_products import multiplies_bytes
from wpk.graph_passes.core.functions import is_call
from wpk.graph_passes.core.kinds import MATRIX, POOLS, SOFTMAX, VIEWS, is_elementwise
from wpk.graph_passes.core.query import (
    dims,
    is_graph_output,
    is_op,
    made_by,
    producer,
    same_dims,
)
from wpk.graph_passes.precision.types import SENSITIVE, is_fp32, why_not_held, why_not_typed
from wpk.operators import OperatorKind, of_kind

_MOVEMENTS = of_kind(OperatorKind.VIEW, OperatorKind.MOVEMENT)
_LARGE_INTEGERS = tuple(
    np.dtype(each) for each in (np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
)
# How many element-wise nodes to look through for the operator that will compute them.
_MAX_STEPS = 16


@dataclass(frozen=True)
class Regions:
    """What computes in fp32, by the ids of nodes.

    Attributes:
        wide: The nodes that do.
        rounded: Those among them whose result is rounded once, for all who read it: an operator reads it, so that it
            lies in memory in 16 bits, and others need no second copy of it.
    """

    wide: set[int]
    rounded: set[int]


def regions_of(graph: gs.Graph, dtype: DType, refuse: Callable[[gs.Node, str], None]) -> Regions:
    """Decide which nodes stay in fp32; ``refuse`` is told of types and constants."""
    wide = _makers_of_large_integers(graph)
    loud: set[int] = set()
    for node in graph.nodes:
        if is_call(node) or not _touches_fp32(node):
            continue
        reason = why_not_typed(node, graph.opset, dtype)
        if reason is None and not is_op(node, *SENSITIVE):
            reason = why_not_held(node, dtype)
            if reason is not None and is_elementwise(node):
                loud.add(id(node))
        if reason is not None:
            refuse(node, reason)
        if reason is not None or _is_wide(node):
            wide.add(id(node))
        elif _follows_loud(node, loud):
            loud.add(id(node))
            wide.add(id(node))
        elif _moves_graph_input(node, wide) or _rejoins_groups(node):
            wide.add(id(node))
    _pull_before(graph, wide)
    pulled = _pull_after(graph, wide)
    return Regions(wide, {id(node) for node in pulled if _lies_in_memory(graph, node, wide)})


def _makers_of_large_integers(graph: gs.Graph) -> set[int]:
    """Nodes whose numbers become integers of more bits than 16-bit numbers have, moved or not."""
    found: set[int] = set()
    for node in reversed(graph.nodes):
        if is_call(node) or not _touches_fp32(node):
            continue
        readers = [reader for tensor in node.outputs for reader in tensor.outputs]
        keeps = is_elementwise(node) or is_op(node, *_MOVEMENTS)
        if any(_is_large_integer(each) for each in readers) or (
            keeps and any(id(each) in found for each in readers)
        ):
            found.add(id(node))
    return found


def _is_large_integer(node: gs.Node) -> bool:
    return is_op(node, "Cast") and node.outputs[0].dtype in _LARGE_INTEGERS


def _is_wide(node: gs.Node) -> bool:
    """Whether ``node`` computes in fp32 whatever the precision."""
    if is_op(node, *SENSITIVE) or multiplies_bytes(node):
        return True
    return is_op(node, "Cast") and any(map(multiplies_bytes, node.outputs[0].outputs))


def _touches_fp32(node: gs.Node) -> bool:
    return any(is_fp32(tensor) for tensor in [*node.inputs, *node.outputs])


def _follows_loud(node: gs.Node, loud: set[int]) -> bool:
    """Whether values that 16 bits cannot hold may pass through ``node``."""
    if not is_elementwise(node) and not is_op(node, *_MOVEMENTS):
        return False
    return any(id(producer(tensor)) in loud for tensor in node.inputs if producer(tensor))


def _moves_graph_input(node: gs.Node, wide: set[int]) -> bool:
    """Whether ``node`` is a view of a graph input: the cast comes after it, into the reader."""
    if not is_op(node, *VIEWS):
        return False
    maker = producer(node.inputs[0])
    return maker is None or (is_op(maker, *VIEWS) and id(maker) in wide)


def _pull_before(graph: gs.Graph, wide: set[int]) -> None:
    """Add the element-wise nodes that will be the prologue of a sensitive node."""
    for node in reversed(graph.nodes):
        if id(node) in wide or not is_elementwise(node) or not _touches_fp32(node):
            continue
        output = node.outputs[0]
        readers = list(output.outputs)
        if is_graph_output(graph, output) or not readers:
            continue
        if not all(id(reader) in wide for reader in readers):
            continue
        if all(_leads_to_softmax(reader) for reader in readers) or not _follows_anchor(node):
            wide.add(id(node))


def _leads_to_softmax(node: gs.Node) -> bool:
    for _ in range(_MAX_STEPS):
        if is_op(node, *SOFTMAX):
            return True
        if not is_elementwise(node) or len(node.outputs[0].outputs) != 1:
            return False
        node = node.outputs[0].outputs[0]
    return False


def _follows_anchor(node: gs.Node, steps: int = _MAX_STEPS) -> bool:
    """Whether ``node`` will be in the epilogue of a matrix-like operator or a pool."""
    for tensor in node.inputs:
        maker = producer(tensor)
        if maker is None or not same_dims(dims(tensor), dims(node.outputs[0])):
            continue
        if is_op(maker, *MATRIX, *POOLS):
            return True
        if steps and is_elementwise(maker) and _follows_anchor(maker, steps - 1):
            return True
    return False


def _pull_after(graph: gs.Graph, wide: set[int]) -> list[gs.Node]:
    """Add the element-wise nodes that will be the epilogue of a node in fp32, and return them."""
    pulled = []
    for node in graph.nodes:
        if id(node) in wide or not is_elementwise(node) or not _touches_fp32(node):
            continue
        if is_op(node, "Cast"):
            continue
        if any(_continues(graph, tensor, node, wide) for tensor in node.inputs):
            wide.add(id(node))
            pulled.append(node)
    return pulled


def _continues(graph: gs.Graph, tensor: gs.Tensor, node: gs.Node, wide: set[int]) -> bool:
    maker = producer(tensor)
    if maker is None or id(maker) not in wide or is_graph_output(graph, tensor):
        return False
    if not same_dims(dims(tensor), dims(node.outputs[0])):
        return False
    if is_op(maker, *VIEWS) and not _rejoins_groups(maker):
        return False
    return all(is_elementwise(reader) for reader in tensor.outputs)


def _lies_in_memory(graph: gs.Graph, node: gs.Node, wide: set[int]) -> bool:
    """Whether an operator reads the result of a node in 16 bits, and something else in fp32."""
    output = node.outputs[0]
    if is_graph_output(graph, output) or not is_fp32(output):
        return False
    narrow = [reader for reader in output.outputs if id(reader) not in wide]
    return any(not is_elementwise(reader) for reader in narrow) and len(narrow) < len(
        output.outputs
    )


def _rejoins_groups(node: gs.Node) -> bool:
    """Whether ``node`` gives groups that a norm had as axes one axis again, which is computed with the norm."""
    return is_op(node, "Reshape") and made_by(node.inputs[0], "InstanceNormalization") is not None
