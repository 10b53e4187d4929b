"""Edits that keep a graph well-formed: unique names, linked tensors, graph outputs in place."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import DTypeLike, NDArray

from wpk.graph_passes.core.exact import know_exactly, rounded_constant
from wpk.graph_passes.core.query import (
    Dims,
    element_type,
    is_graph_output,
    tensors_of,
    why_not_replace,
)

Attributes = Mapping[str, object]


class GraphEditor:
    """Adds nodes and constants to a graph, and redirects readers from one tensor to another.

    Make one for each run of a pass: it reads the graph's names once.
    """

    def __init__(self, graph: gs.Graph) -> None:
        """Collect the names in use."""
        self.graph = graph
        self._names = {node.name for node in graph.nodes}
        tensors = (*graph.inputs, *graph.outputs, *tensors_of(graph.nodes))
        self._names.update(tensor.name for tensor in tensors)
        self._numbers: dict[str, int] = {}  # the last behind each name that was wanted

    def new_name(self, wanted: str) -> str:
        """Return ``wanted``, or with the first free number behind it, and take the name."""
        number = self._numbers.get(wanted, 1)  # names are never given back: those below are taken
        name = wanted if number == 1 else f"{wanted}_{number}"
        while name in self._names:
            number += 1
            name = f"{wanted}_{number}"
        self._numbers[wanted] = number
        self._names.add(name)
        return name

    def constant(
        self,
        name: str,
        array: NDArray[np.generic],
        dtype: DTypeLike | None = None,
        exact: NDArray[np.generic] | None = None,
    ) -> gs.Constant:
        """Make a constant under a new name.

        Args:
            name: Wanted name.
            array: The values; in float64, unrounded, where they were computed.
            dtype: NumPy's type of the constant; that of ``array`` by default.
            exact: What ``array`` would be without the roundings that went into it, if any did.
        """
        array = np.asarray(array)
        if not array.flags.c_contiguous:
            array = np.ascontiguousarray(array)
        wanted = array.dtype if dtype is None else dtype
        return rounded_constant(self.new_name(name), array, wanted, exact)

    def add(
        self,
        op: str,
        inputs: Sequence[gs.Tensor],
        *,
        like: gs.Tensor,
        shape: Dims | None = None,
        name: str | None = None,
        attrs: Attributes | None = None,
    ) -> gs.Variable:
        """Append a node with one output and return that output.

        Args:
            op: Standard ONNX operator.
            inputs: Tensors it reads.
            like: Gives the output's dtype, its shape unless ``shape`` is given, and its name unless
                ``name`` is given.
            shape: Shape of the output.
            name: Wanted name of node and output.
            attrs: Attributes of the node.
        """
        wanted = name or f"{like.name}_{op}"
        known = shape if shape is not None else like.shape
        output = gs.Variable(
            self.new_name(f"{wanted}_out"),
            element_type(like),
            None if known is None else list(known),
        )
        self.graph.nodes.append(
            gs.Node(op, self.new_name(wanted), dict(attrs or {}), list(inputs), [output])
        )
        return output

    def fold_output(
        self,
        node: gs.Node,
        output: gs.Tensor,
        array: object,
        export_dtype: object = None,
        exact: NDArray[np.generic] | None = None,
    ) -> None:
        """Turn ``output`` of ``node`` into a constant that keeps its name and its readers.

        Args:
            node: It makes the output.
            output: Becomes the constant.
            array: Its values.
            export_dtype: Its type, where NumPy lacks it.
            exact: What the values were before they were rounded, where that is known.
        """
        _set_outputs(node, [t if t is not output else gs.Variable.empty() for t in node.outputs])
        output.to_constant(array, export_dtype=export_dtype)
        if exact is not None:
            know_exactly(output, exact)

    def rename(self, tensor: gs.Tensor, wanted: str) -> None:
        """Give ``tensor`` a new name, since its value changes: a name stands for one value."""
        tensor.name = self.new_name(wanted)

    def replace(self, old: gs.Tensor, new: gs.Tensor) -> None:
        """Make every reader of ``old`` read ``new``, and detach ``old`` from its producer.

        A name stands for one value through all passes. So the producer of ``new`` makes ``old`` from
        now on, under its name, where nobody else reads ``new``; where ``old`` is a graph output, it
        must be so (see `why_not_replace`).
        """
        reason = why_not_replace(self.graph, old, new)
        if reason is not None:
            raise ValueError(reason)
        keep, drop = (old, new) if self._takes_name(old, new) else (new, old)
        maker = new.inputs[0] if new.inputs else None
        for node in list(old.inputs):
            _set_outputs(node, [t if t is not old else gs.Variable.empty() for t in node.outputs])
        if keep is old:
            assert maker is not None  # `_takes_name`, and why_not_replace for a graph output
            _set_outputs(maker, [old if t is new else t for t in maker.outputs])
        for reader in _unique(drop.outputs):
            reader.inputs = [keep if t is drop else t for t in reader.inputs]

    def _takes_name(self, old: gs.Tensor, new: gs.Tensor) -> bool:
        """Whether the producer of ``new`` shall make ``old``."""
        if is_graph_output(self.graph, old):
            return True
        if not new.inputs or is_graph_output(self.graph, new):
            return False
        return all(any(made is old for made in reader.outputs) for reader in new.outputs)


def _set_outputs(node: gs.Node, outputs: list[gs.Tensor]) -> None:
    while outputs and outputs[-1].is_empty():
        outputs = outputs[:-1]
    node.outputs = outputs


def _unique(nodes: Sequence[gs.Node]) -> list[gs.Node]:
    return list({id(node): node for node in nodes}.values())
