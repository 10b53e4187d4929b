"""Where a plan comes from: the model, what was asked, and what the passes did."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from wpk.errors import GraphError
from wpk.lowering.lowered_model import LoweredModel
from wpk.plan import PassSummary, Provenance, RefusalSummary
from wpk.shape_ranges import as_range


def model_digest(path: Path) -> str:
    """SHA-256 of the model file, without external data.

    Raises:
        GraphError: It cannot be read.
    """
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise GraphError(
            f"{path} cannot be read: {error.strerror or error}", fix="give the path of an ONNX file"
        ) from error


def provenance(
    path: Path,
    lowered: LoweredModel,
    shapes: Mapping[str, Sequence[object]],
    skipped: Collection[str],
    *,
    fallback: bool = False,
) -> Provenance:
    """What a plan says of its origin: a model, with the shapes of inputs and the skips that were asked for."""
    return Provenance(
        model=path.name,
        model_digest=model_digest(path),
        opset=lowered.opset,
        shapes={name: as_range(name, given) for name, given in shapes.items()},
        skipped_passes=tuple(sorted(skipped)),
        fallback=fallback,
        changed_sites=tuple(sorted(lowered.source.changed)),
        passes=tuple(
            PassSummary(
                record.name,
                record.rewritten,
                tuple(RefusalSummary(r.node, r.reason) for r in record.refusals),
                record.skipped,
            )
            for record in lowered.passes
        ),
        before=lowered.before,
        after=lowered.after,
    )
