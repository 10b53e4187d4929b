"""What of a model kernels carry, what ONNX Runtime executes, and what is refused; nothing is compiled for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wpk.dtypes import Precision
from wpk.errors import WpkError
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.problems import Fallback
from wpk.report import Block, Table, visible

_WHY = 120
_NODES = 60


@dataclass(frozen=True)
class HandedNodes:
    """Nodes of a model that ONNX Runtime executes in one step.

    Attributes:
        nodes: Their names.
        operators: What ONNX calls them.
        why: Why no kernel does.
    """

    nodes: tuple[str, ...]
    operators: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Capability:
    """What becomes of a model.

    Attributes:
        kernels: Operators that kernels compute, those of bodies of control flow included.
        carried: Nodes of the model that are part of these, or that the graph passes made unnecessary.
        handed: What ONNX Runtime executes.
        refused: Why there is no engine, in words; empty where there is one.
    """

    kernels: int
    carried: int
    handed: tuple[HandedNodes, ...]
    refused: str


def capability_of(path: Path) -> Capability:
    """Lower a model in fp32 as `wpk.optimize` would, with the shapes that it has."""
    try:
        lowered = lower_model(path, {}, Precision.FP32, fallback=True)
    except WpkError as error:
        return Capability(0, 0, (), f"{error.what} (fix: {error.fix})")
    handed = tuple(_handed(lowered))
    away = {name for each in handed for name in each.nodes}
    carried = sum(node.name not in away for node in lowered.before)
    return Capability(_kernels(lowered), carried, handed, "")


def _handed(lowered: LoweredModel) -> Iterator[HandedNodes]:
    """What ONNX Runtime executes, in bodies of control flow that are engines, too."""
    for each in lowered.program.operators:
        if not isinstance(each.problem, Fallback):
            continue
        if each.problem.model not in lowered.bodies:
            yield HandedNodes(each.nodes, each.problem.operators, each.note)
        for body in lowered.bodies.get(each.problem.model, ()):
            yield from _handed(body)


def _kernels(lowered: LoweredModel) -> int:
    """Operators that kernels compute, those of bodies included."""
    within = (_kernels(body) for made in lowered.bodies.values() for body in made)
    return len(lowered.program.problems) + sum(within)


def capability_blocks(capability: Capability) -> list[Block]:
    """Return the same for a terminal."""
    if capability.refused:
        return [f"no engine: {visible(capability.refused, 2000)}"]
    words = f"{capability.carried} nodes are carried by {capability.kernels} operators with kernels"
    if not capability.handed:
        return [f"{words}; none needs ONNX Runtime"]
    count = sum(len(each.nodes) for each in capability.handed)
    rows = [
        [
            visible(", ".join(each.nodes), _NODES),
            visible(", ".join(dict.fromkeys(each.operators)), _NODES),
            visible(each.why, _WHY),
        ]
        for each in capability.handed
    ]
    return [
        f"{words}; ONNX Runtime executes {count} in {len(rows)} steps:",
        Table(["executed by ONNX Runtime", "operators", "why"], rows),
    ]
