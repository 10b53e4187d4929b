"""From a model file to a lowered program: load, graph passes, partition, lowering."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.graph_passes.catalogue import pass_groups
from wpk.graph_passes.manager import PassRecord, check_skips, run_passes
from wpk.loading import load_graph
from wpk.lowering.lower import lower
from wpk.lowering.program import NodeRecord, Program

Progress = Callable[[str, int, int], None]
"""Called with a stage, how many of its parts are done, and how many there are."""

TUNED_FREE_SIZE = 1
"""Size at which a free dimension is tuned: the batch that latency is measured at."""


@dataclass(frozen=True)
class LoweredModel:
    """A model on its way, with what happened to it.

    Attributes:
        program: Operators and values.
        graph: The optimized graph: function bodies are the operators' references.
        before: Nodes as loaded.
        after: Nodes of the optimized graph.
        passes: What each pass did, in order.
        opset: Opset of the file.
    """

    program: Program
    graph: gs.Graph
    before: tuple[NodeRecord, ...]
    after: tuple[NodeRecord, ...]
    passes: tuple[PassRecord, ...]
    opset: int


def lower_model(
    path: Path,
    shapes: Mapping[str, Sequence[int]],
    precision: Precision,
    skip: Collection[str] = (),
    progress: Progress | None = None,
) -> LoweredModel:
    """Load a model, rewrite its graph and lower it.

    Args:
        path: The ONNX file.
        shapes: Shapes of inputs, where the model leaves them free.
        precision: Written into the graph's types.
        skip: Names of passes not to run.
        progress: Told of each group of passes.

    Raises:
        GraphError: The model is damaged, or a pass is unknown.
        UnsupportedError: Some nodes cannot be carried; all are listed.
    """
    groups = pass_groups(precision)
    names = {each.name for group in groups for each in group}
    check_skips(skip, names)
    graph = load_graph(path, shapes)
    opset, before = int(graph.opset), _nodes(graph)
    records: list[PassRecord] = []
    for done, group in enumerate(groups):
        if progress is not None:
            progress("graph passes", done, len(groups))
        records += run_passes(graph, group, skip, other_passes=names)
    free = {
        t.shape[0]: TUNED_FREE_SIZE for t in graph.inputs if t.shape and isinstance(t.shape[0], str)
    }
    program = lower(graph, precision, free)
    if progress is not None:
        progress("graph passes", len(groups), len(groups))
    return LoweredModel(program, graph, before, _nodes(graph), tuple(records), opset)


def _nodes(graph: gs.Graph) -> tuple[NodeRecord, ...]:
    return tuple(
        NodeRecord(
            node.name,
            node.op,
            tuple(t.name for t in node.inputs if t.name),
            tuple(t.name for t in node.outputs if t.name),
        )
        for node in graph.nodes
    )
