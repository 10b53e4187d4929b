"""Shapes computed at run time from a free batch need no kernels."""

from pathlib import Path

import pytest
from support.networks import handwritten

from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.lowering.model import lower_model
from wpk.problems import Elementwise


def test_expand_to_a_free_batch_is_a_view(tmp_path: Path) -> None:
    path = handwritten.write("vision_transformer", tmp_path)
    program = lower_model(path, {}, Precision.FP32).program
    copies = [o for o in program.operators if isinstance(o.problem, Elementwise) and not o.call]
    assert [copy.problem.leading.free for copy in copies] == ["N"]
    assert copies[0].problem.inputs[0].strides[0] == 0


def test_a_shape_that_is_an_output_is_refused(tmp_path: Path) -> None:
    import onnx

    text = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[N,4] x) => (float[N,4] y, int64[2] s) { y = Relu(x) s = Shape(x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError) as refused:
        lower_model(tmp_path / "m.onnx", {}, Precision.FP32)
    assert "Shape" in refused.value.what
