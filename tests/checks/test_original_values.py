"""What the original's algebra lets a tensor differ by, against sums by hand."""

from collections.abc import Collection

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx.helper import make_node

from wpk.checks import stretches
from wpk.checks.bounded import KERNELS, Arithmetic, Ball
from wpk.checks.original_values import ALGEBRA, OriginalValues, constant_types
from wpk.dtypes import DType
from wpk.lowering.flat_graph import FlatGraph, FlatNode, flatten

U, U16 = 2.0**-24, 2.0**-11
FINE = 2.0**-47
"""64 roundings of float64."""
SUBNORMAL, SUBNORMAL16 = 2.0**-150, 2.0**-25


def flat(text: str) -> FlatGraph:
    graph = gs.import_onnx(
        onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["": 19]> {text}')
    )
    for index, node in enumerate(graph.nodes):
        node.name = f"{node.op}_{index}"
    return flatten(graph)


def allowed(
    text: str,
    x: object,
    name: str = "y",
    arithmetic: Arithmetic = ALGEBRA,
    cut: Collection[str] = (),
    dtype: type = np.float32,
) -> np.ndarray:
    values = OriginalValues(flat(text), {"x": np.array(x, dtype)}, None)
    for each in cut:
        values.value(each)
    return np.asarray(values.allowed(name, arithmetic, cut))


def bits(*numbers: float) -> str:
    """fp16 numbers as ONNX text has them."""
    return ", ".join(str(word) for word in np.array(numbers, np.float16).view(np.uint16))


X = np.array([0.5, -1.25, 3.0])


def test_a_function_may_be_computed_with_64_roundings() -> None:
    text = "m (float[3] x) => (float[3] y) { y = Exp(x) }"
    np.testing.assert_allclose(allowed(text, X), 8 * FINE * np.exp(X), rtol=1e-12)
    np.testing.assert_allclose(allowed(text, X, arithmetic=KERNELS), 8 * U * np.exp(X), rtol=1e-12)


def test_errors_of_a_region_meet_and_begin_where_it_is_cut() -> None:
    text = "m (float[3] x) => (float[3] y) { a = Exp(x)  b = Neg(a)  y = Add(a, b) }"
    a = 8 * FINE * np.exp(X)
    np.testing.assert_allclose(allowed(text, X), 2 * a, rtol=1e-2)
    np.testing.assert_allclose(allowed(text, X, cut=["b"]), a, rtol=1e-2)
    np.testing.assert_array_equal(allowed(text, X, cut=["a", "b"]), np.zeros(3))
    np.testing.assert_array_equal(allowed(text, X, "b", cut=["a"]), np.zeros(3))


def test_integers_are_exact() -> None:
    text = "m (float[3] x) => (int64[3] y) { f = Floor(x)  y = Cast<to = 7>(f) }"
    np.testing.assert_array_equal(allowed(text, X), np.zeros(3))


@pytest.mark.parametrize(
    ("operator", "change"),
    [
        ("LeakyRelu<alpha = 0.1>", lambda d: d(0.1) * np.array([0.0, 1.25, 0.0])),
        ("Elu<alpha = 0.3>", lambda d: d(0.3) * np.array([0.0, 1 - np.exp(-1.25), 0.0])),
        ("ThresholdedRelu<alpha = 0.7>", lambda d: np.zeros(3)),
    ],
)  # fmt: skip
def test_an_attribute_is_known_as_well_as_fp32_holds_it(operator: str, change: object) -> None:
    def step(alpha: float) -> float:
        return float(np.spacing(np.float32(alpha)))

    text = f"m (float[3] x) => (float[3] y) {{ y = {operator}(x) }}"
    expected = change(step)  # type: ignore[operator]
    np.testing.assert_allclose(allowed(text, X), expected, atol=1e-12, rtol=1e-6)


def test_attributes_of_what_has_inputs_left_out_are_known_so_too() -> None:
    text = """m (float[1,1,4] x) => (float[1,1,8] y) <float[3] s = {1, 1, 2}>
    { y = Resize<mode = "cubic", cubic_coeff_a = -0.7>(x, , s) }"""
    found = allowed(text, np.arange(4.0).reshape(1, 1, 4) ** 2)
    assert U / 8 < found.max() < 8 * U


