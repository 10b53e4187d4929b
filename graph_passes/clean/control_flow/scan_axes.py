"""Let a Scan cut and collect along first axes.

    z = Scan<axes = [1] -> [2]>(x)   ->   z = Transpose(Scan<axes = [0] -> [0]>(Transpose(x)))

Exact: elements are moved. Parts along a first axis lie in one piece: who drives the turns copies them as they
are, where along any other axis each would be gathered from all over the tensor, once a turn.
"""

from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.clean.control_flow.loops import along_of
from wpk.graph_passes.core import GraphEditor, Refusal, Rule
from wpk.graph_passes.core.query import dims, rank

_SCAN_OF_SEQUENCES = 8
"""The opset whose Scan has a batch and lengths of sequences."""

_AXES = ("scan_input_axes", "scan_output_axes")


@dataclass(frozen=True)
class _Scan:
    """A Scan with the axes that its sliced inputs and collected outputs have, by their numbers."""

    node: gs.Node
    sliced: dict[int, int]
    collected: dict[int, int]


class ScanAxes(Rule[_Scan]):
    """Move the axes of a Scan's inputs and outputs to the front, in nodes of their own."""

    name = "scan-axes"
    ops = ("Scan",)

    def match(self, graph: gs.Graph, node: gs.Node) -> _Scan | Refusal | None:
        """Find the axes; what has no known number of them is the reason why a Scan stays."""
        if graph.opset <= _SCAN_OF_SEQUENCES:
            return None
        count, body = int(node.attrs["num_scan_inputs"]), node.attrs["body"]
        first = len(node.inputs) - count
        sliced, collected = (
            {first + number: along.axis for number, along in enumerate(ways) if along.axis}
            for ways in (
                along_of(node, "input", count),
                along_of(node, "output", len(body.outputs) - first),
            )
        )
        if not sliced and not collected:
            return None
        for tensors, axes in ((node.inputs, sliced), (node.outputs, collected)):
            for number in list(axes):
                tensor = tensors[number] if number < len(tensors) else gs.Variable.empty()
                if tensor.is_empty():
                    del axes[number]
                elif not rank(tensor):
                    return Refusal(node.name, f"the rank of '{tensor.name}' is not known")
        return _Scan(node, sliced, collected)

    def rewrite(self, editor: GraphEditor, match: _Scan) -> None:
        """Write a Transpose in front of each input, and behind each output."""
        node, inputs, outputs = match.node, list(match.node.inputs), list(match.node.outputs)
        for name in _AXES:
            node.attrs.pop(name, None)
        for number, axis in match.sliced.items():
            tensor = inputs[number]
            order = _in_front(axis % len(tensor.shape), len(tensor.shape))
            shape = [(dims(tensor) or [])[each] for each in order]
            inputs[number] = editor.add(
                "Transpose", [tensor], like=tensor, shape=shape, attrs={"perm": order}
            )
        for number, axis in match.collected.items():
            tensor = outputs[number]
            order = _in_front(axis % len(tensor.shape), len(tensor.shape))
            shape = [(dims(tensor) or [])[each] for each in order]
            name = editor.new_name(f"{tensor.name}_by_turns")
            outputs[number] = gs.Variable(name, tensor.dtype, shape)
            back = [order.index(axis) for axis in range(len(order))]
            tensor.inputs.clear()
            editor.graph.nodes.append(
                gs.Node(
                    "Transpose",
                    editor.new_name(f"{tensor.name}_Transpose"),
                    {"perm": back},
                    [outputs[number]],
                    [tensor],
                )
            )
        node.inputs = inputs
        node.outputs = outputs


def _in_front(axis: int, rank: int) -> list[int]:
    """The order of axes that has one in front, and the others as they were."""
    return [axis, *(each for each in range(rank) if each != axis)]
