"""Products of bytes become products between quantisations; sums of integers stay exact, or stay."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from support.networks.quantised_models import INTEGERS, QLINEAR, quantised_model

from wpk.graph_passes import infer_shapes, open_session
from wpk.graph_passes.clean.quantisation.quantised_products import QuantisedProducts


def rewritten(model: onnx.ModelProto, count: int) -> gs.Graph:
    graph = gs.import_onnx(model)
    for number, node in enumerate(graph.nodes):
        node.name = node.name or f"n{number}"
    infer_shapes(graph)
    assert QuantisedProducts()(graph).rewritten == count
    assert QuantisedProducts()(graph).rewritten == 0
    return graph


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    return open_session(model.SerializeToString()).run(None, inputs)


def both(text: str, count: int, shape: tuple[int, ...]) -> list[tuple[np.ndarray, np.ndarray]]:
    model = quantised_model(text)
    after = gs.export_onnx(rewritten(model, count))
    after.ir_version = 8
    onnx.checker.check_model(after, full_check=True)
    x = np.random.default_rng(1).integers(0, 256, shape).astype(np.uint8)
    return list(zip(run(model, x=x), run(after, x=x), strict=True))


def test_scaled_products_differ_by_a_step_at_most_where_they_are_tied() -> None:
    results = both(QLINEAR, 2, (2, 8, 13, 11))
    (real, now), (bytes_before, bytes_now) = results
    steps = np.abs(bytes_before.astype(int) - bytes_now.astype(int))
    assert steps.max() <= 1
    assert np.mean(steps > 0) < 0.001
    assert np.mean(real != now) < 0.02  # what a tie moves, and ties of the second product


def test_sums_of_integers_are_exact() -> None:
    results = both(INTEGERS, 2, (3, 5, 24))
    for before, now in results:
        assert before.dtype == now.dtype
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("read_as_integers", [True, False])
def test_sums_that_fp32_cannot_hold_stay_where_they_are_read_as_integers(read_as_integers) -> None:
    behind = "y = Neg (c)" if read_as_integers else "y = Cast <to = 1> (c)"
    kind = "int32" if read_as_integers else "float"
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (uint8[1, 600] x) => ({kind}[1, 2] y) {{ c = MatMulInteger (x, w) {behind} }}"""
    )
    weights = np.full((600, 2), 127, np.int8)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    graph = gs.import_onnx(model)
    for number, node in enumerate(graph.nodes):
        node.name = f"n{number}"
    infer_shapes(graph)
    result = QuantisedProducts()(graph)
    if read_as_integers:
        (refusal,) = result.refusals
        largest = 600 * 127 * 255
        assert refusal.reason == (
            f"its sums of integers may reach {largest}, beyond 2^24, and are read as integers"
        )
    else:
        assert result.rewritten == 1
        assert [node.op for node in graph.nodes] == ["Cast", "Cast", "MatMul"]
