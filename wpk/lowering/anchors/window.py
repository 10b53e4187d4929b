"""Windows over space, shared by convolution and pooling: attributes, padding, output extents."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_graphsurgeon as gs

from wpk.lowering.refusal import RefusedError
from wpk.lowering.views import View


@dataclass(frozen=True)
class Window:
    """A window over two spatial axes (one-dimensional windows have height 1)."""

    size: tuple[int, int]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    pad: tuple[int, int]
    pad_end: tuple[int, int]


def read_window(attributes: dict[str, Any], size: Sequence[int], space: Sequence[int]) -> Window:
    """Return the window of a node with input extents ``space``, ``auto_pad`` resolved.

    Raises:
        RefusedError: There are three or more spatial axes, or ``auto_pad`` would crop or space out.
    """
    rank = len(size)
    if rank not in (1, 2) or len(space) != rank:
        raise RefusedError(f"windows over {rank} spatial axes (1 and 2 are supported)")
    stride = [int(s) for s in attributes.get("strides", [1] * rank)]
    dilation = [int(d) for d in attributes.get("dilations", [1] * rank)]
    pads = [int(p) for p in attributes.get("pads", [0] * 2 * rank)]
    auto = attributes.get("auto_pad", "NOTSET")
    if auto in ("SAME_UPPER", "SAME_LOWER"):
        pads = _same(auto, size, stride, dilation, space)
    elif auto == "VALID":
        pads = [0] * 2 * rank
    return Window(
        plane(size), plane(stride), plane(dilation), plane(pads[:rank], 0), plane(pads[rank:], 0)
    )


def _same(
    auto: str,
    size: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    space: Sequence[int],
) -> list[int]:
    begin, end = [], []
    for f, s, d, n in zip(size, stride, dilation, space, strict=True):
        if d != 1:
            raise RefusedError(
                f"windows with dilation {d}, padded {auto}: ONNX and ONNX Runtime disagree where they lie"
            )
        needed = (-(-n // s) - 1) * s + f - n
        if needed < -1:
            raise RefusedError(
                f"windows of {f} with stride {s} over {n} elements, padded {auto}: ONNX and ONNX "
                "Runtime disagree where they begin"
            )
        total = max(0, needed)
        small, large = total // 2, total - total // 2
        begin.append(small if auto == "SAME_UPPER" else large)
        end.append(large if auto == "SAME_UPPER" else small)
    return begin + end


def finds_places(node: gs.Node) -> bool:
    """Whether a MaxPool gives where its largest elements are, beside what they are."""
    return len(node.outputs) > 1 and bool(node.outputs[1].name)


def plane(values: Sequence[int], missing: int = 1) -> tuple[int, int]:
    """Two values; a single one is that of the width."""
    first, second = (missing, values[0]) if len(values) == 1 else (values[0], values[1])
    return int(first), int(second)


def planar(view: View) -> View:
    """Return a tensor (n, c, w) as (n, c, 1, w); four axes stay as they are."""
    return view if len(view.shape) == 4 else view.reshaped((*view.shape[:2], 1, view.shape[2]))
