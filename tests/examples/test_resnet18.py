"""The example that the quickstart runs."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "resnet18.py"
PARAMETERS = 11_689_512  # He et al. 2016 as torchvision counts it, statistics not included
STATISTICS = 2 * 4_800


def _write(path: Path, *arguments: str) -> onnx.ModelProto:
    subprocess.run([sys.executable, EXAMPLE, path, *arguments], check=True)
    return onnx.load(path)


def test_writes_the_published_network(tmp_path: Path) -> None:
    model = _write(tmp_path / "m.onnx")
    counts = Counter(node.op_type for node in model.graph.node)
    assert counts["Conv"] == counts["BatchNormalization"] == 20
    assert counts["Add"] == 8
    assert sum(np.prod(w.dims) for w in model.graph.initializer) == PARAMETERS + STATISTICS


def test_the_output_keeps_its_size_and_depends_on_the_input(tmp_path: Path) -> None:
    _write(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    images = np.random.default_rng(7).normal(size=(2, 1, 3, 224, 224)).astype(np.float32)
    first, second = (session.run(None, {"input": image})[0] for image in images)
    assert 0.01 < first.std() < 100
    assert np.abs(first - second).max() > 0.01 * first.std()


def test_the_seed_decides_the_weights(tmp_path: Path) -> None:
    first = _write(tmp_path / "a.onnx", "--seed", "1")
    again = _write(tmp_path / "b.onnx", "--seed", "1")
    other = _write(tmp_path / "c.onnx", "--seed", "2")
    assert first == again
    assert first != other


@pytest.mark.parametrize("batch", ["2", "n"])
def test_the_batch_is_a_number_or_free(tmp_path: Path, batch: str) -> None:
    model = _write(tmp_path / "m.onnx", "--batch", batch)
    dimension = model.graph.input[0].type.tensor_type.shape.dim[0]
    assert (dimension.dim_param or str(dimension.dim_value)) == batch
