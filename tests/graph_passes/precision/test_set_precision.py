"""Precision is written into the types; what 16 bits cannot hold stays in fp32."""

import math

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.dtypes import DType, Precision
from wpk.errors import GraphError
from wpk.graph_passes import called, run_passes
from wpk.graph_passes.fusion.fuse_operators import FuseOperators
from wpk.graph_passes.layout.channels_last import ChannelsLast
from wpk.graph_passes.precision.set_precision import BF16_OPSET, SetPrecision
from wpk.graph_passes.precision.types import is_fp32, variable_type

H = '<ir_version: 9, opset_import: ["" : 20]>'
LOW = [Precision.FP16, Precision.BF16]

NETWORK = f"""{H} g (float[N, 3, 6, 6] x, float[4, 3, 3, 3] w, float[4] b, float[4, 5] u)
    => (float[N, 5] y) {{
    c = Conv(x, w, b)  r = Relu(c)  p = GlobalAveragePool(r)  f = Flatten(p)
    y = MatMul(f, u) }}"""


def evaluate(graph: gs.Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Run with the reference evaluator, which has every type."""
    model = gs.export_onnx(graph)
    onnx.checker.check_model(model, full_check=True)
    return [np.asarray(y) for y in ReferenceEvaluator(model).run(None, feeds)]


def inputs(graph: gs.Graph, batch: int = 2) -> dict[str, np.ndarray]:
    """Draw standard normal inputs."""
    rng = np.random.default_rng(2)
    feeds = {}
    for tensor in graph.inputs:
        shape = [dim if isinstance(dim, int) else batch for dim in tensor.shape]
        feeds[tensor.name] = rng.standard_normal(shape).astype(tensor.dtype)
    return feeds


def agree(load, text, precision, constants="", terms=27, passes=()):
    """Write ``precision``, compare with fp32, and return the graph and the result.

    Two roundings of each operand and one of each partial sum, of random signs: the error of a sum
    of K terms grows as sqrt(K) u times its magnitude; 8 covers depth and the tail of the
    distribution. A weight mixed up would be off by the whole magnitude.
    """
    before, after = load(text, constants), load(text, constants)
    result = SetPrecision(precision)(after)
    assert SetPrecision(precision)(after).rewritten == 0
    for each in passes:
        run_passes(after, [each])
    feeds = inputs(before)
    u = precision.storage.unit_roundoff
    for old, new in zip(evaluate(before, feeds), evaluate(after, feeds), strict=True):
        assert old.dtype == new.dtype
        assert old.shape == new.shape
        bound = 8 * math.sqrt(terms) * u * float(np.abs(old).max())
        np.testing.assert_allclose(new, old, rtol=0, atol=bound)
    return after, result


def types(graph):
    """Return for each operator the types of what it gives."""
    return {node.name: node.outputs[0].dtype for node in graph.nodes}


@pytest.mark.parametrize("precision", [Precision.FP32, Precision.TF32])
def test_fp32_and_tf32_change_no_type(load, precision):
    graph = load(NETWORK, "w b u")
    assert SetPrecision(precision)(graph).rewritten == 0
    assert all(is_fp32(node.outputs[0]) for node in graph.nodes)


@pytest.mark.parametrize("precision", LOW)
def test_weights_and_values_are_converted_and_the_interface_is_not(load, precision):
    graph, result = agree(load, NETWORK, precision, "w b u")
    assert result.rewritten == 4
    assert result.refusals == []
    assert is_fp32(graph.inputs[0])
    assert is_fp32(graph.outputs[0])
    (conv,) = [node for node in graph.nodes if node.op == "Conv"]
    assert [tensor.values.dtype for tensor in conv.inputs[1:]] == [precision.storage.numpy] * 2
    assert types(graph)["Relu_1"] == variable_type(precision.storage)
    assert types(graph)["GlobalAveragePool_2"] == np.float32


@pytest.mark.parametrize("precision", LOW)
def test_fusion_takes_the_casts_into_the_operators(load, precision):
    passes = (FuseOperators(), ChannelsLast())
    graph, _ = agree(load, NETWORK, precision, "w b u", passes=passes)
    calls = [node for node in graph.nodes if node.domain == "wpk"]
    assert {node.op for node in graph.nodes if node.domain != "wpk"} <= {"Flatten"}
    bodies = [[node.op for node in called(graph, call).nodes] for call in calls]
    assert bodies[0] == ["Cast", "Conv", "Relu", "Transpose"]
    assert bodies[1] == ["Transpose", "Cast", "GlobalAveragePool", "Cast"]
    assert [op for op in bodies[2] if op != "Flatten"] == ["MatMul", "Cast"]


def test_bf16_raises_the_opset_to_the_first_with_its_convolutions(load):
    graph, _ = agree(load, NETWORK, Precision.BF16, "w b u")
    assert graph.opset == BF16_OPSET
    assert agree(load, NETWORK, Precision.FP16, "w b u")[0].opset == 20


@pytest.mark.parametrize("precision", LOW)
@pytest.mark.parametrize(
    "op",
    [
        "Softmax<axis = -1>(h)", "LogSoftmax<axis = -1>(h)", "LayerNormalization(h, s, t)",
        "InstanceNormalization(h, one, one)", "ReduceSum(h)", "ReduceMean(h)", "Exp(h)", "Erf(h)",
        "Softplus(h)", "Pow(h, two)", "GlobalAveragePool(h)", "ReduceLogSumExp(h)",
    ],
)  # fmt: skip
def test_sensitive_operators_stay_in_fp32(load, precision, op):
    shape = "[1, 1, 1]" if "Reduce" in op else "[2, 1, 1]" if "Pool" in op else "[2, 1, 8]"
    text = f"""{H} g (float[2, 1, 8] x, float[8, 8] w, float[8] s, float[8] t) => (float{shape} y)
        <float[1] one = {{1}}, float two = {{2}}> {{
        h = MatMul(x, w)  y = {op} }}"""
    graph, result = agree(load, text, precision, "w s t", terms=64)
    assert types(graph)["MatMul_0"] == variable_type(precision.storage)
    assert all(is_fp32(tensor) for tensor in graph.nodes[-1].inputs if tensor.shape)
    assert result.refusals == []


MASKED = f"""{H} g (float[2, 3, 4] q, float[2, 4, 3] k, float[2, 1, 3] m) => (float[2, 3, 3] y)
    <float one = {{1}}, float low = {{-3.4028235e38}}> {{
    s = MatMul(q, k)  i = Sub(one, m)  e = Mul(i, low)  a = Add(s, e)  y = Softmax(a) }}"""


@pytest.mark.parametrize("precision", LOW)
def test_the_lowest_number_of_a_mask_stays_what_it_is(load, precision):
    before, graph = load(MASKED), load(MASKED)
    result = SetPrecision(precision)(graph)
    (reason,) = [refusal.reason for refusal in result.refusals]
    assert reason.startswith("'low' holds 3.40282e+38")
    feeds = inputs(before) | {"m": np.array([[[1, 1, 0]], [[0, 0, 0]]], np.float32)}
    (old,), (new,) = evaluate(before, feeds), evaluate(graph, feeds)
    # The second row is masked out as a whole: -inf instead of the lowest number would give NaN.
    assert np.isfinite(new).all()
    np.testing.assert_allclose(new, old, atol=16 * precision.storage.unit_roundoff)
    run_passes(graph, [FuseOperators()])
    names = [node.op.rsplit("_", 1)[0] for node in graph.nodes]
    assert sorted(names) == ["add_softmax", "matmul", "sub_mul"]


@pytest.mark.parametrize(
    ("dtype", "value", "reason"),
    [
        (DType.FP16, 7e4, "holds 70000, fp16 ends at 65504"),
        (DType.FP16, 1e-12, "holds 1e-12, which fp16 rounds away"),
        (DType.BF16, 3.4028235e38, "holds 3.40282e+38, bf16 ends at 3.38953e+38"),
    ],
)
def test_says_which_constant_does_not_fit(load, dtype, value, reason):
    graph = load(
        f"""{H} g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y) <float c = {{{value}}}> {{
        h = MatMul(x, w)  a = Add(h, c)  y = Relu(a) }}""",
        "w",
    )
    result = SetPrecision(Precision(dtype.value))(graph)
    assert [refusal.reason for refusal in result.refusals] == [f"'c' {reason}"]
    assert types(graph)["Add_1"] == np.float32
    assert types(graph)["Relu_2"] == np.float32


def test_weights_out_of_range_keep_their_convolution_in_fp32(load):
    graph = load(NETWORK, "w b u")
    (conv,) = [node for node in graph.nodes if node.op == "Conv"]
    conv.inputs[1].values = conv.inputs[1].values * np.float32(1e6)
    result = SetPrecision(Precision.FP16)(graph)
    assert ["fp16 ends at 65504" in refusal.reason for refusal in result.refusals] == [True]
    assert types(graph)["Conv_0"] == np.float32
    assert types(graph)["MatMul_4"] == np.float16


def test_infinite_constants_fit(load):
    text = f"""{H} g (float[2, 3] x, float[3, 3] w) => (float[2, 3] y)
        <float[3] m = {{0, 1, 2}}> {{ h = MatMul(x, w)  y = Max(h, m) }}"""
    graph = load(text, "w")
    graph.nodes[1].inputs[1].values = np.array([0, -np.inf, 2], np.float32)
    assert SetPrecision(Precision.FP16)(graph).refusals == []


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("y = ReverseSequence(x, i)", "ReverseSequence has no bf16 form at opset 22"),
        ("y = LpNormalization(x)", None),
        ("s = Shape(x)  o = ConstantOfShape(s)  y = Add(x, o)", "has a type of its own"),
    ],
)
def test_says_which_operator_has_no_such_type(load, nodes, reason):
    graph = load(f"{H} g (float[2, 3, 3] x, int64[3] i) => (float[2, 3, 3] y) {{ {nodes} }}")
    result = SetPrecision(Precision.BF16)(graph)
    given = [refusal.reason for refusal in result.refusals]
    assert len(given) == (reason is not None)
    assert all(reason in text for text in given)
    onnx.checker.check_model(gs.export_onnx(graph), full_check=True)


def test_types_that_are_no_fp32_values_are_untouched(load):
    text = f"""{H} g (float[1, 2, 4, 4] x, int64[2] i) => (float[1, 2, 8, 8] y, int64[2] j)
        <float[4] scales = {{1, 1, 2, 2}}> {{
        h = Relu(x)  y = Resize<mode = "nearest">(h, , scales)  j = Add(i, i) }}"""
    graph = load(text)
    SetPrecision(Precision.FP16)(graph)
    (resize,) = [node for node in graph.nodes if node.op == "Resize"]
    assert resize.inputs[2].values.dtype == np.float32
    assert types(graph)["Resize_1"] == np.float16
    assert types(graph)["Add_2"] == np.int64
    onnx.checker.check_model(gs.export_onnx(graph), full_check=True)


@pytest.mark.parametrize("precision", LOW)
def test_a_cast_to_fp32_casts_to_the_new_type(load, precision):
    text = f"""{H} g (bool[2, 3] x, float[2, 3] z, float[3, 3] w) => (float[2, 3] y) {{
        f = Cast<to = 1>(x)  p = Add(f, z)  y = MatMul(p, w) }}"""
    graph = load(text, "w")
    SetPrecision(precision)(graph)
    assert types(graph)["Cast_0"] == variable_type(precision.storage)
    onnx.checker.check_model(gs.export_onnx(graph), full_check=True)


@pytest.mark.parametrize("precision", LOW)
def test_what_leads_to_large_integers_stays_in_fp32(load, precision):
    """Through element-wise nodes and views, whoever else reads them; a product before them does not."""
    text = f"""{H} g (float[2, 6] x, float[6, 600] w, float k) => (int64[1200] i, float[2, 600] y)
        <int64[1] flat = {{-1}}> {{
        p = MatMul(x, w)  t = Tanh(p)  m = Mul(t, k)  r = Reshape(m, flat)  f = Floor(r)
        i = Cast<to = 7>(f)  y = Relu(p) }}"""
    graph = load(text, "w k")
    SetPrecision(precision)(graph)
    narrow = variable_type(precision.storage)
    made = types(graph)
    assert made["MatMul_0"] == narrow
    assert [made[name] for name in ("Tanh_1", "Mul_2", "Reshape_3", "Floor_4")] == [np.float32] * 4
    onnx.checker.check_model(gs.export_onnx(graph), full_check=True)


def test_views_of_an_input_come_before_its_cast(load):
    text = f"""{H} g (float[1, 6, 6, 3] x, float[4, 3, 3, 3] w) => (float[1, 4, 4, 4] y) {{
        t = Transpose<perm = [0, 3, 1, 2]>(x)  y = Conv(t, w) }}"""
    graph, _ = agree(load, text, Precision.FP16, "w", passes=(FuseOperators(), ChannelsLast()))
    (call,) = graph.nodes
    assert [node.op for node in called(graph, call).nodes] == ["Transpose", "Cast", "Conv", "Cast"]


def test_a_decomposed_activation_is_computed_in_one_type(load):
    text = f"""{H} g (float[2, 3, 5, 5] x, float[4, 3, 1, 1] w) => (float[2, 4, 4, 4] y) {{
        c = Conv(x, w)  s = Softplus(c)  t = Tanh(s)  m = Mul(c, t)
        y = MaxPool<kernel_shape = [2, 2]>(m) }}"""
    graph, _ = agree(load, text, Precision.FP16, "w", passes=(FuseOperators(),))
    assert len(graph.nodes) == 2
    body = called(graph, graph.nodes[0]).nodes
    assert [node.op for node in body if node.op != "Cast"] == ["Conv", "Softplus", "Tanh", "Mul"]
    narrowing = [n for n in body if n.op == "Cast" and n.outputs[0].dtype == np.float16]
    assert len(narrowing) == 2  # the input and the result, nothing between


def test_a_norm_reads_16_bits_and_writes_16_bits(load):
    text = f"""{H} g (float[2, 5, 8] x, float[8, 8] w, float[8] s, float[8] t, float[8, 8] u)
        => (float[2, 5, 8] y) {{
        h = MatMul(x, w)  r = Add(h, x)  n = LayerNormalization(r, s, t)  y = MatMul(n, u) }}"""
    graph, _ = agree(load, text, Precision.FP16, "w s t u", terms=64, passes=(FuseOperators(),))
    assert len(graph.nodes) == 3
    assert [node.outputs[0].dtype for node in graph.nodes] == [np.float16, np.float16, np.float32]


def test_a_sum_behind_a_norm_is_rounded_once_for_its_product_and_the_next_sum(load):
    text = """<ir_version: 8, opset_import: ["" : 20]>
        g (float[2, 5, 8] x, float[2, 5, 8] z, float[8] g, float[8, 8] w) => (float[2, 5, 8] y) {
        n = LayerNormalization(x, g)  a = Add(n, z)  m = MatMul(a, w)  o = LayerNormalization(m, g)  b = Add(o, a)
        p = MatMul(b, w)  y = Relu(p) }"""
    graph = load(text, "g w")
    SetPrecision(Precision.FP16)(graph)
    first, second = (node for node in graph.nodes if node.op == "Add")
    product = next(node for node in graph.nodes if node.op == "MatMul")
    assert first.outputs[0].dtype == np.float32
    (cast,) = first.outputs[0].outputs
    assert cast.op == "Cast"
    assert product.inputs[0] is cast.outputs[0]
    assert any(t.inputs and t.inputs[0].inputs[0] is cast.outputs[0] for t in second.inputs)


def test_refuses_a_graph_that_was_fused_before(load):
    graph = load(NETWORK, "w b u")
    FuseOperators()(graph)
    with pytest.raises(GraphError, match="precision comes before fusion"):
        SetPrecision(Precision.FP16)(graph)


def test_bf16_weights_are_the_nearest_numbers(load):
    graph = load(NETWORK, "w b u")
    weights = graph.nodes[0].inputs[1].values
    SetPrecision(Precision.BF16)(graph)
    (conv,) = [node for node in graph.nodes if node.op == "Conv"]
    wanted = weights.astype(ml_dtypes.bfloat16)
    assert (conv.inputs[1].values == wanted).all()


def test_says_which_operator_it_does_not_know(load):
    graph = load(
        f"""{H} g (float[2, 3] x, bool c) => (float[2, 3] y) {{
        h = Relu(x)
        y = If<then_branch = t () => (float[2, 3] a) {{ a = Neg(h) }},
               else_branch = e () => (float[2, 3] b) {{ b = Abs(h) }}>(c) }}"""
    )
    for op, domain in (("Own", "mine"), ("Unheard", None)):
        made = gs.Variable(f"{op}_out", np.float32, [2, 3])
        graph.nodes.append(gs.Node(op, op, {}, [graph.inputs[0]], [made], domain))
        graph.outputs.append(made)
    result = SetPrecision(Precision.FP16)(graph)
    assert {(refusal.node, refusal.reason) for refusal in result.refusals} == {
        ("If_1", "If holds a subgraph"),
        ("Own", "Own is not a standard operator"),
        ("Unheard", "Unheard is not an operator of opset 20"),
    }


@pytest.mark.parametrize("precision", LOW)
def test_what_is_asked_for_its_shape_is_not_cast_for_that(load, precision):
    text = f"""{H} g (float[N, 4, 6] x, float[6, 6] w) => (float[N, 4, 6] y, int64[3] s) {{
        m = MatMul(x, w)  s = Shape(x)  y = Relu(m) }}"""
    graph, _ = agree(load, text, precision, "w", passes=(FuseOperators(),))
    (shape,) = [node for node in graph.nodes if node.op == "Shape"]
    assert shape.inputs[0] is graph.inputs[0]
    assert "Cast" not in [node.op for node in graph.nodes]
