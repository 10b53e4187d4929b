"""Where a plan comes from: the model, the options, and what the graph passes did."""

from dataclasses import dataclass

from wpk.lowering.program import NodeRecord
from wpk.shape_ranges import ShapeRange


@dataclass(frozen=True)
class RefusalSummary:
    """A node that a pass left alone, and why."""

    node: str
    reason: str


@dataclass(frozen=True)
class PassSummary:
    """What one graph pass did."""

    name: str
    rewritten: int
    refusals: tuple[RefusalSummary, ...]
    skipped: bool


@dataclass(frozen=True)
class Provenance:
    """Where the plan comes from: enough to run passes and lowering again.

    Attributes:
        model: File name of the model.
        model_digest: SHA-256 of the model file (without external data).
        opset: Opset of the model.
        shapes: Shapes given, by input: one, or the smallest, the fastest and the largest.
        skipped_passes: Passes skipped on request.
        passes: What each pass did.
        before: Nodes of the model.
        after: Nodes of the optimized graph.
        fallback: Whether ONNX Runtime might execute what no kernel computes.
        changed_sites: The form: keys of the sites that passes decided otherwise than usually.
    """

    model: str
    model_digest: str
    opset: int
    shapes: dict[str, ShapeRange]
    skipped_passes: tuple[str, ...]
    passes: tuple[PassSummary, ...] = ()
    before: tuple[NodeRecord, ...] = ()
    after: tuple[NodeRecord, ...] = ()
    fallback: bool = False
    changed_sites: tuple[str, ...] = ()
