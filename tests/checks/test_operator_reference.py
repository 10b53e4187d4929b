"""The reference of a graph: what its products may round."""

from collections.abc import Callable

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.checks import body, by_sample
from wpk.checks.operator_reference import GraphReference
from wpk.dtypes import Precision


def test_samples_are_computed_by_themselves_where_only_weights_are_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = []

    def in_parts(count: int, evaluate: Callable[[slice], list[np.ndarray]]) -> list[np.ndarray]:
        counts.append(count)
        return by_sample.in_parts(count, evaluate)

    monkeypatch.setattr(body, "in_parts", in_parts)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[4, 2, 60, 60] x) => (float[4, 3, 60, 60] y)
        <float[3, 2, 1, 1] w = {1, 2, 3, 4, 5, 6}> { y = Conv(x, w) }"""
    )
    x = np.random.default_rng(0).standard_normal((4, 2, 60, 60)).astype(np.float32)
    (found,) = GraphReference(gs.import_onnx(model), Precision.FP32).run({"x": x}, {})
    assert counts == [4]
    right = np.einsum("kc,nchw->nkhw", [[1, 2], [3, 4], [5, 6]], x.astype(np.float64))
    np.testing.assert_allclose(found.outputs["y"], right)


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
