"""Quantisations become arithmetic: the numbers are ONNX Runtime's, ties and limits included."""

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import onnxruntime
import pytest
from onnx import numpy_helper

from wpk.graph_passes import infer_shapes
from wpk.graph_passes.clean.quantisation.quantisation_parts import QuantisationParts

TIES = np.array([-1e6, -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 63.25, 127.5, 1e6], np.float32)


def model_of(text: str, *tensors: onnx.TensorProto, **constants: np.ndarray) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in constants.items())
    model.graph.initializer.extend(tensors)
    onnx.checker.check_model(model)
    return model


def rewritten(model: onnx.ModelProto) -> gs.Graph:
    graph = gs.import_onnx(model)
    for number, node in enumerate(graph.nodes):
        node.name = f"n{number}"
    infer_shapes(graph)
    assert QuantisationParts()(graph).rewritten == len(model.graph.node)
    assert QuantisationParts()(graph).rewritten == 0
    return graph


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    (result,) = session.run(None, inputs)
    return result


def check(model: onnx.ModelProto, **inputs: np.ndarray) -> list[str]:
    graph = rewritten(model)
    after = gs.export_onnx(graph)
    after.ir_version = 10
    onnx.checker.check_model(after, full_check=True)
    before, now = run(model, **inputs), run(after, **inputs)
    assert before.dtype == now.dtype
    np.testing.assert_array_equal(now, before)
    return [node.op for node in graph.nodes]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_rounds_to_even_and_saturates(dtype: str) -> None:
    text = f"g (float[10] x) => ({dtype}[10] y) {{ y = QuantizeLinear (x, s, z) }}"
    zero = np.asarray(np.iinfo(dtype).max // 3, dtype)
    model = model_of(text, s=np.float32(0.5), z=zero)
    assert check(model, x=TIES / 2) == ["Div", "Round", "Add", "Clip", "Cast"]


def test_a_zero_point_of_zero_is_left_out() -> None:
    text = "g (float[10] x) => (int8[10] y) { y = QuantizeLinear (x, s, z) }"
    model = model_of(text, s=np.float32(0.3), z=np.int8(0))
    assert check(model, x=TIES) == ["Div", "Round", "Clip", "Cast"]


def test_without_a_zero_point_bytes_are_unsigned() -> None:
    text = "g (float[10] x) => (uint8[10] y) { y = QuantizeLinear (x, s) }"
    assert check(model_of(text, s=np.float32(0.3)), x=TIES) == ["Div", "Round", "Clip", "Cast"]


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_scales_and_zero_points_of_an_axis(axis: int) -> None:
    rng, shape = np.random.default_rng(0), (3, 4, 5)
    count = shape[axis]
    model = model_of(
        f"""g (float[3, 4, 5] x) => (float[3, 4, 5] y) {{
            q = QuantizeLinear <axis = {axis}> (x, s, z)
            y = DequantizeLinear <axis = {axis}> (q, s, z) }}""",
        s=rng.uniform(0.01, 0.1, count).astype(np.float32),
        z=rng.integers(-5, 6, count).astype(np.int8),
    )
    check(model, x=rng.standard_normal(shape).astype(np.float32))


def test_computed_parameters() -> None:
    text = """g (uint8[3, 4] q, float[4] s, uint8[4] z) => (float[3, 4] y)
        { y = DequantizeLinear <axis = 1> (q, s, z) }"""
    rng = np.random.default_rng(0)
    inputs = {
        "q": rng.integers(0, 256, (3, 4)).astype(np.uint8),
        "s": rng.uniform(0.1, 1, 4).astype(np.float32),
        "z": rng.integers(0, 256, 4).astype(np.uint8),
    }
    ops = check(model_of(text), **inputs)
    assert ops.count("Mul") == 1
    assert ops.count("Sub") == 1


def test_blocks_of_an_axis() -> None:
    text = """g (int8[6, 2] q) => (float[6, 2] y)
        { y = DequantizeLinear <axis = 0, block_size = 3> (q, s) }"""
    rng = np.random.default_rng(0)
    model = model_of(text, s=rng.uniform(0.1, 1, (2, 2)).astype(np.float32))
    check(model, q=rng.integers(-128, 128, (6, 2)).astype(np.int8))


@pytest.mark.parametrize("kind", ["INT4", "UINT4", "FLOAT8E4M3FN", "FLOAT8E5M2"])
def test_constants_of_types_that_kernels_lack_become_numbers(kind: str) -> None:
    code = onnx.TensorProto.DataType.Value(kind)
    numbers = np.array([[0, 1, 3], [5, 6, 7]], np.float32)
    weights = onnx.helper.make_tensor("q", code, numbers.shape, numbers.reshape(-1))
    model = model_of(
        """g (float[2, 3] x) => (float[2, 3] y) { w = DequantizeLinear <axis = 0> (q, s)
        y = Add (x, w) }""",
        weights,
        s=np.array([0.5, 0.25], np.float32),
    )
    graph = gs.import_onnx(model)
    for number, node in enumerate(graph.nodes):
        node.name = f"n{number}"
    infer_shapes(graph)
    assert QuantisationParts()(graph).rewritten == 1
    constant = graph.nodes[0].inputs[1]
    assert constant.dtype == np.float32
    np.testing.assert_array_equal(constant.values, numbers * [[0.5], [0.25]])


EIGHT_BITS = {"float8e4m3fn": 448.0, "float8e5m2": 57344.0}


def zeros_of(kind: str, *shape: int) -> onnx.TensorProto:
    code = onnx.TensorProto.DataType.Value(kind.upper())
    return onnx.helper.make_tensor("z", code, shape, bytes(int(np.prod(shape))), raw=True)


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_eight_bit_floating_point_rounds_and_saturates(kind: str, saturate: int) -> None:
    text = f"""g (float[4, 10] x) => (float[4, 10] y) {{
        q = QuantizeLinear <axis = 0, saturate = {saturate}> (x, s, z)
        y = DequantizeLinear <axis = 0> (q, s) }}"""
    scales = np.array([0.5, 0.3, 1e-3, 7.0], np.float32)
    model = model_of(text, zeros_of(kind, 4), s=scales)
    special = np.array([0.0, np.nan, np.inf, -np.inf, EIGHT_BITS[kind], 1e-3, 0.7], np.float32)
    x = np.stack([TIES, -TIES, TIES / 64, np.resize(special, 10)])
    assert check(model, x=x) == ["Div", "Cast", "Cast", "Mul"]


@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_the_type_may_be_said_by_an_attribute_alone(kind: str) -> None:
    code = onnx.TensorProto.DataType.Value(kind.upper())
    text = f"""g (float[10] x) => (float[10] y) {{
        q = QuantizeLinear <output_dtype = {code}> (x, s)
        y = DequantizeLinear (q, s) }}"""
    check(model_of(text, s=np.float32(0.3)), x=TIES)


@pytest.mark.parametrize("kind", EIGHT_BITS)
def test_a_zero_point_of_eight_bits_that_is_not_zero_is_refused(kind: str) -> None:
    code = onnx.TensorProto.DataType.Value(kind.upper())
    text = f"g (float[10] x) => ({kind}[10] y) {{ y = QuantizeLinear (x, s, z) }}"
    model = model_of(text, onnx.helper.make_tensor("z", code, [], [1.0]), s=np.float32(0.3))
    graph = gs.import_onnx(model)
    graph.nodes[0].name = "n"
    infer_shapes(graph)
    (refusal,) = QuantisationParts()(graph).refusals
    assert refusal.reason == "'z' is not known to be 0, as zero points of 8-bit floating point are"


@pytest.mark.parametrize("kind", ["float8e4m3fnuz", "float8e5m2fnuz"])
def test_other_forms_of_eight_bits_are_refused(kind: str) -> None:
    text = f"g (float[10] x) => ({kind}[10] y) {{ y = QuantizeLinear (x, s, z) }}"
    graph = gs.import_onnx(model_of(text, zeros_of(kind), s=np.float32(0.3)))
    graph.nodes[0].name = "n"
    infer_shapes(graph)
    (refusal,) = QuantisationParts()(graph).refusals
    assert refusal.reason == "'y' has a type that kernels do not quantise to"
