"""Give the zeros of a Pad to the window operator that reads them.

Conv(Pad(x, p), pads q)         ->  Conv(x, pads p + q)            padded with 0
AveragePool(Pad(x, p))          ->  AveragePool(x, pads p + q)     padded with 0 and counted
MaxPool(Pad(x, p), pads q)      ->  MaxPool(x, pads p + q)         padded with -inf, or with 0
                                                                   where x cannot be negative
"""

import math
from dataclasses import dataclass

import onnx_graphsurgeon as gs

from wpk.graph_passes.core import GraphEditor, Refusal, Rule, refusal
from wpk.graph_passes.core.query import (
    added_around,
    given,
    is_op,
    made_by,
    pads_by_itself,
    producer,
    uniform,
    window_numbers,
)


@dataclass(frozen=True)
class _PaddedWindow:
    """A window operator behind a Pad, and the zeros that it takes: all begins, then all ends."""

    window: gs.Node
    pad: gs.Node
    padding: list[int]


class PadIntoWindow(Rule[_PaddedWindow]):
    """Let Conv and pooling read before the Pad; the Pad goes once nobody reads it."""

    name = "pad-into-window"
    ops = ("Conv", "AveragePool", "MaxPool")

    def match(self, graph: gs.Graph, node: gs.Node) -> _PaddedWindow | Refusal | None:
        """Match every window operator that may take the padding."""
        pad = made_by(node.inputs[0], "Pad")
        if pad is None:
            return None
        padding = _spatial_padding(pad, node)
        if isinstance(padding, Refusal):
            return padding
        reason = _why_not(pad, node, padding)
        return refusal(node, reason) or _PaddedWindow(node, pad, padding)

    def rewrite(self, editor: GraphEditor, match: _PaddedWindow) -> None:
        """Add the padding to that of the window."""
        window, padding = match.window, match.padding
        own = window_numbers(window, "pads", len(padding) // 2)
        window.attrs["pads"] = [a + b for a, b in zip(own, padding, strict=True)]
        window.attrs.pop("auto_pad", None)
        if window.op == "AveragePool":
            window.attrs["count_include_pad"] = 1
        window.inputs = [match.pad.inputs[0], *list(window.inputs)[1:]]


def _spatial_padding(pad: gs.Node, window: gs.Node) -> list[int] | Refusal:
    """Return the padding in ONNX order (all begins, then all ends), or why it is not spatial."""
    added = added_around(pad)
    if isinstance(added, str):
        return Refusal(window.name, added)
    begins, ends = added
    if any(begins[:2]) or any(ends[:2]):
        return Refusal(window.name, f"'{pad.name}' pads the batch or the channels")
    if min([*begins, *ends]) < 0:
        return Refusal(window.name, f"'{pad.name}' crops")
    return begins[2:] + ends[2:]


def _why_not(pad: gs.Node, window: gs.Node, padding: list[int]) -> str | None:
    mode = pad.attrs.get("mode", "constant")
    if mode != "constant":
        return f"'{pad.name}' pads in mode {mode}"
    if pads_by_itself(window):
        return f"'{window.name}' computes its own padding (auto_pad)"
    filled = given(pad, 2)
    value = 0.0 if filled is None else uniform(filled)
    if window.op == "MaxPool":
        return _why_not_max(pad, window, padding, value)
    if value != 0.0:
        return f"'{pad.name}' pads with {value}, '{window.name}' with 0"
    uncounted = any(window.attrs.get("pads", [])) and not window.attrs.get("count_include_pad", 0)
    if window.op == "AveragePool" and uncounted:
        return f"'{window.name}' does not count its own padding"
    if window.op == "AveragePool" and window.attrs.get("ceil_mode", 0):
        return f"'{window.name}' rounds its size up, and would count other places"
    return None


def _why_not_max(
    pad: gs.Node, window: gs.Node, padding: list[int], value: float | None
) -> str | None:
    if len(window.outputs) > 1:
        return f"'{window.name}' gives indices, which count the padding"
    if window.attrs.get("ceil_mode", 0):
        return f"'{window.name}' rounds its size up, and could see padding only"
    lowest = value is not None and math.isinf(value) and value < 0
    if value != 0.0 and not lowest:
        return f"'{pad.name}' pads with {value}, '{window.name}' with -inf"
    if not lowest and not _cannot_be_negative(pad.inputs[0]):
        return f"'{pad.inputs[0].name}' may be negative, so the zeros around it matter"
    if _may_see_padding_only(pad, window, padding):
        return f"a window of '{window.name}' could see padding only"
    return None


def _may_see_padding_only(pad: gs.Node, window: gs.Node, padding: list[int]) -> bool:
    """Whether a window may lie in front of the image or behind it, or have the image between two of its taps."""
    axes = len(padding) // 2
    own = window_numbers(window, "pads", axes)
    sizes = [int(size) for size in window.attrs["kernel_shape"]] * 2
    if any(a + b >= size for a, b, size in zip(own, padding, sizes, strict=True)):
        return True
    gaps, image = window_numbers(window, "dilations", axes), list(pad.inputs[0].shape)[2:]
    return any(
        gap > 1 and not (isinstance(size, int) and size >= gap)
        for gap, size in zip(gaps, image, strict=True)
    )


def _cannot_be_negative(tensor: gs.Tensor) -> bool:
    node = producer(tensor)
    if node is not None and is_op(node, "Clip"):
        low, high = uniform(given(node, 1)), given(node, 2)
        highest = math.inf if high is None else uniform(high)
        return low is not None and highest is not None and min(low, highest) >= 0.0
    return is_op(node, "Relu", "Sigmoid", "HardSigmoid", "Softmax", "Exp")
