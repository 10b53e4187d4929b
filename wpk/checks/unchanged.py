"""Which nodes of a rewritten graph are the original's own, on the original's own values.

The same function of the same numbers is the same: such a node is computed once for both graphs, and nothing can be found there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from wpk.checks.float64_nodes import Array, widened
from wpk.lowering.flat_graph import FlatGraph, FlatNode, read_names

_SMALL = 64
"""Elements of a constant up to which numbers are compared; larger ones must be the same memory."""


class UnchangedNodes:
    """What is known of a rewritten graph's tensors on the way through its nodes.

    Attributes:
        names: The original's tensors whose very values tensors of the rewritten graph have, by the names of these.
    """

    def __init__(
        self,
        original: FlatGraph,
        value: Callable[[str], Array],
        rewritten: FlatGraph,
    ) -> None:
        """Begin; inputs are the original's own.

        Args:
            original: The original.
            value: Gives a tensor of it.
            rewritten: To its constants is added what nodes without operands make.
        """
        self._is_same_opset = original.opset == rewritten.opset
        self._original, self._value = original, value
        self._constants = dict(rewritten.constants)
        self.names = {name: name for name in original.inputs}

    def add_constant(self, node: onnx.NodeProto, values: Mapping[str, Array]) -> None:
        """Note what a node of the rewritten graph made that reads nothing."""
        if node.op_type == "Constant":
            self._constants |= {name: values[name] for name in node.output if name}

    def has(self, node: FlatNode) -> bool:
        """Tell whether the original makes the same tensors by the same node, of the same opset, of the same values."""
        if not self._is_same_opset:
            return False
        known_as = node.known_as
        its = self._maker(next((name for name in known_as if name), ""))
        if its is None or tuple(its.output) != known_as or not node.proto.input:
            return False
        kind = _kind(node.proto)
        if kind is None or _kind(its) != kind or len(its.input) != len(node.proto.input):
            return False
        return all(map(self._are_same, node.proto.input, its.input))

    def _are_same(self, mine: str, its: str) -> bool:
        """Whether operands of both graphs are the same, or both are missing."""
        if not mine or not its or mine in self.names:
            return self.names.get(mine, "") == its
        own, other = self._constants.get(mine), self._constant(its)
        if own is None or other is None or own.shape != other.shape:
            return False
        if (
            own.dtype == other.dtype
            and own.strides == other.strides
            and _address(own) == _address(other)
        ):
            return True
        return own.size <= _SMALL and _are_equal(widened(own), widened(other))

    def _maker(self, name: str) -> onnx.NodeProto | None:
        """The original's node that makes a tensor."""
        place = self._original.makers.get(name)
        return None if place is None else self._original.nodes[place].proto

    def _constant(self, name: str) -> Array | None:
        """A constant of the original, or what a node makes there that reads nothing."""
        maker = self._maker(name)
        if maker is None:
            return self._original.constants.get(name)
        return self._value(name) if maker.op_type == "Constant" else None


def _kind(node: onnx.NodeProto) -> tuple[str, str, tuple[bytes, ...]] | None:
    """What a node computes of its operands; None where its subgraphs read more."""
    if len(read_names(node)) != len(node.input):
        return None
    attributes = sorted(each.SerializeToString(deterministic=True) for each in node.attribute)
    return node.domain, node.op_type, tuple(attributes)


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


def _are_equal(one: Array, other: Array) -> bool:
    """Whether two arrays hold the same numbers to the bit."""
    return (
        one.dtype == other.dtype
        and np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(other).tobytes()
    )
