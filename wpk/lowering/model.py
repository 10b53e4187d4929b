"""Turn a model file into a lowered program: load it, run the graph passes, cut it into operators, lower them."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.errors import GraphError
from wpk.graph_passes import PassRecord, check_skips, infer_shapes, pass_groups, run_passes
from wpk.loading import load_graph
from wpk.lowering.bodies import with_bodies
from wpk.lowering.flat_graph import flatten
from wpk.lowering.free_sizes import assignments, constants_that_meet, sizes_to_check
from wpk.lowering.lower import lower
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.program import NodeRecord, Program
from wpk.progress import Progress, silent
from wpk.shape_ranges import SizeRange, size_ranges

SIMPLIFYING = (
    "attention-parts",
    "block-movement",
    "constant-folding",
    "defined-forms",
    "dynamic-quantisation",
    "einsum-parts",
    "function-bodies",
    "inline-conditionals",
    "quantisation-parts",
    "quantised-products",
    "resize-parts",
    "unroll-loops",
    "window-parts",
    "recurrent-batch-first",
    "recurrent-directions",
    "recurrent-operators",
)
"""Passes that replace operators which lowering does not know."""

TUNED_FREE_SIZE = 1
"""Size at which a free dimension is tuned: the batch that latency is measured at."""


Observer = Callable[[str, gs.Graph], None]
"""Called with the name of a pass that has rewritten, and the graph as it is behind it."""


LARGE = 2**22
"""Elements of all values together from which on a model is not checked at the largest size of its
free dimension, unless a constant meets that dimension: seconds on a CPU."""


def lower_model(
    path: Path,
    shapes: Mapping[str, Sequence[object]],
    precision: Precision,
    skip: Collection[str] = (),
    progress: Progress = silent,
    *,
    fallback: bool = False,
    driven: bool = False,
    depth: int = 0,
) -> LoweredModel:
    """Load a model, rewrite its graph and lower it.

    Args:
        path: The ONNX file.
        shapes: Shapes of inputs, where the model leaves them free.
        precision: Written into the graph's types.
        skip: Names of passes not to run.
        progress: Told of each group of passes.
        fallback: Whether ONNX Runtime executes what no kernel does.
        driven: Whether bodies of control flow become engines also where ONNX Runtime executes nothing.
        depth: In how many nodes it is a body.

    Raises:
        GraphError: The model is damaged, or a pass is unknown.
        UnsupportedError: Some nodes cannot be carried; all are listed.
    """
    source = Source(path, shapes, precision, skip)
    groups = pass_groups(precision)
    check_skips(skip, {each.name for group in groups for each in group})
    graph = load_graph(path, shapes)
    infer_shapes(graph)
    before, original = _nodes(graph), flatten(graph)
    sizes, met = sizes_to_check(graph), constants_that_meet(graph)
    records = _rewrite(graph, source, progress)
    ranges = size_ranges({t.name: t.shape or () for t in graph.inputs}, shapes)
    names = [dim for t in graph.inputs for dim in t.shape or () if isinstance(dim, str)]
    free = {n: ranges[n].fastest if n in ranges else TUNED_FREE_SIZE for n in names}
    program = lower(graph, precision, free, _reasons(records), fallback=fallback, driven=driven)
    limits = _limits(program.limits, ranges)
    program = replace(program, limits=limits)
    progress("graph passes", len(groups), len(groups))
    elements = _elements(program)
    if not met and elements * sizes[-1] > LARGE:
        sizes = sizes[:-1]
    ends = (size for both in limits.values() for size in both if elements * size <= LARGE)
    at = assignments(sorted({*sizes, *ends}), free, limits)
    model = LoweredModel(
        source, program, graph, original, before, _nodes(graph), records, original.opset, at
    )
    if not program.models:
        return model
    lower_body = partial(_lower_body, fallback=fallback)
    return with_bodies(model, lower_body, depth, fallback=fallback)


def _lower_body(path: Path, source: Source, depth: int, *, fallback: bool) -> LoweredModel:
    """Lower a body of a model's control flow as the model was."""
    how = source.shapes, source.precision, source.skip
    return lower_model(path, *how, fallback=fallback, driven=True, depth=depth)


def _limits(
    found: Mapping[str, tuple[int, int]], asked: Mapping[str, SizeRange]
) -> dict[str, tuple[int, int]]:
    """The sizes that were asked for, as far as the model's constants have rows for them.

    Raises:
        GraphError: They have none for the size to be fastest at.
    """
    limits = dict(found)
    for name, each in asked.items():
        largest = min(each.largest, found.get(name, (1, each.largest))[1])
        if each.fastest > largest:
            raise GraphError(
                f"--shapes asks for a {name!r} of {each.fastest}; a constant of the model has rows "
                f"for {largest}",
                fix=f"ask for {largest} at most",
            )
        limits[name] = (each.smallest, largest)
    return limits


def _reasons(records: Sequence[PassRecord]) -> dict[str, str]:
    """Say, by a node's name, why the passes that would have replaced it by simpler nodes did not."""
    return {
        refusal.node: f"{record.name}: {refusal.reason}"
        for record in records
        if record.name in SIMPLIFYING
        for refusal in record.refusals
    }


def replay_passes(source: Source, observe: Observer) -> None:
    """Load a model and run its passes once more, one after the other.

    Args:
        source: What the model was lowered from.
        observe: Told of each pass that has rewritten.
    """
    _rewrite(load_graph(source.path, source.shapes), source, silent, observe)


def _rewrite(
    graph: gs.Graph, source: Source, progress: Progress, observe: Observer | None = None
) -> tuple[PassRecord, ...]:
    """Run all passes on a graph as loaded."""
    groups = pass_groups(source.precision)
    names = {each.name for group in groups for each in group}

    def told(name: str, number: int, rewritten: int) -> None:
        del number
        if rewritten and observe is not None:
            observe(name, graph)

    records: list[PassRecord] = []
    for done, group in enumerate(groups):
        progress("graph passes", done, len(groups))
        records += run_passes(graph, group, source.skip, told, other_passes=names)
    return tuple(records)


def _elements(program: Program) -> int:
    return sum(math.prod(value.shape) for value in program.values.values())


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