def test_epsilon_keeps_its_value() -> None:
    text = """m (float[1,4] x) => (float[1,4] y) <float[4] s = {1, 1, 1, 1}>
    { y = LayerNormalization<epsilon = 0.3>(x, s) }"""
    assert allowed(text, [[*X.tolist(), 0.1]]).max() < 1e-11


def test_a_scalar_is_known_as_well_as_fp32_holds_it() -> None:
    for values, error in (
        ("float s = {0.1}", U),
        ("float[1] s = {0.1}", U),
        ("float[2] s = {0.1, 0.1}", 0),
    ):
        text = f"m (float[3,1] x) => (float[3,N] y) <{values}> {{ y = Mul(x, s) }}"
        found = allowed(text, X[:, None])
        size = np.abs(X[:, None]) * 0.1
        np.testing.assert_allclose(found, (error + FINE) * size * np.ones_like(found), rtol=1e-6)


def test_a_scalar_of_16_bits_is_known_as_if_it_were_fp32() -> None:
    text = "m (float16[3] x) => (float16[3] y) <float16 s = {BITS}> { y = Mul(x, s) }"
    found = allowed(text.replace("BITS", bits(0.1)), X, dtype=np.float16)
    np.testing.assert_allclose(found, (U + FINE) * np.abs(X) * 0.1, rtol=1e-3)


@pytest.mark.parametrize(
    ("kind", "roundoff", "subnormal"), [("float", U, SUBNORMAL), ("float16", U16, SUBNORMAL16)]
)
def test_what_constants_make_may_be_computed_in_the_models_types(
    kind: str, roundoff: float, subnormal: float
) -> None:
    a, b = ("1, 2, 3", "0.5, 3, 0.25") if kind == "float" else (bits(1, 2, 3), bits(0.5, 3, 0.25))
    text = f"""m ({kind}[3] x) => ({kind}[3] y) <{kind}[3] a = {{{a}}}, {kind}[3] b = {{{b}}}>
    {{ c = Mul(a, b)  y = Add(x, c) }}"""
    c = np.array([0.5, 6, 0.75])
    dtype = np.float16 if kind == "float16" else np.float32
    of_c = U * c + roundoff * c + subnormal
    np.testing.assert_allclose(allowed(text, X, "c", dtype=dtype), of_c, rtol=1e-6)
    np.testing.assert_allclose(
        allowed(text, X, dtype=dtype), of_c, rtol=1e-6
    )  # FINE is nothing beside it


def test_the_region_of_a_tensor_goes_back_to_its_cut_past_inputs_and_meetings() -> None:
    text = """m (float[3] x) => (float[3] y)
    { e = Exp(x)  a = Neg(e)  b = Abs(e)  c = Add(a, b)  y = Add(c, x) }"""
    values = OriginalValues(flat(text), {"x": X.astype(np.float32)}, None)

    def region(name: str, *cut: str) -> list[str]:
        return [node.operator for node in values.region(name, cut)]

    assert region("y") == ["Exp_0", "Neg_1", "Abs_2", "Add_3", "Add_4"]
    assert region("y", "e") == ["Neg_1", "Abs_2", "Add_3", "Add_4"]
    assert region("c", "a") == ["Exp_0", "Abs_2", "Add_3"]
    assert region("x") == []


def test_values_settled_stand_for_their_tensors() -> None:
    text = "m (float[3] x) => (float[3] y, float[3] z) { a = Neg(x)  y = Exp(a)  z = Neg(a) }"
    values = OriginalValues(flat(text), {"x": X.astype(np.float32)}, None)
    np.testing.assert_array_equal(values.value("z"), X)
    values.settle("a", np.ones(3, np.float32))
    np.testing.assert_allclose(values.value("y"), np.exp(np.ones(3)))
    np.testing.assert_array_equal(values.value("z"), X)  # it was asked for before


