"""Which operators can be evaluated for parts of a batch, and the evaluation on all cores.

Axis 0 of a model's activations is its batch, and most operators compute each sample from that sample
alone. NumPy computes one part on one core, so a batch is cut into a part a core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import onnx

from wpk.blocks import cores, on_cores
from wpk.checks.bounded import attribute_of
from wpk.checks.float64_nodes import Array
from wpk.checks.node_parts import PART, Whole

_ELEMENT_WISE = """Abs Add Cast Ceil Clip Div Elu Erf Exp Floor Gelu HardSigmoid HardSwish Identity IsNaN
    LeakyRelu Log Max Min Mul Neg Pow Reciprocal Relu Round Sigmoid Sign Softplus Sqrt Sub Tanh Where"""
_WINDOWS = "AveragePool MaxPool GlobalAveragePool GlobalMaxPool"
_WEIGHTED = "BatchNormalization Conv ConvTranspose"
_ALONG_AN_AXIS = "LayerNormalization LogSoftmax Softmax"


def samples(
    nodes: Sequence[onnx.NodeProto], batched: Mapping[str, Array], fixed: Mapping[str, Array]
) -> int:
    """Return the batch along which a chain of nodes can be cut; 1 where it cannot be cut, or where nobody can tell.

    A part is computed by the nodes that `for_parts` makes of them.

    Args:
        nodes: The nodes in order; each reads the inputs and what those before it gave.
        batched: The inputs that may have a batch.
        fixed: The others: weights.
    """
    shapes = {array.shape for array in batched.values()}
    if len({(len(shape), *shape[:1]) for shape in shapes}) != 1:
        return 1
    shape: tuple[int, ...] = next(iter(shapes))
    if not shape or shape[0] < 2:
        return 1
    chain = Chain(shape[0], dict.fromkeys(batched, len(shape)), dict(fixed))
    return chain.count if all(chain.takes(node) for node in nodes) and chain.ends_cut else 1


def for_parts(nodes: Sequence[onnx.NodeProto], fixed: Mapping[str, Array]) -> list[onnx.NodeProto]:
    """Return the nodes for parts of any size: a reshape whose target names the batch keeps its input's."""
    known, found = dict(fixed), list[onnx.NodeProto]()
    for node in nodes:
        if node.op_type == "Constant":
            known[node.output[0]] = _constant(node)
        if node.op_type == "Reshape":
            target = onnx.numpy_helper.from_array(
                np.array([0, *known[node.input[1]][1:]], np.int64)
            )
            name = f"{node.output[0]}_target"
            found.append(onnx.helper.make_node("Constant", [], [name], value=target))
            node = onnx.helper.make_node("Reshape", [node.input[0], name], node.output)
        found.append(node)
    return found


@dataclass
class Chain:
    """What is known of the tensors before a node.

    Attributes:
        count: Samples.
        ranks: The ranks of the tensors that have one sample after the other along axis 0.
        whole: All other tensors. Of those that are computed from weights alone only the shape is right.
        unread: Those of ``whole`` that nodes computed and none has read.
    """

    count: int
    ranks: dict[str, int]
    whole: dict[str, Array]
    unread: set[str] = field(default_factory=set)

    @property
    def ends_cut(self) -> bool:
        """Tell whether everything that comes out has samples."""
        return not self.unread

    def takes(self, node: onnx.NodeProto) -> bool:
        """Tell whether a node computes each sample alone, as far as this module knows the operator."""
        self.unread -= set(node.input)
        if node.op_type == "Constant":
            self._add_whole(node, _constant(node))
            return True
        if not any(name in self.ranks for name in node.input):
            if node.op_type not in _ELEMENT_WISE.split():
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
        """The rank of its outputs; None where it does not compute each sample alone."""
        first, *others = node.input
        if node.op_type in _ELEMENT_WISE.split():
            return self._broadcast(node)
        rank = self.ranks.get(first)
        if rank is None:
            return None
        alone = not any(name in self.ranks for name in others)
        match node.op_type:
            case kind if kind in _WINDOWS.split() or kind in _WEIGHTED.split():
                fits = alone and len(node.output) == 1
            case kind if kind in _ALONG_AN_AXIS.split():
                fits = alone and len(node.output) == 1 and self._axis(node, -1) != 0
            case "Split":
                fits = alone and self._axis(node, 0) != 0
            case "Transpose":
                fits = int(attribute_of(node, "perm", [rank - 1])[0]) == 0
            case "MatMul" if alone:
                fits = rank >= 2 and self.whole[others[0]].ndim == 2
            case "MatMul":
                fits = rank >= 3 and self.ranks[others[0]] == rank
            case "Reshape":
                return self._reshaped(node)
            case _:
                fits = False
        return rank if fits else None

    def _axis(self, node: onnx.NodeProto, default: int) -> int:
        return int(attribute_of(node, "axis", default)) % self.ranks[node.input[0]]

    def _broadcast(self, node: onnx.NodeProto) -> int | None:
        """Return the rank of what broadcasting gives; None unless samples meet samples or what all samples share."""
        rank, *others = {self.ranks[name] for name in node.input if name in self.ranks}
        common = [self.whole[name].shape for name in node.input if name in self.whole]
        fits = all(len(shape) < rank or (len(shape) == rank and shape[0] == 1) for shape in common)
        return rank if fits and not others and len(node.output) == 1 else None

    def _reshaped(self, node: onnx.NodeProto) -> int | None:
        target = self.whole.get(node.input[1])
        if target is None or target.dtype != np.int64 or not target.size:
            return None
        empty = attribute_of(node, "allowzero", 0) and not target.all()
        keeps = int(target[0]) == self.count or (int(target[0]) == 0 and not empty)
        return target.size if keeps and not empty else None


def _constant(node: onnx.NodeProto) -> Array:
    (attribute,) = node.attribute
    value = onnx.helper.get_attribute_value(attribute)
    is_tensor = isinstance(value, onnx.TensorProto)
    return onnx.numpy_helper.to_array(value) if is_tensor else np.asarray(value)


def in_parts(
    count: int, size: int, evaluate: Callable[[slice], Sequence[Array]]
) -> tuple[Array, ...]:
    """Return what ``evaluate`` gives for all samples, put together from what it gives for parts of them.

    Parts are small where samples are large: what is computed on the way then lies in memory that a core uses again,
    while the system fills each page of a large array with zeros, which takes longer than the arithmetic.

    Args:
        count: Samples.
        size: Elements of the largest operand that is cut.
        evaluate: Called for several slices of the samples at once; every array that it returns has
            those samples along axis 0.
    """
    parts = min(count, max(cores(), -(-size // PART)))
    edges = [count * place // parts for place in range(parts + 1)]
    whole = Whole(count)

    def work(ends: tuple[int, int]) -> None:
        whole.put(ends[0], evaluate(slice(*ends)))

    on_cores(pairwise(edges), work)
    return whole.arrays
