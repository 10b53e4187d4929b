"""Turn a model file into a lowered program: load it, run the graph passes, cut it into operators, lower them."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.errors import GraphError
from wpk.garbage import collected_behind
from wpk.graph_passes import (
    KnownTypes,
    PassRecord,
    check_skips,
    infer_shapes,
    pass_groups,
    pass_of,
)
from wpk.loading import load_graph
from wpk.lowering.bodies import with_bodies
from wpk.lowering.choices import NAMES as CHOICES
from wpk.lowering.choices import LoweringChoices
from wpk.lowering.flat_graph import flatten
from wpk.lowering.free_sizes import Assignment, assignments, constants_that_meet, sizes_to_check
from wpk.lowering.graph_copy import copied
from wpk.lowering.group_run import GroupRun, Observer
from wpk.lowering.known_operators import KnownOperators
from wpk.lowering.lower import lower
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.program import NodeRecord, Program
from wpk.progress import Progress, silent
from wpk.shape_ranges import SizeRange, size_ranges
from wpk.target_features import USUAL, TargetFeatures

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
    changed: Collection[str] = (),
    fallback: bool = False,
    driven: bool = False,
    depth: int = 0,
    features: TargetFeatures = USUAL,
) -> LoweredModel:
    """Load a model, rewrite its graph and lower it.

    Args:
        path: The ONNX file.
        shapes: Shapes of inputs, where the model leaves them free.
        precision: Written into the graph's types.
        skip: Names of passes not to run.
        progress: Told of each group of passes.
        changed: The form: keys of the sites that passes decide otherwise than usually.
        fallback: Whether ONNX Runtime executes what no kernel does.
        driven: Whether bodies of control flow become engines also where ONNX Runtime executes nothing.
        depth: In how many nodes it is a body.
        features: Of the target (`wpk.targets.features_of`).

    Raises:
        GraphError: The model is damaged, or a pass is unknown.
        UnsupportedError: Some nodes cannot be carried; all are listed.
    """
    source = Source(path, shapes, precision, skip, features=features)
    forms = ModelForms(source, progress, fallback=fallback, driven=driven, depth=depth)
    return forms.lowered(frozenset(changed))


@dataclass(frozen=True)
class _Checkpoint:
    """A graph, and what passes did to it so far, before the next group runs."""

    graph: gs.Graph
    records: tuple[PassRecord, ...]


class ModelForms:
    """Lowers one model in one form after another: what no form changes is loaded and rewritten once."""

    def __init__(
        self,
        source: Source,
        progress: Progress = silent,
        *,
        fallback: bool = False,
        driven: bool = False,
        depth: int = 0,
    ) -> None:
        """Load the model; see `lower_model`. Of the first form's passes alone progress is told.

        Raises:
            GraphError: The model is damaged, or a pass is unknown.
        """
        groups = pass_groups(source.precision)
        self._places = {each.name: n for n, group in enumerate(groups) for each in group}
        check_skips(source.skip, self._places)
        self._end = len(groups)
        self._places |= dict.fromkeys(CHOICES, self._end)
        self._source, self._progress = source, progress
        self._fallback, self._driven, self._depth = fallback, driven, depth
        graph = load_graph(source.path, source.shapes)
        self._types, self._operators = KnownTypes(), KnownOperators()
        infer_shapes(graph, self._types)
        self._before, self._original = _nodes(graph), flatten(graph)
        self._sizes, self._met = sizes_to_check(graph), constants_that_meet(graph)
        self._checkpoints = {0: _Checkpoint(graph, ())}

    def lowered(self, changed: frozenset[str] = frozenset()) -> LoweredModel:
        """Run the passes that this form changes, and all behind them; lower what they make.

        Raises:
            GraphError: A pass failed, or a key names no pass.
            UnsupportedError: Some nodes cannot be carried; all are listed.
        """
        with collected_behind():
            return self._lowered(changed)

    def _lowered(self, changed: frozenset[str]) -> LoweredModel:
        source = replace(self._source, changed=changed)
        graph, records = self._rewritten(source)
        ranges = size_ranges({t.name: t.shape or () for t in graph.inputs}, source.shapes)
        names = [dim for t in graph.inputs for dim in t.shape or () if isinstance(dim, str)]
        free = {n: ranges[n].fastest if n in ranges else TUNED_FREE_SIZE for n in names}
        choices = LoweringChoices(changed)
        program = lower(
            graph,
            source.precision,
            free,
            _reasons(records),
            choices=choices,
            known=self._operators,
            fallback=self._fallback,
            driven=self._driven,
        )
        limits = _limits(program.limits, ranges)
        program = replace(program, limits=limits)
        model = LoweredModel(
            source,
            program,
            graph,
            self._original,
            self._before,
            _nodes(graph),
            records,
            self._original.opset,
            self._sizes_to_check(program, free),
            lowering_sites=tuple(choices.sites),
        )
        if not program.models:
            return model
        lower_body = partial(_lower_body, fallback=self._fallback)
        return with_bodies(model, lower_body, self._depth, fallback=self._fallback)

    def _rewritten(self, source: Source) -> tuple[gs.Graph, tuple[PassRecord, ...]]:
        """The graph behind all passes, from the last point on up to which all forms are alike."""
        check_skips({pass_of(key) for key in source.changed}, self._places)
        first = min((self._places[pass_of(key)] for key in source.changed), default=self._end)
        start = max(place for place in self._checkpoints if place <= first)
        at = self._checkpoints[start]
        graph, records = copied(at.graph), list(at.records)
        run = GroupRun(source, self._progress, known=self._types)
        for place, group in enumerate(run.groups):
            if place < start:
                continue
            if place <= first and any(each.is_choice for each in group):
                self._keep(place, graph, records)
            records += run.of(place, graph)
        if first == self._end:
            self._keep(first, graph, records)
        self._progress("graph passes", len(run.groups), len(run.groups))
        self._progress = silent  # the time of other forms is that of whoever looks at them
        return graph, tuple(records)

    @property
    def node_count(self) -> int:
        """How many nodes the model has as it was loaded."""
        return len(self._before)

    def _keep(self, place: int, graph: gs.Graph, records: Sequence[PassRecord]) -> None:
        """Go on from here in other forms, unless one came by already."""
        if place not in self._checkpoints:
            self._checkpoints[place] = _Checkpoint(copied(graph), tuple(records))

    def _sizes_to_check(self, program: Program, free: Mapping[str, int]) -> tuple[Assignment, ...]:
        """Free sizes at which the model is checked, without those that would take too long."""
        sizes, elements = self._sizes, _elements(program)
        if not self._met and elements * sizes[-1] > LARGE:
            sizes = sizes[:-1]
        ends = (n for both in program.limits.values() for n in both if elements * n <= LARGE)
        return assignments(sorted({*sizes, *ends}), free, program.limits)


def _lower_body(path: Path, source: Source, depth: int, *, fallback: bool) -> LoweredModel:
    """Lower a body of a model's control flow as the model was."""
    how = source.shapes, source.precision, source.skip
    return lower_model(
        path,
        *how,
        fallback=fallback,
        driven=True,
        depth=depth,
        features=source.features,
    )


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
    graph, run = load_graph(source.path, source.shapes), GroupRun(source, silent, observe)
    for place in range(len(run.groups)):
        run.of(place, graph)


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
