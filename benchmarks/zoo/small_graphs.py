"""Small exported graphs on which tests see what passes make of a form: seconds each, without torch."""

from __future__ import annotations

from pathlib import Path

import onnx
from exporters import store

NAMES = (
    "timm_mobilenetv3_small_050.script.batch",
    "timm_test_vit3.dynamo.batch",
    "hf_swin.script.fixed",
)
"""Of the archives of exported graphs: squeezes, normed products, and windows."""


def small_graph(name: str, folder: Path) -> Path:
    """Write a graph, with weights of a seed, into a folder; return its file."""
    archive = next(each for each in (store.ARCHIVE, store.DRAWN) if name in store.names(each))
    model, _ = store.read(name, archive=archive)
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path
