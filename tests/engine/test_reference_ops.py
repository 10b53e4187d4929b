"""Our reference operators agree with ONNX Runtime, and with onnx's own where that is right."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.engine.reference_ops import REFERENCE_OPS


def _model(group: int, attributes: str) -> onnx.ModelProto:
    per_group = 4 // group
    return onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[2,6,5,7] x, float[6,{per_group},3,2] w, float[4] b) => (float[2,4,p,q] y)
        {{ y = ConvTranspose<group={group}, {attributes}>(x, w, b) }}"""
    )


@pytest.mark.parametrize("group", [1, 2])
@pytest.mark.parametrize(
    "attributes",
    [
        "strides=[2,3], pads=[1,0,0,1], output_padding=[1,2]",
        "dilations=[2,1], strides=[1,2]",
        "strides=[2,2], output_shape=[9,13]",
        'strides=[2,2], auto_pad="SAME_LOWER"',
    ],
)
def test_transposed_convolution(group: int, attributes: str) -> None:
    model = _model(group, attributes)
    rng = np.random.default_rng(0)
    inputs = {
        info.name: rng.standard_normal([d.dim_value for d in info.type.tensor_type.shape.dim])
        for info in model.graph.input
    }
    narrow = {name: array.astype(np.float32) for name, array in inputs.items()}
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    expected = session.run(None, narrow)[0]
    ours = ReferenceEvaluator(model, new_ops=list(REFERENCE_OPS)).run(None, narrow)[0]
    assert ours.shape == expected.shape
    # sums of at most 6 x 3 x 2 products of numbers near 1, in fp32
    np.testing.assert_allclose(ours, expected, rtol=0, atol=36 * 8 * 2**-24)
