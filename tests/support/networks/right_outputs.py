"""What a model gives where ONNX Runtime executes it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnxruntime


def right(model: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """All outputs by name."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(inputs)), strict=True))
