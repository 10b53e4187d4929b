"""Write a Scan or Loop of a known number of steps as that many copies of its body.

    s, z = Scan(s0, x) { s', t = f(s, x_i) }   ->   s1, t1 = f(s0, x[0])  s2, t2 = f(s1, x[1])  ...
                                                   s = s2                 z = [t1, t2, ...]

A Loop's body is given its step's number as a constant, and its condition, which is known to hold. What
the body reads from outside it reads on; all names are new. Constant folding and the removal of common
subexpressions then take what steps do not need, or share.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.control_flow.carried import is_carried
from wpk.graph_passes.clean.control_flow.loops import Along, along_of, holds
from wpk.graph_passes.clean.control_flow.subgraphs import (
    copy_nodes,
    detach,
    name_constants_apart,
    with_nested,
)
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.known import follows_from_constants
from wpk.graph_passes.core.query import (
    ONNX_DOMAINS,
    Dims,
    dims,
    given,
    integers,
    rank,
    used_outputs,
    values,
)

MAX_NODES = 4096
"""Nodes of all copies together. Each may become a kernel that is tuned, compiled and launched; longer loops
take ONNX Runtime less time than so many launches take a GPU, and compiling them hours."""

_SCAN_OF_SEQUENCES = 8
"""The opset whose Scan has a batch and lengths of sequences; wpk reads none so old."""


_DECIDING = {"If": 1, "Loop": 2}
"""Operators that go as soon as so many inputs are known. Copies of others would be steps of ONNX Runtime, one
after the other, where the loop is one."""


@dataclass(frozen=True)
class Unrolling:
    """A loop that can be unrolled.

    Attributes:
        node: The Scan or Loop.
        body: Its body.
        steps: How often the body is executed.
        states: What its states are at first.
        sliced: What each step is given a part of.
        joined: How each output that has a part of every step is put together.
    """

    node: gs.Node
    body: gs.Graph
    steps: int
    states: Sequence[gs.Tensor]
    sliced: Sequence[tuple[gs.Tensor, Along]]
    joined: Sequence[Along]


class UnrollLoops(Rule[Unrolling]):
    """Unroll loops of a known number of steps; a loop inside a body waits for the next round."""

    name = "unroll-loops"
    ops = ("Scan", "Loop")

    def match(self, graph: gs.Graph, node: gs.Node) -> Unrolling | Refusal:
        """Count the steps; what has to be known, and is not, is the reason why a loop stays."""
        found = _scan(graph, node) if node.op == "Scan" else _loop(node)
        if isinstance(found, str):
            return Refusal(node.name, found)
        reason = _why_not(graph, found)
        return found if reason is None else Refusal(node.name, reason)

    def rewrite(self, editor: GraphEditor, match: Unrolling) -> None:
        """Put the copies into the graph, and let the loop's outputs be what the last one makes."""
        name_constants_apart(
            editor.graph, match.body, lambda name: editor.new_name(f"{match.node.name}_{name}")
        )
        states = list(match.states)
        parts: list[list[gs.Tensor]] = [[] for _ in match.joined]
        for step in range(match.steps):
            results = _copy(editor, match, step, states)
            states = results[: len(states)]
            for each, part in zip(parts, results[len(states) :], strict=True):
                each.append(part)
        node, outputs = match.node, list(match.node.outputs)
        detach(match.body)
        node.attrs.clear()
        node.inputs.clear()
        node.outputs.clear()
        for state, output in zip(states, outputs, strict=False):
            _name_result(editor, "Identity", [state], {}, output)
        for tensors, along, output in zip(
            parts, match.joined, outputs[len(states) :], strict=False
        ):
            if tensors:
                turned = tensors[::-1] if along.backwards else tensors
                whole = [_with_axis(editor, "Unsqueeze", t, along.axis, None) for t in turned]
                _name_result(editor, "Concat", whole, {"axis": along.axis}, output)


def _scan(graph: gs.Graph, node: gs.Node) -> Unrolling | str:
    """Read a Scan."""
    if graph.opset <= _SCAN_OF_SEQUENCES:
        return f"a Scan of opset {graph.opset} has a batch and lengths of sequences"
    count, body = int(node.attrs["num_scan_inputs"]), node.attrs["body"]
    first = len(node.inputs) - count
    sliced = []
    steps: set[int] = set()
    for tensor, along in zip(node.inputs[first:], along_of(node, "input", count), strict=True):
        shape = dims(tensor)
        if shape is None:
            return f"the rank of '{tensor.name}' is not known"
        size = shape[along.axis]
        if not isinstance(size, int):
            return f"its number of steps, dimension {along.axis} of '{tensor.name}', is not known"
        steps.add(size)
        sliced.append((tensor, Along(along.axis % len(shape), along.backwards)))
    if len(steps) != 1:
        return f"its inputs have different numbers of steps: {sorted(steps)}"
    joined = along_of(node, "output", len(body.outputs) - first)
    return Unrolling(node, body, steps.pop(), node.inputs[:first], sliced, joined)


