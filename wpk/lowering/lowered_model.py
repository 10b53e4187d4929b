"""A model with what became of it on its way to operators."""

import shutil
import tempfile
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_graphsurgeon as gs

from wpk.dtypes import Precision
from wpk.errors import GraphError
from wpk.graph_passes import PassRecord, Site, every_site, pass_of
from wpk.lowering.flat_graph import FlatGraph
from wpk.lowering.free_sizes import Assignment
from wpk.lowering.program import NodeRecord, Operator, Program
from wpk.problems import Fallback
from wpk.target_features import USUAL, TargetFeatures


@dataclass(frozen=True)
class Source:
    """What a model is lowered from.

    Attributes:
        path: The ONNX file.
        shapes: Shapes of inputs, where the model leaves them free.
        precision: Written into the graph's types.
        skip: Names of passes not to run.
        changed: The form: keys of the sites that passes decide otherwise than usually.
        features: Of the target.
    """

    path: Path
    shapes: Mapping[str, Sequence[object]]
    precision: Precision
    skip: Collection[str]
    changed: frozenset[str] = frozenset()
    features: TargetFeatures = USUAL


class BodyFolder:
    """A folder for the files of bodies, which goes with this.

    Attributes:
        path: Where it is.
    """

    def __init__(self) -> None:
        """Make it."""
        self.path = Path(tempfile.mkdtemp(prefix="wpk-bodies-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


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
        lowering_sites: Where lowering had a choice.
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
    lowering_sites: tuple[Site, ...] = ()

    @property
    def all_operators(self) -> tuple[Operator, ...]:
        """Its operators, and those of bodies."""
        found = list(self.program.operators)
        for operator in self.program.operators:
            problem = operator.problem
            made = self.bodies.get(problem.model, ()) if isinstance(problem, Fallback) else ()
            for body in made:
                found += body.all_operators
        return tuple(found)

    @property
    def sites(self) -> tuple[Site, ...]:
        """Where passes, and then lowering, had a choice."""
        of_passes = (site for record in self.passes for site in record.sites)
        return (*of_passes, *self.lowering_sites)

    def require_sites(self) -> None:
        """Refuse a form that somebody gave, of which a key names no place at which passes or lowering had a choice.

        Raises:
            GraphError: There are such keys; names them.
        """
        keys, known = self.source.changed, {site.key for site in self.sites}
        known |= {every_site(pass_of(key)) for key in known}
        unknown = sorted({*keys} - known)
        if unknown:
            raise GraphError(
                f"no place of {self.source.path.name} in {self.source.precision} is called "
                f"{', '.join(unknown)}: {len(unknown)} of the form's {len(keys)} keys",
                fix="take keys from a report of this model, of these shapes, this precision and this version of wpk",
            )

    @property
    def has_kernels(self) -> bool:
        """Whether kernels compute any of it."""
        within = (body.has_kernels for each in self.bodies.values() for body in each)
        return bool(self.program.problems) or any(within)
