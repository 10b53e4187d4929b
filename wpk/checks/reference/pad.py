"""Pad in float64 by index, so that pads may be negative; onnx's own cannot crop."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun


class Pad(OpRun):
    """Padding and cropping. Attributes and inputs as ONNX's Pad, from opset 11.

    What is cropped is gone before anything is reflected, repeated or wrapped, as in ONNX Runtime: ONNX's
    text does not say.
    """

    def _run(
        self, x: Any, pads: Any, value: Any = None, axes: Any = None, *, mode: str
    ) -> tuple[Any]:
        places = range(x.ndim) if axes is None else [int(a) for a in axes]
        widths = [(0, 0)] * x.ndim
        for axis, begin, end in zip(places, pads, pads[len(pads) // 2 :], strict=False):
            widths[axis] = int(begin), int(end)
        kept = tuple(
            slice(max(0, -b), n - max(0, -e)) for n, (b, e) in zip(x.shape, widths, strict=True)
        )
        added = [(max(0, b), max(0, e)) for b, e in widths]
        if mode == "constant":
            fill = 0 if value is None else np.asarray(value).reshape(())
            return (np.pad(x[kept], added, constant_values=fill),)
        return (np.pad(x[kept], added, mode=mode),)  # type: ignore[call-overload]