def test_types_of_what_depends_on_no_input() -> None:
    text = """m (float[N,3] x) => (float[N,3] y, float[N] z, float16[3] w, bfloat16[3] v)
    <float16[3] h = {1, 2, 3}, int64[1] i = {0}, float[3] f = {1, 2, 3}>
    {
        s = Shape(x)  c = Cast<to = 1>(s)  n = Size(x)  d = Cast<to = 16>(n)
        g = Gather(s, i)  o = ConstantOfShape<value = float16[1] {1}>(g)
        k = ConstantOfShape<value = int64[1] {1}>(g)
        w = Add(h, h)  e = Cast<to = 16>(h)  v = Neg(e)
        q = Gather(f, i)  y = Mul(x, q)  z = Cast<to = 1>(x)
    }"""
    types = constant_types(flat(text))
    floats = dict.fromkeys(["f", "q", "c"], DType.FP32)
    halves = dict.fromkeys(["h", "w", "o"], DType.FP16)
    brains = dict.fromkeys(["e", "v", "d"], DType.BF16)
    assert types == {**floats, **halves, **brains}


CHAIN = "c (float[4] x) => (float[4] y) { a = Exp(x) b = Neg(a) y = Relu(b) }"
SOME = np.array([-1.0, 0.0, 0.5, 2.0], np.float32)


def test_what_was_let_go_of_is_computed_again() -> None:
    values = OriginalValues(flat(CHAIN), {"x": SOME}, None)
    right = {name: values.value(name).copy() for name in ("a", "b", "y")}
    values.release(lambda name: name == "b")
    assert {"a", "y"}.isdisjoint(values._values)
    assert "b" in values._values
    values.release(lambda _: False)
    assert "b" not in values._values
    for name, value in right.items():
        assert np.array_equal(values.value(name), value)


def test_what_a_node_will_read_and_what_was_settled_stay() -> None:
    values = OriginalValues(flat(CHAIN), {"x": SOME}, None)
    values.value("a")
    values.release(lambda _: False)
    assert "a" in values._values
    values.settle("a", np.zeros_like(SOME))
    values.value("y")
    values.release(lambda _: False)
    assert not values.value("a").any()


GELU = """m (float[5,300] x) => (float[5,300] y)
<float two = {1.41421356}, float one = {1}, float half = {0.5}, float[300] s = {SHIFTS}>
{ v = Add(x, s)  a = Div(v, two)  b = Erf(a)  c = Add(b, one)  d = Mul(v, c)  y = Mul(d, half) }"""


def test_elements_are_bounded_block_by_block_to_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = GELU.replace("SHIFTS", ", ".join(str(i / 100) for i in range(300)))
    x = np.random.default_rng(0).standard_normal((5, 300))
    whole = allowed(text, x)
    seen: list[int] = []
    found = stretches.Stretch.evaluated

    def noted(self: stretches.Stretch, *given: object) -> object:
        seen.append(len(self.blocks))
        return found(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(stretches, "BLOCK", 100)
    monkeypatch.setattr(stretches.Stretch, "evaluated", noted)
    np.testing.assert_array_equal(allowed(text, x), whole)
    assert seen == [15]
    assert np.unique(whole).size > 1000


def test_blocks_that_are_bounded_wrongly_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    text = GELU.replace("SHIFTS", ", ".join(["0"] * 300))
    x = np.random.default_rng(0).standard_normal((5, 300))
    whole = allowed(text, x)
    right = OriginalValues._of_part

    def wrong(self: OriginalValues, *given: object) -> object:
        return [Ball(ball.value) for ball in right(self, *given)]  # type: ignore[arg-type]

    monkeypatch.setattr(stretches, "BLOCK", 100)
    monkeypatch.setattr(OriginalValues, "_of_part", wrong)
    assert not np.array_equal(allowed(text, x), whole)


@pytest.mark.timeout(60)
def test_no_node_makes_what_is_missing() -> None:
    """An operand that is missing has the name of an output that is, and nothing to do with it."""
    protos = [
        make_node("TopK", ["x", "k"], ["", "places"]),
        make_node("Clip", ["x", "", "most"], ["y"]),
    ]
    nodes = tuple(FlatNode(each, each.op_type, tuple(each.output)) for each in protos)
    constants = {"k": np.array([1]), "most": np.array(0.75, np.float32)}
    graph = FlatGraph(nodes, constants, ("x",), ("y", "places"), 19)
    values = OriginalValues(graph, {"x": X}, None)
    np.testing.assert_array_equal(values.value("y"), [0.5, -1.25, 0.75])
    np.testing.assert_array_equal(values.value("places"), [2])
    assert graph.makers == {"places": 0, "y": 1}
