"""What a rewritten graph must share with the original whatever both compute on one input.

A comparison of values sees neither an output that nobody makes any more, nor a number that happens to be what the model
computes of the input that was drawn.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from wpk.checks.unmoved import moving_tensors
from wpk.lowering.flat_graph import FlatGraph


class Fault(NamedTuple):
    """What is wrong about a tensor.

    Attributes:
        tensor: Its name in the original graph.
        operator: The rewritten graph's node that makes it, or what does instead.
        detail: In words.
    """

    tensor: str
    operator: str
    detail: str


def faults_of_ports(original: FlatGraph, rewritten: FlatGraph) -> list[Fault]:
    """Return names that stand for more than one tensor, and outputs of the model that the rewritten graph has not.

    Args:
        original: The graph as loaded.
        rewritten: After passes.
    """
    made = [name for node in rewritten.nodes for name in node.proto.output if name]
    times = Counter([*rewritten.constants, *made, *original.inputs])
    faults = [
        Fault(name, "several", "more than one node, constant or input has this name")
        for name, count in times.items()
        if count > 1
    ]
    faults += [
        Fault(name, "nothing", "it is an output of the model, and none of the rewritten graph")
        for name in original.outputs
        if name not in rewritten.outputs
    ]
    return faults


def fixed_tensors(original: FlatGraph, rewritten: FlatGraph) -> list[Fault]:
    """Return tensors that the model computes from what inputs hold, if they hold anything, and the rewritten graph from constants.

    The arguments are those of `faults_of_ports`.
    """
    its, moving = moving_tensors(original), moving_tensors(rewritten)
    made = [(name, "a constant", name) for name in rewritten.constants]
    made += [
        (name, node.operator, known_as)
        for node in rewritten.nodes
        for name, known_as in zip(node.proto.output, node.known_as, strict=True)
    ]
    words = "the model computes it from the elements of its inputs, and here nothing reads them"
    return [
        Fault(known_as, operator, words)
        for name, operator, known_as in made
        if known_as in its and name not in moving
    ]
