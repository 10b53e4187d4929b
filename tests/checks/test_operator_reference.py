"""The reference of a graph: what its products may round."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.checks.operator_reference import GraphReference
from wpk.dtypes import Precision


def test_products_of_tf32_round_an_operand_that_memory_did_not_round() -> None:
    function = """<opset_import: ["" : 17], domain: "wpk"> product (a, b) => (y)
    { l = Cast<to = 1>(a) y = MatMul(l, b) }"""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
        g (float16[1, 1] a, float[1, 1] b) => (float[1, 1] y) { y = wpk.product(a, b) }"""
    )
    model.functions.append(onnx.parser.parse_function(function))
    graph = gs.import_onnx(model)
    inputs = {"a": np.ones((1, 1), np.float16), "b": np.ones((1, 1), np.float32)}

    def tolerance(precision: Precision) -> float:
        (product,) = GraphReference(graph, precision).run(inputs, {})
        return float(product.tolerances["y"][0, 0])

    assert tolerance(Precision.TF32) == pytest.approx(4 * 2.0**-11, rel=0.01)
    assert tolerance(Precision.FP32) < 2.0**-20
