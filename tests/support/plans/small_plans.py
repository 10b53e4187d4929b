"""A small network with a free batch, and its plans: fixtures that several folders of tests share."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from support.plans.quick_search import compile_one
from wpk.pipeline import optimize

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 3, 9, 7] x) => (float[batch, 5] y)
{
  c = Conv<pads = [1, 1, 1, 1]>(x, w, b)
  r = Relu(c)
  p = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(r)
  a = GlobalAveragePool(p)
  f = Flatten(a)
  l = MatMul(f, m)
  y = Softmax<axis = 1>(l)
}
"""
WEIGHTS = {"w": (6, 3, 3, 3), "b": (6,), "m": (6, 5)}


def save_model(path: Path, seed: int) -> Path:
    """A small network with seeded weights and a free batch."""
    rng = np.random.default_rng(seed)
    model = onnx.parser.parse_model(MODEL)
    for name, shape in WEIGHTS.items():
        values = rng.standard_normal(shape).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, name))
    onnx.save(model, path)
    return path


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The network with the weights of seed 0."""
    return save_model(tmp_path_factory.mktemp("model") / "small.onnx", 0)


@pytest.fixture(scope="session")
def other_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same network with the weights of seed 1."""
    return save_model(tmp_path_factory.mktemp("model") / "other.onnx", 1)


@pytest.fixture(
    scope="session", params=["fp16", pytest.param("fp32", marks=pytest.mark.exhaustive)]
)
def small_plan(
    request: pytest.FixtureRequest, small_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Its plan, unchecked: for tests of how plans are executed, whatever they compute."""
    return _planned(small_model, tmp_path_factory.mktemp("plan"), request.param)


@pytest.fixture(name="small_plan", scope="session", params=["fp32", "fp16"])
def small_plan_of_each_precision(
    request: pytest.FixtureRequest, small_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The same for tests of numbers, and of what plans hold."""
    return _planned(small_model, tmp_path_factory.mktemp("plan"), request.param)


def _planned(model: Path, folder: Path, precision: str) -> Path:
    path = folder / "small.plan"
    with pytest.MonkeyPatch.context() as patch:
        compile_one(patch)
        optimize(model, path, target="h200", precision=precision, check="off")
    return path
