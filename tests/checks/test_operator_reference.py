"""The reference of a graph: what its products may round."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest

from wpk.checks import body, by_sample
from wpk.checks.operator_reference import GraphReference
from wpk.dtypes import ASKED, Precision


def test_samples_are_computed_by_themselves_where_only_weights_are_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cuts = []

    def in_parts(
        cut: by_sample.Cut, size: int, evaluate: Callable[[slice], list[np.ndarray]]
    ) -> tuple[np.ndarray, ...]:
        cuts.append(cut)
        return by_sample.in_parts(cut, size, evaluate)

    monkeypatch.setattr(body, "in_parts", in_parts)
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[4, 2, 60, 60] x) => (float[4, 3, 60, 60] y)
        <float[3, 2, 1, 1] w = {1, 2, 3, 4, 5, 6}> { y = Conv(x, w) }"""
    )
    x = np.random.default_rng(0).standard_normal((4, 2, 60, 60)).astype(np.float32)
    (found,) = GraphReference(gs.import_onnx(model), Precision.FP32).run({"x": x}, {})
    assert cuts == [by_sample.Cut(0, 4)]
    right = np.einsum("kc,nchw->nkhw", [[1, 2], [3, 4], [5, 6]], x.astype(np.float64))
    np.testing.assert_allclose(found.outputs["y"], right)


SIXTEEN_BITS = {np.float16: "float16", ml_dtypes.bfloat16: "bfloat16"}
EXACT, FP32, TF32 = 5.25, 9.0, 2.0**15 + 5.25
"""Tolerances of a product of ones in units of 2^-24: of exact products, and of rounded operands."""

OPERANDS = [
    (np.float32, np.float32, FP32, TF32),
    *((np.float32, each, EXACT, TF32) for each in SIXTEEN_BITS),
    *((each, np.float32, EXACT, TF32) for each in SIXTEEN_BITS),
    *((each, each, EXACT, EXACT) for each in SIXTEEN_BITS),
]


@pytest.mark.parametrize("precision", list(ASKED))
@pytest.mark.parametrize(("left", "right", "expected", "of_tf32"), OPERANDS)
def test_products_round_operands_that_memory_did_not_round(
    precision: Precision, left: type, right: type, expected: float, of_tf32: float
) -> None:
    function = """<opset_import: ["" : 17], domain: "wpk"> product (a, b) => (y)
    { l = Cast<to = 1>(a) r = Cast<to = 1>(b) y = MatMul(l, r) }"""
    names = {np.float32: "float", **SIXTEEN_BITS}
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
        g ({names[left]}[1, 1] a, {names[right]}[1, 1] b) => (float[1, 1] y)
        {{ y = wpk.product(a, b) }}"""
    )
    model.functions.append(onnx.parser.parse_function(function))
    inputs = {"a": np.ones((1, 1), left), "b": np.ones((1, 1), right)}
    (product,) = GraphReference(gs.import_onnx(model), precision).run(inputs, {})
    found = float(product.tolerances["y"].whole[0, 0]) * 2**24
    assert found == pytest.approx(of_tf32 if precision is Precision.TF32 else expected, rel=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, *SIXTEEN_BITS])
def test_every_output_lies_in_memory_in_its_type(dtype: type) -> None:
    name = {np.float32: "float", **SIXTEEN_BITS}[dtype]
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g ({name}[2, 3] x) => ({name}[2, 3] y, int64[2] s, {name}[2, 2] t, int64[2, 2] i)
        <int64[1] two = {{2}}>
        {{ y = Exp(x) s = Shape(x) t, i = TopK(y, two) }}"""
    )
    x = np.linspace(-1, 1, 6).reshape(2, 3).astype(dtype)
    memory: dict[str, np.ndarray] = {}
    found = list(GraphReference(gs.import_onnx(model), Precision.FP32).run({"x": x}, memory))
    assert {key: each.dtype for key, each in memory.items()} == {
        **dict.fromkeys(("x", "y", "t"), np.dtype(dtype)),
        **dict.fromkeys(("s", "i", "two"), np.dtype(np.int64)),
    }
    exact = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(found[0].outputs["y"], exact, rtol=1e-14)
    np.testing.assert_array_equal(memory["y"], exact.astype(dtype))
    assert memory["s"].tolist() == [2, 3]
    assert memory["i"].tolist() == [[2, 1], [2, 1]]
    assert [list(each.tolerances) for each in found] == [["y"], [], ["t"]]


