"""What a body's nodes may round."""

import numpy as np
import onnx
import pytest

from wpk.checks.body import NodeBody
from wpk.dtypes import DType

OPSETS = {"": 24}


def relative(text: str, dtype: type = np.float16) -> float:
    """The tolerance of a body's product of numbers that are all 1, relative to it, without memory's."""
    function = onnx.parser.parse_function(
        f'<opset_import: ["" : 24], domain: "wpk"> f (x, w) => (y) {{ {text} }}'
    )
    body = NodeBody(onnx.helper.make_node("f", ["x", "w"], ["y"], domain="wpk"), function, OPSETS)
    ones = [np.ones((4, 4), dtype), np.ones((4, 4), dtype)]
    (result,) = body(ones, [1], 0.0 if dtype is np.float16 else 2.0**-24, [DType.FP32])
    return float(((result.tolerance - 2.0**-150) / np.abs(result.value))[0, 0] - 2.0**-24)


@pytest.mark.parametrize(
    "text",
    [
        "y = MatMul(x, w)",
        "t = Transpose(x) y = MatMul(t, w)",
        "r = Relu(x) t = Transpose(r) y = MatMul(t, w)",
        "p = Add(x, x) y = Gemm(x, w, p)",  # what is added need not be exact
    ],
)
def test_operands_of_16_bits_are_exact(text: str) -> None:
    assert relative(text) < 2.0**-19


def test_what_is_computed_of_them_is_rounded() -> None:
    assert relative("p = Add(x, x) y = MatMul(p, w)") == pytest.approx(4 * 2.0**-11, rel=0.01)
    soft = relative("s = MatMul(x, w) p = Softmax(s) y = MatMul(p, w)")
    assert soft == pytest.approx(4 * 2.0**-11, rel=0.01)


def test_a_cast_to_16_bits_is_the_only_rounding_of_what_follows() -> None:
    text = "p = Add(x, x) h = Cast <to = 10> (p) y = MatMul(h, w)"
    # What Add gives is not exact, so the kernel may round it to a neighbour of what the reference has.
    assert relative(text) == pytest.approx(2 * 2.0**-11, rel=0.01)


def test_fp32_is_rounded_nowhere() -> None:
    assert relative("p = Add(x, x) y = MatMul(p, w)", np.float32) < 2.0**-19
