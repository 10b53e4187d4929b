"""Read the axes of a reduction, whichever opset wrote it."""

import onnx_graphsurgeon as gs

from wpk.graph_passes.core.query import given, integers, rank


def reduced_axes(node: gs.Node) -> list[int] | None:
    """Return the sorted axes that a Reduce* node reduces, from 0.

    Reads the attribute (before opset 13 or 18) or the input; None when the axes or the rank of the
    input are not known. No axes mean all of them, or none with ``noop_with_empty_axes``.
    """
    dimensions = rank(node.inputs[0])
    if dimensions is None:
        return None
    axes_input = given(node, 1)
    if axes_input is not None:
        axes = integers(axes_input)
        if axes is None:
            return None
    else:
        axes = [int(axis) for axis in node.attrs.get("axes", [])]
    if not axes:
        return [] if node.attrs.get("noop_with_empty_axes", 0) else list(range(dimensions))
    return sorted(axis % dimensions for axis in axes)