def _loop(node: gs.Node) -> Unrolling | str:
    """Read a Loop, whose outputs of every step are joined along a new first axis."""
    body, runs = node.attrs["body"], given(node, 1)
    condition = None if runs is None else values(runs)
    if runs is not None and condition is None:
        return f"its condition '{runs.name}' is not constant"
    if not holds(body.outputs[0], body.inputs[1]):
        return f"its condition '{body.outputs[0].name}' may end it after any step"
    trips = given(node, 0)
    if trips is None:
        return "it has no number of steps, and ends never"
    number = integers(trips)
    if number is None:
        return f"its number of steps '{trips.name}' is not constant"
    steps = max(0, *number) if condition is None or condition.all() else 0
    states = node.inputs[2:]
    count = len(body.outputs) - 1 - len(states)
    return Unrolling(node, body, steps, states, [], [Along(0, backwards=False)] * count)


def _why_not(graph: gs.Graph, loop: Unrolling) -> str | None:
    """Say why a loop whose steps are known stays all the same."""
    no_tensor = [t.name for t in loop.body.inputs if getattr(t, "type", "") != "tensor_type"]
    if no_tensor:
        return f"its state '{no_tensor[0]}' is no tensor"
    nodes = list(with_nested(loop.body.nodes))
    counted = loop.body.inputs[:2] if loop.node.op == "Loop" else []
    for node in nodes:
        if node.domain not in ONNX_DOMAINS or not is_carried(node.op, graph.opset):
            return f"its body has {node.op}, which is not supported"
        for tensor in node.inputs[: _DECIDING.get(node.op, 0)]:
            if not follows_from_constants(tensor, counted, free_sizes=True):
                return f"its body has {node.op}, and '{tensor.name}', which decides it, is computed"
    if len(nodes) * loop.steps > MAX_NODES:
        return (
            f"{loop.steps} copies of its {len(nodes)} nodes would be {len(nodes) * loop.steps} nodes, "
            f"more than {MAX_NODES}"
        )
    empty = loop.node.outputs[len(loop.states) :] if loop.steps == 0 else []
    for tensor in used_outputs(graph, loop.node):
        if any(tensor is each for each in empty):
            return f"it has no steps, and '{tensor.name}' is empty"
    return None


def _copy(
    editor: GraphEditor, loop: Unrolling, step: int, states: Sequence[gs.Tensor]
) -> list[gs.Tensor]:
    """Add the copy of a step; return what it makes, the states first."""
    body, stem = loop.body, f"{loop.node.name}_{step}"
    if loop.node.op == "Loop":
        inputs = [
            editor.constant(f"{stem}_{tensor.name}", np.full([1] * (rank(tensor) or 0), value))
            for tensor, value in zip(body.inputs, (np.int64(step), np.bool_(True)), strict=False)
        ]
        inputs += states
    else:
        inputs = [*states, *(_part(editor, loop, step, *each) for each in loop.sliced)]
    replaced = {id(old): new for old, new in zip(body.inputs, inputs, strict=True)}
    editor.graph.nodes.extend(
        copy_nodes(body.nodes, replaced, lambda name: editor.new_name(f"{stem}_{name}"))
    )
    results = [replaced.get(id(tensor), tensor) for tensor in body.outputs]
    return results[1:] if loop.node.op == "Loop" else results


def _part(
    editor: GraphEditor, loop: Unrolling, step: int, tensor: gs.Tensor, along: Along
) -> gs.Tensor:
    """Cut what a step is given out of a scan's input."""
    index = loop.steps - 1 - step if along.backwards else step
    shape = list(dims(tensor) or [])
    shape[along.axis] = 1
    stem = f"{loop.node.name}_{step}_{tensor.name}"
    bounds = [
        editor.constant(f"{stem}_{word}", np.array([value], np.int64))
        for word, value in (("start", index), ("end", index + 1), ("axis", along.axis))
    ]
    part = editor.add("Slice", [tensor, *bounds], like=tensor, shape=shape, name=f"{stem}_Slice")
    del shape[along.axis]
    return _with_axis(editor, "Squeeze", part, along.axis, shape)


def _with_axis(
    editor: GraphEditor, op: str, tensor: gs.Tensor, axis: int, shape: Dims | None
) -> gs.Tensor:
    """Squeeze or unsqueeze in the form of the graph's opset."""
    inputs: list[gs.Tensor] = [tensor]
    attrs: dict[str, object] = {}
    if editor.graph.opset < 13:
        attrs = {"axes": [axis]}
    else:
        inputs.append(editor.constant(f"{tensor.name}_axis", np.array([axis], np.int64)))
    output = editor.add(op, inputs, like=tensor, shape=shape, attrs=attrs)
    output.shape = shape
    return output


def _name_result(
    editor: GraphEditor,
    op: str,
    inputs: Sequence[gs.Tensor],
    attrs: dict[str, object],
    output: gs.Tensor,
) -> None:
    """Let a node make an output of the loop, unless that is left out."""
    if not output.is_empty():
        name = editor.new_name(f"{output.name}_{op}")
        editor.graph.nodes.append(gs.Node(op, name, attrs, list(inputs), [output]))
