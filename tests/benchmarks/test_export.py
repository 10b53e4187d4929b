"""Networks exported from their modules, where torch is installed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from export import NETWORKS

from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.shape_ranges import parse_shapes

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "export.py"


def test_shapes_are_written_as_optimize_reads_them() -> None:
    assert parse_shapes(NETWORKS["resnet50"].shapes(32)) == {"image": ((32, 3, 224, 224),)}
    assert parse_shapes(NETWORKS["distilbert"].shapes(1)) == {"tokens": ((1, 128),)}


@pytest.mark.slow
def test_an_exported_network_has_a_free_batch_and_is_supported(tmp_path: Path) -> None:
    for package in ("torch", "torchvision", "onnxscript"):
        pytest.importorskip(package)
    path = tmp_path / "mobilenet_v2.onnx"
    command = [sys.executable, str(SCRIPT), "mobilenet_v2", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["error"] <= figures["allowed"]
    (given,) = onnx.load(path).graph.input
    assert given.type.tensor_type.shape.dim[0].dim_param
    shapes = parse_shapes(NETWORKS["mobilenet_v2"].shapes(32))
    operators = lower_model(path, shapes, Precision.FP16).program.operators
    assert 0 < len(operators) <= 55
