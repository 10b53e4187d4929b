"""Resample rows and volumes as images, for which there is a kernel.

    Resize(x), x of [n, c, l]        ->  Resize of [n, c, 1, l], behind a Reshape and in front of one
    Resize(x), x of [n, c, d, h, w]  ->  Resize of [n, c, d, h * w] along d, then of [n, c * d, h, w] along h and w

Nearest and linear resampling are separable. What grows least comes first, so that little is moved between the two.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.resampling.resize_parts import is_rare
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.node_parts import NodeParts
from wpk.graph_passes.core.query import Dims, floats, given, integers, rank

T = TypeVar("T")

_IMAGE_AXES = 4


@dataclass(frozen=True)
class _Stage:
    """Neighbouring axes that are resampled together: one, or the last two.

    Attributes:
        first: The first of them.
        end: Behind the last of them.
        scales: Of each.
    """

    first: int
    end: int
    scales: tuple[float, ...]


@dataclass(frozen=True)
class _Resampling:
    node: gs.Node
    stages: list[_Stage]


class ResizeAxes(Rule[_Resampling]):
    """Replace a Resize of another number of axes than images have."""

    name = "resize-axes"
    ops: ClassVar = ("Resize",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Resampling | Refusal | None:
        """Match the modes of the kernel on axes of known sizes behind the first."""
        del graph
        if is_rare(node) or rank(node.inputs[0]) in (_IMAGE_AXES, None):
            return None
        before, behind = list(node.inputs[0].shape), list(node.outputs[0].shape or [])
        if len(before) < 2 or len(behind) != len(before):
            return Refusal(node.name, f"it goes from shape {before} to {behind}")
        if not all(isinstance(size, int) for size in (*before[1:], *behind[1:])):
            return Refusal(node.name, f"sizes of '{node.inputs[0].name}' are not known")
        scales = _scales(node, before, behind)
        if scales is None:
            return Refusal(node.name, "neither its sizes nor its scales are constant")
        if scales[0] != 1.0:
            return Refusal(node.name, "it resamples the batch")
        return _Resampling(node, _stages(scales))

    def rewrite(self, editor: GraphEditor, match: _Resampling) -> None:
        """Write one Resize a stage."""
        node, to = match.node, NodeParts(editor, match.node)
        x, shape, behind = node.inputs[0], list(node.inputs[0].shape), list(node.outputs[0].shape)
        for stage in match.stages:
            shape[stage.first : stage.end] = behind[stage.first : stage.end]
            x = _resampled(to, x, stage, list(shape))
        if not match.stages:
            x = editor.add("Identity", [x], like=node.outputs[0])
        editor.replace(node.outputs[0], x)


def _scales(node: gs.Node, before: Dims, behind: Dims) -> list[float] | None:
    """The scale along each axis as ONNX has it; None where it is not constant."""
    factors = floats(given(node, 2))
    if factors is not None and factors.size:
        return [float(factor) for factor in factors]
    if integers(given(node, 3)) is None:
        return None
    pairs = zip(before, behind, strict=True)
    return [
        new / old if isinstance(new, int) and isinstance(old, int) else 1.0 for old, new in pairs
    ]


def _stages(scales: list[float]) -> list[_Stage]:
    changed = [axis for axis, scale in enumerate(scales) if scale != 1.0]
    last = len(scales) - 1
    stages = [_Stage(axis, axis + 1, (scales[axis],)) for axis in changed if axis < last - 1]
    pair = [axis for axis in changed if axis >= last - 1]
    if pair:
        stages.append(_Stage(pair[0], pair[-1] + 1, tuple(scales[axis] for axis in pair)))
    return sorted(stages, key=lambda stage: math.prod(stage.scales))


def _resampled(to: NodeParts, x: gs.Tensor, stage: _Stage, shape: Dims) -> gs.Tensor:
    """``x`` with the axes of a stage resampled, of this shape."""
    node = to.node
    image, made = _as_image(list(x.shape), stage), _as_image(shape, stage)
    flat = to.reshaped(x, image)
    own = stage.scales if len(stage.scales) == 2 else _with_one(stage, shape, [*stage.scales], 1.0)
    scales = [1.0, 1.0, *own]
    inputs = [flat, gs.Variable.empty()]
    if floats(given(node, 2)) is not None or not isinstance(made[0], int):
        name = f"{node.name}_scales"
        inputs.append(to.editor.constant(name, np.array(scales, np.float32)))
    else:
        inputs += [gs.Variable.empty(), to.ints([size for size in made if isinstance(size, int)])]
    resized = to.add("Resize", *inputs, shape=made, **node.attrs)
    return to.reshaped(resized, shape)


def _as_image(shape: Dims, stage: _Stage) -> Dims:
    """Batch, all in front of a stage, and its axes; or its only one beside all behind that."""
    inner = [int(size) for size in shape[1:] if isinstance(size, int)]
    before, own = inner[: stage.first - 1], inner[stage.first - 1 : stage.end - 1]
    if len(own) == 1:
        own = _with_one(stage, shape, own, math.prod(inner[stage.end - 1 :]))
    return [shape[0], math.prod(before), *own]


def _with_one(stage: _Stage, shape: Dims, own: list[T], other: T) -> list[T]:
    """What belongs to a single axis, and to the one beside it: a last axis stays the last."""
    is_last = stage.end == len(shape)
    return [*([other] if is_last else []), *own, *([] if is_last else [other])]
