"""Normalised rows that products read: what both the passes that move parameters and those that fuse have to know."""

from math import prod

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.kinds import RMS_NORM, VIEWS
from wpk.graph_passes.core.query import dims, given, is_op, uniform
from wpk.problems import FEW_ROWS

NORMS = ("LayerNormalization", RMS_NORM)
"""Of rows, by their own mean and mean square."""


def why_no_rows(norm: gs.Node) -> str | None:
    """Say why a normalisation is none of many rows, each along the last axis."""
    shape = dims(norm.inputs[0])
    if shape is None or len(shape) < 2:
        return f"the rows of '{norm.inputs[0].name}' are not known"
    if int(norm.attrs.get("axis", -1)) % len(shape) != len(shape) - 1:
        return f"'{norm.name}' normalises more than the last axis"
    rows = prod(extent for extent in shape[:-1] if isinstance(extent, int))
    if rows <= FEW_ROWS:
        return f"{rows} rows are multiplied while the matrix comes; nothing is saved by reading them raw"
    return None


def is_bare(norm: gs.Node) -> bool:
    """Whether a normalisation has no scale but ones, and no shift."""
    return given(norm, 2) is None and uniform(given(norm, 1)) == 1.0


def keeps_rows(view: gs.Node) -> bool:
    """Whether a view leaves the rows along its last axis whole, and their elements in order."""
    before, after = dims(view.inputs[0]), dims(view.outputs[0])
    if not is_op(view, *VIEWS) or not before or not after or len(after) < 2:
        return False
    if is_op(view, "Transpose"):
        last = len(before) - 1
        return [int(axis) for axis in view.attrs.get("perm", range(last, -1, -1))][-1] == last
    return before[-1] == after[-1] and isinstance(after[-1], int) and after[-1] > 1
