"""Operators of ONNX's domain for machine learning that are written by ONNX's own."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from wpk.errors import UnsupportedError
from wpk.loading import load_graph, read_model

PICK = "ArrayFeatureExtractor"


def _written(folder: Path, text: str) -> Path:
    model = onnx.parser.parse_model(text)
    for node in model.graph.node:
        node.domain = "ai.onnx.ml" if node.op_type in (PICK, "Scaler") else ""
    path = folder / "m.onnx"
    onnx.save(model, path)
    return path


def _text(x: str, places: str, output: str, opset: int = 17) -> str:
    head = f'<ir_version: 8, opset_import: ["" : {opset}, "ai.onnx.ml" : 1]>'
    return (
        f"{head} g (float[{x}] x, int64[{places}] i) => (float[{output}] y) {{ y = {PICK}(x, i) }}"
    )


def _run(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> np.ndarray:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(None, inputs)
    return found


@pytest.mark.parametrize("opset", [13, 17, 21])
@pytest.mark.parametrize(("x", "places", "output"), [
    ((5,), (3,), (1, 3)),
    ((5,), (1,), (1, 1)),
    ((4, 5), (3,), (4, 3)),
    ((2, 4, 5), (1, 2), (2, 4, 2)),
])  # fmt: skip
def test_elements_are_picked_as_onnx_runtime_picks_them(tmp_path, x, places, output, opset):
    words = [", ".join(map(str, each)) for each in (x, places, output)]
    path = _written(tmp_path, _text(*words, opset))
    model = read_model(path)
    assert not model.functions
    assert {node.domain for node in model.graph.node} == {""}
    generator = np.random.default_rng(0)
    inputs = {
        "x": generator.standard_normal(x).astype(np.float32),
        "i": generator.integers(0, x[-1], places),
    }
    found, right = (_run(each, inputs) for each in (model, onnx.load(path)))
    assert found.shape == output
    np.testing.assert_array_equal(found, right)


def test_an_older_opset_is_refused(tmp_path):
    with pytest.raises(UnsupportedError, match=r"ArrayFeatureExtractor: domain 'ai\.onnx\.ml'"):
        load_graph(_written(tmp_path, _text("4, 5", "3", "4, 3", opset=12)))


def test_other_operators_of_the_domain_are_refused(tmp_path):
    text = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 1]> g (float[4, 5] x) => (float[4, 5] y)
        { y = Scaler<offset = [1.0], scale = [2.0]>(x) }"""
    with pytest.raises(UnsupportedError, match=r"Scaler: domain 'ai\.onnx\.ml' is not ONNX's"):
        load_graph(_written(tmp_path, text))


def test_a_function_that_the_model_brings_itself_is_the_one_that_counts(tmp_path):
    path = _written(tmp_path, _text("4, 5", "3", "4, 5"))
    model = onnx.load(path)
    own = f'<opset_import: ["" : 17], domain: "ai.onnx.ml"> {PICK} (x, i) => (y) {{ y = Neg(x) }}'
    model.functions.append(onnx.parser.parse_function(own))
    onnx.save(model, path)
    assert [node.op_type for node in read_model(path).graph.node] == ["Neg"]