@pytest.mark.parametrize("batch", [1, 3])
def test_what_nobody_judges_lies_in_memory_to_the_bit_and_no_error_is_computed(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = """<opset_import: ["" : 17], domain: "wpk"> rows (a, w) => (y)
    { p = MatMul(a, w) h = Cast<to = 10>(p) s = Softmax<axis = -1>(h) y = Add(s, a) }"""
    model = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
        g (float16[{batch}, 5, 7] x) => (float16[{batch}, 5, 7] z, int64[{batch}, 5, 2] i)
        <int64[1] two = {{2}}>
        {{ y = wpk.rows(x, w) z = Exp(y) t, i = TopK(z, two) }}"""
    )
    model.functions.append(onnx.parser.parse_function(function))
    rng = np.random.default_rng(batch)
    weight = rng.standard_normal((7, 7)).astype(np.float16)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    inputs = {"x": rng.standard_normal((batch, 5, 7)).astype(np.float16)}
    reference = GraphReference(gs.import_onnx(model), Precision.FP16)
    judged: dict[str, np.ndarray] = {}
    names = [each.node for each in reference.run(inputs, judged)]
    calls: list[str] = []
    bound = body.bound_error

    def counted(call: body.Call) -> object:
        calls.append(call.node.op_type)
        return bound(call)

    monkeypatch.setattr(body, "bound_error", counted)
    memory: dict[str, np.ndarray] = {}
    nodes = reference.begin(inputs, memory)
    assert [node.name for node in nodes] == names
    for node in nodes:
        reference.evaluate(node, memory)
    assert calls == []
    assert memory.keys() == judged.keys()
    for name, array in memory.items():
        assert array.dtype == judged[name].dtype
        np.testing.assert_array_equal(array, judged[name])
    judged_now = reference.of(nodes[0], memory)
    assert calls == []  # a floor is no bound
    assert judged_now.tolerances["y"].whole.shape == (batch, 5, 7)
    assert {*calls} == {"MatMul", "Cast", "Softmax", "Add"}


def test_what_has_no_type_lies_in_memory_as_fp32() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17]>
        g (float[3] x) => (float[3] y) { h = Exp(x) y = Neg(h) }"""
    )
    memory: dict[str, np.ndarray] = {}
    x = np.linspace(0, 1, 3).astype(np.float32)
    first, _ = GraphReference(gs.import_onnx(model), Precision.FP16).run({"x": x}, memory)
    assert memory["h"].dtype == np.float32
    assert list(first.tolerances) == ["h"]


def test_a_boolean_has_a_tolerance_where_it_is_undecided() -> None:
    function = """<opset_import: ["" : 17], domain: "wpk"> less (a, b) => (y)
    { e = Exp(a) y = Less(e, b) }"""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 17, "wpk" : 1]>
        g (float[3] a, float[3] b) => (bool[3] y, bool[3] z)
        { y = wpk.less(a, b) z = Less(a, b) }"""
    )
    model.functions.append(onnx.parser.parse_function(function))
    one = np.ones(3, np.float32)
    inputs = {"a": one, "b": np.array([1.0, math.e, 3.0], np.float32)}
    tied, exact = GraphReference(gs.import_onnx(model), Precision.FP32).run(inputs, {})
    assert tied.tolerances["y"].whole.tolist() == [0.0, 1.0, 0.0]
    assert tied.outputs["y"].tolist()[::2] == [False, True]
    assert exact.tolerances == {}
    assert exact.outputs["z"].tolist() == [False, True, True]
