"""Small transformers as torch 2.13 exported them with free dimensions, both exporters.

`free_exports.zip` has the form of `benchmarks/subjects/exported.zip`. Two layers of four heads of 8,
sequences of at most 40 tokens; names say the model, the exporter and what is free.
"""

from pathlib import Path

import onnx
from subjects import exported

ARCHIVE = Path(__file__).with_name("free_exports.zip")

NAMES = tuple(exported.model_names(ARCHIVE))


def write(name: str, folder: Path) -> Path:
    """Write a model with seeded weights to a file in ``folder``."""
    path = folder / f"{name}.onnx"
    onnx.save(exported.refill(name, archive=ARCHIVE), path)
    return path
