"""Products of tensors of 8-bit floating point are taken as those of integers are, where both have one type."""

from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx import TensorProto
from support.networks.dynamic_models import ENCODER
from support.networks.float8_models import CONVOLUTIONS, with_float8_products

from wpk.graph_passes import infer_shapes, open_session, run_session
from wpk.graph_passes.clean.quantisation.byte_products import ByteProducts
from wpk.graph_passes.core import PassResult
from wpk.graph_passes.core.byte_products import multiplies_bytes
from wpk.graph_passes.movement.chains.idle_quantisation import IdleQuantisation

E4M3, E5M2 = TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2


def imported(model: onnx.ModelProto) -> gs.Graph:
    graph = gs.import_onnx(model)
    for number, node in enumerate(graph.nodes):
        node.name = f"n{number}"
    infer_shapes(graph)
    return graph


def products(graph: gs.Graph) -> list[gs.Node]:
    return [node for node in graph.nodes if node.op in ("Conv", "MatMul")]


def run(graph: gs.Graph, x: Any) -> Any:
    model = gs.export_onnx(graph)
    model.ir_version = 10
    return run_session(open_session(model.SerializeToString()), {"x": x})[0]


def apply(graph: gs.Graph, each: Any) -> PassResult:
    result: PassResult = each(graph)
    graph.cleanup().toposort()
    return result


@pytest.mark.parametrize("network", [CONVOLUTIONS, ENCODER], ids=["convolutions", "encoder"])
@pytest.mark.parametrize("kind", [E4M3, E5M2])
def test_products_of_one_type_read_bytes_and_stay_right(network: str, kind: int) -> None:
    model = with_float8_products(network, kind, kind)
    before, after = imported(model), imported(model)
    assert apply(after, ByteProducts()).rewritten == len(products(before)) > 0
    assert all(map(multiplies_bytes, products(after)))
    shape = [each.dim_value for each in model.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(4).standard_normal(shape).astype(np.float32)
    right = run(before, x)
    np.testing.assert_allclose(run(after, x), right, rtol=0, atol=2e-5 * np.abs(right).max())


def test_two_types_stay_and_say_why() -> None:
    graph = imported(with_float8_products(CONVOLUTIONS, E5M2, E4M3))
    result = apply(graph, ByteProducts())
    assert result.rewritten == 0
    assert "one operand is fp8_e5m2, the other fp8_e4m3" in {r.reason for r in result.refusals}


def test_numbers_that_the_type_lacks_are_no_bytes() -> None:
    graph = imported(with_float8_products(CONVOLUTIONS))
    apply(graph, ByteProducts())
    (weights,) = (products(graph)[0].inputs[1],)
    assert multiplies_bytes(products(graph)[0])
    weights.values = weights.values + np.float32(2**-12)
    assert not multiplies_bytes(products(graph)[0])


@pytest.mark.parametrize(("opset", "count"), [(21, 1), (19, 0)])
def test_what_moves_is_not_quantised_again_with_the_same_numbers(opset: int, count: int) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : {opset}]>
    g (float[3, 4] x) => (float[4, 3] y) <float s = {{0.05}}> {{
        q = QuantizeLinear (x, s, z)  a = DequantizeLinear (q, s, z)  m = Transpose <perm = [1, 0]> (a)
        p = QuantizeLinear (m, s, z)  y = DequantizeLinear (p, s, z) }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.append(onnx.helper.make_tensor("z", E4M3, [], b"\0", raw=True))
    before, after = imported(model), imported(model)
    assert apply(after, IdleQuantisation()).rewritten == count
    x = np.random.default_rng(2).normal(0, 9, (3, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(after, x), run(before, x))
