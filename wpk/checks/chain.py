"""Which nodes of a body compute each element of an axis of their tensors alone, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import onnx

from wpk.checks.bounded import attribute_of
from wpk.checks.float64_nodes import Array
from wpk.operators import ELEMENTWISE

_ELEMENT_WISE = {*ELEMENTWISE, "Identity"}
_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")
_WEIGHTED = ("BatchNormalization", "Conv", "ConvTranspose")
_ALONG_AN_AXIS = ("LayerNormalization", "LogSoftmax", "Softmax")
_REDUCED = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")


@dataclass
class Chain:
    """What is known of the tensors before a node.

    Attributes:
        beginning: Extents of the tensors that are cut, up to the axis along which they are.
        ranks: The ranks of these tensors.
        whole: All other tensors. Of those that are computed from weights alone only the shape is right.
        unread: Those of ``whole`` that nodes computed and none has read.
        multiplies: Whether a node multiplies matrices, both of which are cut, with each other.
    """

    beginning: tuple[int, ...]
    ranks: dict[str, int]
    whole: dict[str, Array]
    unread: set[str] = field(default_factory=set)
    multiplies: bool = False

    @property
    def ends_cut(self) -> bool:
        """Tell whether everything that comes out is cut."""
        return not self.unread

    @property
    def axis(self) -> int:
        """The axis that is cut."""
        return len(self.beginning) - 1

    def takes(self, node: onnx.NodeProto) -> bool:
        """Tell whether a node computes each element of the axis alone, as far as this module knows the operator."""
        self.unread -= set(node.input)
        if node.op_type == "Constant":
            self._add_whole(node, constant_of(node))
            return True
        if not any(name in self.ranks for name in node.input):
            if node.op_type not in _ELEMENT_WISE:
                return False
            shapes = [self.whole[name].shape for name in node.input if name in self.whole]
            self._add_whole(node, np.broadcast_to(np.nan, np.broadcast_shapes(*shapes)))
            return True
        rank = self._rank(node)
        if rank is not None:
            self.ranks |= dict.fromkeys(filter(None, node.output), rank)
        return rank is not None

    def _add_whole(self, node: onnx.NodeProto, value: Array) -> None:
        self.whole[node.output[0]] = value
        self.unread.add(node.output[0])

    def _rank(self, node: onnx.NodeProto) -> int | None:
        """The rank of its outputs; None where it does not compute each element of the axis alone."""
        if node.op_type in _ELEMENT_WISE:
            return self._broadcast(node)
        if node.op_type == "Concat":
            return self._joined(node)
        rank = self.ranks.get(node.input[0])
        if rank is None:
            return None
        if node.op_type == "MatMul":
            return rank if self._multiplied(node, rank) else None
        if any(name in self.ranks for name in node.input[1:]):
            return None
        match node.op_type:
            case kind if kind in _POOLS or kind in _WEIGHTED:
                fits = len(node.output) == 1 and self.axis == 0
            case kind if kind in _ALONG_AN_AXIS:
                fits = len(node.output) == 1 and self._is_behind(node)
            case "Split":
                fits = self._axis(node, 0) != self.axis
            case "Transpose":
                backwards = [*range(rank)][::-1]
                fits = int(attribute_of(node, "perm", backwards)[self.axis]) == self.axis
            case "Slice":
                axes = self._integers(node, 3)
                fits = axes is not None and self.axis not in {each % rank for each in axes}
            case "Reshape":
                return self._reshaped(node)
            case "Squeeze":
                return self._without(node, rank, self._integers(node, 1))
            case kind if kind in _REDUCED:
                return self._reduced(node, rank)
            case _:
                fits = False
        return rank if fits else None

    def _multiplied(self, node: onnx.NodeProto, rank: int) -> bool:
        """Whether a product is of rows with one matrix, or of matrices with each other."""
        other = node.input[1]
        if other not in self.ranks:
            return rank >= self.axis + 2 and self.whole[other].ndim == 2
        self.multiplies = True
        return rank >= self.axis + 3 and self.ranks[other] == rank

    def _joined(self, node: onnx.NodeProto) -> int | None:
        """All are cut, and are put one behind the other along another axis."""
        ranks = {self.ranks.get(name) for name in node.input}
        rank = self.ranks.get(node.input[0])
        return rank if ranks == {rank} and self._axis(node, self.axis) != self.axis else None

    def _reduced(self, node: onnx.NodeProto, rank: int) -> int | None:
        """Axes behind the one that is cut become one element, or none."""
        axes = self._integers(node, 1) or attribute_of(node, "axes", None)
        left = self._without(node, rank, axes)
        return rank if left is not None and attribute_of(node, "keepdims", 1) else left

    def _without(self, node: onnx.NodeProto, rank: int, axes: Sequence[int] | None) -> int | None:
        """The rank without some axes, all of which lie behind the one that is cut; None where one does not, or is not known."""
        if not axes or len(node.output) != 1:
            return None
        places = {int(axis) % rank for axis in axes}
        return rank - len(places) if min(places) > self.axis else None

    def _integers(self, node: onnx.NodeProto, place: int) -> list[int] | None:
        """An operand that holds integers that are known; None where it is missing, or is computed."""
        name = node.input[place] if place < len(node.input) else ""
        array = self.whole.get(name)
        known = array is not None and array.dtype == np.int64
        return [int(each) for each in array.reshape(-1)] if known and array is not None else None

    def _axis(self, node: onnx.NodeProto, default: int) -> int:
        return int(attribute_of(node, "axis", default)) % self.ranks[node.input[0]]

    def _is_behind(self, node: onnx.NodeProto) -> bool:
        """Whether rows begin behind the axis; where a softmax does not say it, they may begin at axis 1."""
        default = -1 if node.op_type == "LayerNormalization" else 1
        return self._axis(node, default) > self.axis

    def _broadcast(self, node: onnx.NodeProto) -> int | None:
        """Return the rank of what broadcasting gives; None unless what is cut meets the same, or what all parts share."""
        rank, *others = {self.ranks[name] for name in node.input if name in self.ranks}
        common = [self.whole[name].shape for name in node.input if name in self.whole]
        fits = all(self._is_shared(shape, rank) for shape in common)
        return rank if fits and not others and len(node.output) == 1 else None

    def _is_shared(self, shape: tuple[int, ...], rank: int) -> bool:
        """Whether a tensor has one element along the axis that is cut, and no more than those in front of it."""
        beginning = ((1,) * (rank - len(shape)) + shape)[: self.axis + 1]
        *before, own = beginning
        fits = all(n in (1, there) for n, there in zip(before, self.beginning, strict=False))
        return len(shape) <= rank and own == 1 and fits

    def _reshaped(self, node: onnx.NodeProto) -> int | None:
        target = self.whole.get(node.input[1])
        if target is None or target.dtype != np.int64 or target.size <= self.axis:
            return None
        if attribute_of(node, "allowzero", 0) and not target.all():
            return None
        named = zip(target, self.beginning, strict=False)
        return target.size if all(int(n) in (0, own) for n, own in named) else None


def constant_of(node: onnx.NodeProto) -> Array:
    (attribute,) = node.attribute
    value = onnx.helper.get_attribute_value(attribute)
    is_tensor = isinstance(value, onnx.TensorProto)
    return onnx.numpy_helper.to_array(value) if is_tensor else np.asarray(value)
