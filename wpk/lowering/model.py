"""Turn a model file into a lowered program: load it, run the graph passes, cut it into operators, lower them."""

import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx
import onnx_graphsurgeon as gs

from wpk.control_flow import OPERATORS as CONTROL_FLOW
from wpk.control_flow import (
    MAX_DEPTH,
    NotDrivenError,
    read_control_flow,
    require_driven,
    require_ports,
)
from wpk.dtypes import Precision
from wpk.errors import GraphError, WpkError
from wpk.graph_passes import PassRecord, check_skips, infer_shapes, pass_groups, run_passes
from wpk.loading import load_graph
from wpk.lowering.flat_graph import FlatGraph, flatten
from wpk.lowering.free_sizes import Assignment, assignments, constants_that_meet, sizes_to_check
from wpk.lowering.lower import lower
from wpk.lowering.program import NodeRecord, Operator, Program
from wpk.problems import Fallback
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


@dataclass(frozen=True)
class Source:
    """What a model is lowered from.

    Attributes:
        path: The ONNX file.
        shapes: Shapes of inputs, where the model leaves them free.
        precision: Written into the graph's types.
        skip: Names of passes not to run.
    """

    path: Path
    shapes: Mapping[str, Sequence[object]]
    precision: Precision
    skip: Collection[str]


class BodyFolder:
    """A folder for the files of bodies, which goes with this.

    Attributes:
        path: Where it is.
    """

    def __init__(self) -> None:
        """Make it."""
        self.path = Path(tempfile.mkdtemp(prefix="wpk-bodies-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


LARGE = 2**22
"""Elements of all values together from which on a model is not checked at the largest size of its
free dimension, unless a constant meets that dimension: seconds on a CPU."""


@dataclass(frozen=True)
class LoweredModel:
    """A model with what became of it on its way.

    Attributes:
        source: What it was made from.
        program: Operators and values.
        graph: The optimized graph: function bodies are the operators' references.
        original: The graph as loaded.
        before: Nodes as loaded.
        after: Nodes of the optimized graph.
        passes: What each pass did, in order.
        opset: Opset of the file.
        free_sizes: At which the free dimensions must be checked.
        bodies: The bodies of control flow that wpk drives, by the model of the node
            (`wpk.problems.Fallback.model`).
        folder: Holds their files, as long as this exists.
    """

    source: Source
    program: Program
    graph: gs.Graph
    original: FlatGraph
    before: tuple[NodeRecord, ...]
    after: tuple[NodeRecord, ...]
    passes: tuple[PassRecord, ...]
    opset: int
    free_sizes: tuple[Assignment, ...]
    bodies: Mapping[str, "tuple[LoweredModel, ...]"] = field(default_factory=dict)
    folder: "BodyFolder | None" = None

    @property
    def all_operators(self) -> tuple[Operator, ...]:
        """Its operators, and those of bodies under names that say whose they are."""
        found = list(self.program.operators)
        for operator in self.program.operators:
            problem = operator.problem
            made = self.bodies.get(problem.model, ()) if isinstance(problem, Fallback) else ()
            for body in made:
                inner = body.all_operators
                found += [replace(o, name=f"{operator.name}/{o.name}") for o in inner]
        return tuple(found)

    @property
    def has_kernels(self) -> bool:
        """Whether kernels compute any of it."""
        within = (body.has_kernels for each in self.bodies.values() for body in each)
        return bool(self.program.problems) or any(within)


def lower_model(
    path: Path,
    shapes: Mapping[str, Sequence[object]],
    precision: Precision,
    skip: Collection[str] = (),
    progress: Progress = silent,
    *,
    fallback: bool = False,
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
    program = lower(graph, precision, free, _reasons(records), fallback=fallback)
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
    return _with_bodies(model, depth) if program.models else model


def _with_bodies(lowered: LoweredModel, depth: int) -> LoweredModel:
    """Lower the bodies of control flow, too; what stays with ONNX Runtime says why."""
    bodies: dict[str, tuple[LoweredModel, ...]] = {}
    refused: dict[str, str] = {}
    folder = BodyFolder()
    problems = [each.problem for each in lowered.program.operators]
    for problem in (each for each in problems if isinstance(each, Fallback)):
        digest = problem.model
        try:
            bodies[digest] = _lower_bodies(
                problem, lowered.program.models[digest], folder.path, lowered.source, depth
            )
        except NotDrivenError as reason:
            refused[digest] = str(reason)
        except WpkError as error:
            refused[digest] = f"its bodies cannot be engines: {error.what}"
    operators = tuple(
        replace(each, note=f"{each.note}; {refused[each.problem.model]}")
        if isinstance(each.problem, Fallback)
        and each.problem.model in refused
        and any(name in CONTROL_FLOW for name in each.problem.operators)
        else each
        for each in lowered.program.operators
    )
    program = replace(lowered.program, operators=operators)
    return replace(lowered, program=program, bodies=bodies, folder=folder if bodies else None)


def _lower_bodies(
    problem: Fallback, data: bytes, folder: Path, source: Source, depth: int
) -> tuple[LoweredModel, ...]:
    """Lower the bodies of the model of one node.

    Raises:
        NotDrivenError: It is no control flow, or none whose bodies wpk drives.
        WpkError: A body cannot be lowered.
    """
    model = onnx.load_model_from_string(data)
    require_driven(problem, model)
    control = read_control_flow(model, problem.input_types)
    if depth == MAX_DEPTH:
        raise NotDrivenError(f"it lies within more than {MAX_DEPTH} others")
    made = []
    for number, body in enumerate(control.bodies):
        path = folder / f"{problem.model[:16]}_{number}.onnx"
        path.write_bytes(body.model.SerializeToString(deterministic=True))
        made.append(
            lower_model(path, {}, source.precision, source.skip, fallback=True, depth=depth + 1)
        )
    for body, lowered in zip(control.bodies, made, strict=True):
        require_ports(body, lowered.program.ports)
    if not any(each.has_kernels for each in made):
        raise NotDrivenError("nothing in its bodies has a kernel")
    return tuple(made)


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
