"""Which tensors of a graph are fp64, and which nodes are computed in it.

What is not known to be fp64 is taken to be none: then wider limits hold.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
import onnx
from onnx import TensorProto

from wpk.lowering.flat_graph import FlatGraph, read_names
from wpk.operators import OPERATORS, Integers, Roundoff, names

_NO_FLOATS = (
    *names(lambda row: row.integers in (Integers.COMPARE, Integers.TRUTH)),
    *("ArgMax", "ArgMin", "NonZero", "Shape", "Size"),
)
_FIRST_ONLY = ("Dropout", "MaxPool", "TopK")
"""Operators whose further outputs are integers, or truth values."""

_MOVES = names(lambda row: row.roundoff is Roundoff.NONE)


def double_names(
    nodes: Iterable[onnx.NodeProto], given: Mapping[str, np.dtype[np.generic]]
) -> frozenset[str]:
    """Return the names of the tensors of fp64.

    Args:
        nodes: In topological order.
        given: Types of inputs and constants, by name.
    """
    found = {name for name, dtype in given.items() if dtype == np.float64}
    for node in nodes:
        found.update(each for each in _made(node, found) if each)
    return frozenset(found)


def computes_in_double(node: onnx.NodeProto, doubles: Collection[str]) -> bool:
    """Tell whether a node reads or makes fp64; a Cast from or to it does."""
    return any(name in doubles for name in (*node.input, *node.output) if name)


def exact_to_double(graph: FlatGraph, given: Mapping[str, np.dtype[np.generic]]) -> frozenset[str]:
    """Return the names of the tensors of fp64 whose way from the model's inputs has no narrower arithmetic.

    Args:
        graph: The model as it was loaded.
        given: Types of its inputs and constants.
    """
    protos = [each.proto for each in graph.nodes]
    doubles = double_names(protos, given)
    clean = set(given)
    for node in protos:
        widens = computes_in_double(node, doubles) or node.op_type in _MOVES
        if widens and clean.issuperset(name for name in read_names(node) if name):
            narrowed = computes_in_double(node, doubles) and not doubles.issuperset(node.output)
            clean.update(() if narrowed and node.op_type == "Cast" else node.output)
    return doubles & clean


def _made(node: onnx.NodeProto, doubles: Collection[str]) -> Iterator[str]:
    """The outputs of a node that are fp64."""
    said = _said_type(node)
    if said is not None:
        yield from node.output if said == TensorProto.DOUBLE else ()
    elif node.op_type in OPERATORS and node.op_type not in _NO_FLOATS:
        read = node.input[1:2] if node.op_type == "CastLike" else node.input
        if any(name in doubles for name in read):
            yield from node.output[:1] if node.op_type in _FIRST_ONLY else node.output


def _said_type(node: onnx.NodeProto) -> int | None:
    """The element type that an attribute says."""
    for attribute in node.attribute:
        if attribute.name in ("to", "dtype"):
            return int(attribute.i)
        if attribute.name == "value" and attribute.type == onnx.AttributeProto.TENSOR:
            return int(attribute.t.data_type)
    return None
