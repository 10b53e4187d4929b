"""Replace chains of views by the shortest chain that does the same.

    Transpose(Transpose(x, NHWC to NCHW), NCHW to NHWC)      ->  x
    Transpose Reshape Transpose Reshape Transpose            ->  Reshape Transpose Reshape

The second is a channel shuffle between channels-last values. The factors of `views` say
what a chain does; three forms can say it again, and the first that is shorter replaces it.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor
from wpk.graph_passes.core.kinds import VIEWS
from wpk.graph_passes.core.query import (
    dims,
    is_graph_output,
    is_op,
    same_dims,
    why_not_replace,
)
from wpk.graph_passes.core.reshape_target import reshape_target
from wpk.graph_passes.movement.chains.views import (
    MOST_AXES,
    Dim,
    Factor,
    Views,
    trace,
    views_before,
)

Step = tuple[str, list[Dim]]
"""("Reshape", target shape) or ("Transpose", perm)."""


def fold_views(graph: gs.Graph) -> int:
    """Shorten the chains of views of ``graph``; return how many were replaced.

    Only the last view of a chain is redirected: the others vanish when nobody else reads them.
    """
    editor = GraphEditor(graph)
    replaced = 0
    for node in list(graph.nodes):
        if not _ends_chain(graph, node):
            continue
        chain = views_before(node.outputs[0])
        described = trace(chain[0].inputs[0], chain)
        steps = None if described is None else shortest(described)
        if steps is None or described is None or _cost(steps) >= _cost(_steps_of(chain)):
            continue
        replaced += int(emit(editor, chain[0].inputs[0], node.outputs[0], steps))
    return replaced


def shortest(views: Views) -> list[Step] | None:
    """Return the cheapest steps from source to target; None where no Reshape target is constant."""
    source, target = list(views.source), list(views.target)
    if not views.moves():
        same = same_dims(source, target)
        forms: list[list[Step]] = [[] if same else [("Reshape", target)]]
    else:
        forms = [steps for steps in _forms(views) if steps is not None]
    good = [steps for steps in forms if _has_constant_targets(source, steps)]
    return min(good, key=_cost, default=None)


def _forms(views: Views) -> Iterator[list[Step] | None]:
    yield _transpose_first(views)
    yield _transpose_last(views)
    yield _transpose_between(views)


def _transpose_first(views: Views) -> list[Step] | None:
    """Permute whole source dimensions, then reshape where the target has other ones."""
    if not views.writes_strided():
        return None
    order = [factor.axis for group in views.groups for factor in group]
    moving = list(dict.fromkeys(order))
    ones = [axis for axis in range(len(views.source)) if axis not in moving]
    perm: list[Dim] = []
    left = list(moving)
    for size in views.target:
        pick = ones if size == 1 else left
        if pick:
            perm.append(pick.pop(0))
    perm = [*ones, *perm, *left] if len(perm) != len(views.source) else perm
    shape = [views.source[int(axis or 0)] for axis in perm]
    steps: list[Step] = [("Transpose", perm)]
    return (
        steps if same_dims(shape, list(views.target)) else [*steps, ("Reshape", list(views.target))]
    )


def _transpose_last(views: Views) -> list[Step] | None:
    """Reshape the source into the target's dimensions, in the source's order, then permute."""
    if not views.reads_strided():
        return None
    axes = range(len(views.target))
    order = sorted(axes, key=lambda axis: _place(views.groups[axis]))
    shape = [views.target[axis] for axis in order]
    perm: list[Dim] = [order.index(axis) for axis in axes]
    return [("Reshape", shape), ("Transpose", perm)]


def _transpose_between(views: Views) -> list[Step]:
    """Reshape into blocks that move as a whole, permute them, reshape into the target.

    As far as kernels have axes, blocks end where a dimension of the target does, inner ones first. There the last
    Reshape only merges axes, which strides can say wherever the target lies, inside a concatenation too.
    """
    cuts = (views.blocks(axis) for axis in range(len(views.groups)))
    blocks = next((cut for cut in cuts if len(cut) <= MOST_AXES), views.blocks())
    order = sorted(range(len(blocks)), key=lambda index: _place(blocks[index]))
    shape = [_size(blocks[index]) for index in order]
    perm: list[Dim] = [order.index(index) for index in range(len(blocks))]
    return [("Reshape", shape), ("Transpose", perm), ("Reshape", list(views.target))]


def _place(group: Sequence[Factor]) -> tuple[int, int]:
    """Order of a group in the source's memory; dimensions of size 1 come first."""
    return (group[0].axis, -group[0].step) if group else (-1, 0)


def _size(group: Sequence[Factor]) -> Dim:
    if len(group) == 1:
        return group[0].size
    sizes = [factor.size for factor in group if isinstance(factor.size, int)]
    return math.prod(sizes) if len(sizes) == len(group) else None


def _has_constant_targets(source: list[Dim], steps: Sequence[Step]) -> bool:
    shape = source
    for op, detail in steps:
        if op == "Reshape" and reshape_target(shape, detail) is None:
            return False
        shape = detail if op == "Reshape" else [shape[int(axis or 0)] for axis in detail]
    return True


def _cost(steps: Sequence[Step]) -> tuple[int, int]:
    """Order chains by the transposes, which may move memory, then by length."""
    return sum(op == "Transpose" for op, _ in steps), len(steps)


def _steps_of(chain: Sequence[gs.Node]) -> list[Step]:
    return [("Transpose" if is_op(node, "Transpose") else "Reshape", []) for node in chain]


def _ends_chain(graph: gs.Graph, node: gs.Node) -> bool:
    if not is_op(node, *VIEWS):
        return False
    output = node.outputs[0]
    readers = list(output.outputs)
    return is_graph_output(graph, output) or not all(is_op(r, *VIEWS) for r in readers)


def emit(editor: GraphEditor, source: gs.Tensor, output: gs.Tensor, steps: list[Step]) -> bool:
    """Make ``output`` from ``source`` by ``steps``; False where both names must stay."""
    if not steps and why_not_replace(editor.graph, output, source) is not None:
        return False
    tensor = source
    for op, detail in steps:
        shape = dims(tensor) or []
        name = f"{output.name}_{op}"
        if op == "Transpose":
            perm = [int(axis or 0) for axis in detail]
            tensor = editor.add(
                op, [tensor], like=source, shape=[shape[axis] for axis in perm], name=name,
                attrs={"perm": perm},
            )  # fmt: skip
        else:
            target = np.array(reshape_target(shape, detail), np.int64)
            sizes = editor.constant(f"{output.name}_shape", target)
            tensor = editor.add(op, [tensor, sizes], like=source, shape=detail, name=name)
    editor.replace(output, tensor)
    return True
