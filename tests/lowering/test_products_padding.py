"""Products write padding behind their columns only; views of one place keep their own shapes."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from wpk.dtypes import Precision
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.pipeline import optimize
from wpk.plan.plan import CheckMode
from wpk.problems import Convolution

pytestmark = pytest.mark.usefixtures("warm_without_cubins")

CHANNELS_ELSEWHERE = {
    "a transposed convolution's rows are the next one's channels": """
    m (float[N,3,5,5] x) => (float[N,2,1,8] y) {
        a = Conv<pads = [1, 1, 1, 1], strides = [2, 3]>(x, w)
        t = Transpose<perm = [0, 3, 1, 2]>(a)
        b = Conv(t, v)
        y = Transpose<perm = [0, 2, 3, 1]>(b)
    }""",
    "a product's rows are a convolution's channels": """
    m (float[N,3,2,5] x) => (float[N,8,2,2] y) {
        a = MatMul(x, m)
        t = Transpose<perm = [0, 3, 1, 2]>(a)
        y = Conv<pads = [0, 0, 0, 0]>(t, u)
    }""",
}
SHAPES = {"w": (3, 3, 3, 3), "v": (8, 2, 2, 3), "m": (5, 3), "u": (8, 3, 2, 1)}


def written(text: str, path: Path) -> Path:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]>{text}')
    rng = np.random.default_rng(0)
    for name in {name for node in model.graph.node for name in node.input} & SHAPES.keys():
        weight = rng.standard_normal(SHAPES[name]).astype(np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(weight, name))
    onnx.save(model, path)
    return path


def lowered(text: str, path: Path) -> LoweredModel:
    return lower_model(written(text, path), {}, Precision.FP16)


@pytest.mark.parametrize("text", CHANNELS_ELSEWHERE.values(), ids=CHANNELS_ELSEWHERE.keys())
def test_no_product_pads_another_axis_than_its_columns(text: str, tmp_path: Path) -> None:
    model = lowered(text, tmp_path / "m.onnx")
    problems = [operator.problem for operator in model.program.operators]
    assert any(isinstance(problem, Convolution) for problem in problems)
    assert all(problem.pads_its_columns for problem in problems)


def test_a_slice_of_a_concatenation_may_begin_where_a_part_does(tmp_path: Path) -> None:
    text = """m (float[1,4,8] x) => (float[1,2,8] y)
    <int64[1] begin = {-8}, int64[1] end = {-4}, int64[1] axis = {-2}, int64[1] step = {3}> {
        c = Concat<axis = -2>(x, x, x)
        y = Slice(c, begin, end, axis, step)
    }"""
    path = written(text, tmp_path / "m.onnx")
    bundle = optimize(path, tmp_path / "m.plan", target="h200", precision="fp16")
    assert bundle.plan.check_mode is CheckMode.ON
