"""Which operators can be evaluated for parts of a batch, and the evaluation on all cores.

Axis 0 of a model's activations is its batch, and most operators compute each sample from that sample
alone. NumPy computes one part on one core, so a batch is cut into a part a core. Where it has too few samples for that,
words along axis 1 are cut, if each of them is computed alone, too, as by the norms and products of a transformer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from wpk.blocks import PART, cores
from wpk.checks.chain import Chain, constant_of
from wpk.checks.float64_nodes import Array
from wpk.checks.node_parts import put_together


@dataclass(frozen=True)
class Cut:
    """What is cut of all inputs and outputs of a chain of nodes.

    Attributes:
        axis: The axis.
        count: Its extent.
    """

    axis: int
    count: int


_AXES = (0, 1)
"""Samples, and words of a sample."""


def cut_of_chain(
    nodes: Sequence[onnx.NodeProto], batched: Mapping[str, Array], fixed: Mapping[str, Array]
) -> Cut | None:
    """Return where a chain of nodes can be cut; None where it cannot be cut, or where nobody can tell.

    The first axis with some elements for each core is taken, else the one with most. Products of matrices with each other are
    left whole rather than cut into fewer parts than there are cores: their rows are cut (`wpk.checks.stretches`).
    A part is computed by the nodes that `for_parts` makes of them.

    Args:
        nodes: The nodes in order; each reads the inputs and what those before it gave.
        batched: The inputs that may have a batch.
        fixed: The others: weights.
    """
    found = list[Cut]()
    for axis in _AXES:
        chain = chain_along(nodes, batched, fixed, axis)
        if chain is None:
            continue
        cut = Cut(axis, chain.beginning[axis])
        if cut.count >= 2 * cores():
            return cut
        if cut.count >= cores() or not chain.multiplies:
            found.append(cut)
    return max(found, key=lambda cut: cut.count, default=None)


def chain_along(
    nodes: Sequence[onnx.NodeProto],
    batched: Mapping[str, Array],
    fixed: Mapping[str, Array],
    axis: int,
) -> Chain | None:
    """What is known behind nodes that compute each element of an axis alone; None where they do not."""
    beginnings = {array.shape[: axis + 1] for array in batched.values()}
    if len(beginnings) != 1:
        return None
    (beginning,) = beginnings
    if len(beginning) <= axis or beginning[axis] < 2:
        return None
    chain = Chain(beginning, {name: a.ndim for name, a in batched.items()}, dict(fixed))
    return chain if all(chain.takes(node) for node in nodes) and chain.ends_cut else None


def for_parts(
    nodes: Sequence[onnx.NodeProto], fixed: Mapping[str, Array], axis: int
) -> list[onnx.NodeProto]:
    """Return the nodes for parts of any size: a reshape whose target names what is cut keeps its input's."""
    known, found = dict(fixed), list[onnx.NodeProto]()
    kept = axis + 1
    for node in nodes:
        if node.op_type == "Constant":
            known[node.output[0]] = constant_of(node)
        if node.op_type == "Reshape":
            target = onnx.numpy_helper.from_array(
                np.array([*[0] * kept, *known[node.input[1]][kept:]], np.int64)
            )
            name = f"{node.output[0]}_target"
            found.append(onnx.helper.make_node("Constant", [], [name], value=target))
            node = onnx.helper.make_node("Reshape", [node.input[0], name], node.output)
        found.append(node)
    return found


def in_parts(
    cut: Cut, size: int, evaluate: Callable[[slice], Sequence[Array]]
) -> tuple[Array, ...]:
    """Return what ``evaluate`` gives for everything, put together from what it gives for parts.

    Parts are small where samples are large: what is computed on the way then lies in memory that a core uses again,
    while the system fills each page of a large array with zeros, which takes longer than the arithmetic.

    Args:
        cut: What is cut.
        size: Elements of the largest operand that is cut.
        evaluate: Called for several slices of the axis at once; every array that it returns has
            those elements along it.
    """
    return put_together(cut.count, cut.axis, max(cores(), -(-size // PART)), evaluate)
