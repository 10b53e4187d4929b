"""Every row of the table of operators, against onnx's own definition of the operator."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.checks.bounded import Ball, Call, rounding
from wpk.checks.error_bounds import bound_error
from wpk.checks.float64_nodes import NodeEvaluator
from wpk.dtypes import DType
from wpk.expression import Expression, In, Operand, Scalar, evaluate, substitute
from wpk.graph_passes.clean.elimination.magnitude import magnitude_bounds
from wpk.lowering import view_ops
from wpk.lowering.anchors.registry import RULES as ANCHORS
from wpk.lowering.integers import wrapped
from wpk.operators import (
    CHOOSES,
    OPERATORS,
    ErrorRule,
    Integers,
    OperatorKind,
    Rewrite,
    Roundoff,
    anchors,
    arithmetic,
    express,
    functions,
    movement,
    names,
    of_kind,
)

OPSET = onnx.defs.onnx_opset_version()
SCHEMAS = {each.name: each for each in onnx.defs.get_all_schemas() if each.domain == ""}
ALL_FORMULAS = names(lambda row: row.kind is OperatorKind.ELEMENTWISE and row.formula is not None)
FORMULAS = [
    name
    for name in ALL_FORMULAS
    if {"tensor(float)", "tensor(bool)"} & set(SCHEMAS[name].inputs[0].types)
]
"""Those of floating point numbers or truth values."""

ROUNDED = [name for name in FORMULAS if OPERATORS[name].roundoff is not Roundoff.NONE]
EXACT = [name for name in FORMULAS if OPERATORS[name].roundoff is Roundoff.NONE]
BOUNDED = [
    name
    for name in FORMULAS
    if OPERATORS[name].magnitude or np.isfinite(OPERATORS[name].between or np.inf).all()
]
NARROW = [
    name
    for name in ALL_FORMULAS
    if OPERATORS[name].integers not in (Integers.REFUSED, Integers.TRUTH)
]

BETWEEN_ENDS = [name for name in FORMULAS if name not in ("Mod", "Tan")]
"""Operators whose results lie between those at the ends of an input; Mod falls behind each multiple,
Tan behind each pole."""

WRONG = 1e-4
"""Of each number, that an input may be off by."""

POSITIVE = ("Log", "Pow", "Sqrt")
"""Operators whose first operand is drawn from positive numbers."""

WITHIN_ONE = ("Asin", "Acos", "Atanh")
"""Operators that have results between -1 and 1 only."""


def nodes(name: str) -> Iterator[onnx.NodeProto]:
    """An operator with its attributes left out, and with each given."""
    schema = SCHEMAS[name]
    count = min(max(schema.min_input, 3), schema.max_input)
    inputs = [f"x{index}" for index in range(count)]
    choices: dict[str, tuple[Any, ...]] = {
        "fmod": (0, 1),
        "direction": ("LEFT", "RIGHT"),
        "approximate": (None, "none", "tanh"),
    }
    for key, attribute in schema.attributes.items():
        if attribute.type == onnx.defs.OpSchema.AttrType.FLOAT:
            choices[key] = (None, 0.37)
    chosen = [key for key in choices if key in schema.attributes]
    for values in product(*(choices[key] for key in chosen)):
        given = dict(zip(chosen, values, strict=True))
        yield onnx.helper.make_node(name, inputs, ["y"], **given)


def drawn(name: str, count: int, dtype: Any = np.float64) -> list[np.ndarray]:
    """Operands: numbers of any sign and of many sizes, truth values where the operator asks."""
    rng = np.random.default_rng(len(name))
    operands = []
    for index in range(count):
        allowed = SCHEMAS[name].inputs[min(index, len(SCHEMAS[name].inputs) - 1)].types
        numbers = rng.standard_normal((40, 25)) * 4.0 ** rng.integers(-4, 3, (40, 25))
        if "tensor(float)" not in allowed:
            operands.append(numbers > 0)
            continue
        if index == 0 and name in POSITIVE:
            numbers = np.abs(numbers) + 0.01
        if name in WITHIN_ONE:
            numbers /= 1.001 + np.abs(numbers)
        if name == "Acosh":
            numbers = np.abs(numbers) + 1.01
        if name == "Clip" and index:  # limits are scalars
            numbers = np.asarray((0.0, -0.5, 1.5)[index])
        operands.append(numbers.astype(dtype))
    if (
        OPERATORS[name].integers is Integers.COMPARE and count == 2
    ):  # ties, and what errors make one
        operands[1][::2], operands[1][1::4] = (
            operands[0][::2],
            operands[0][1::4] * (1 + 1.5 * WRONG),
        )
    return operands


def attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """As graph passes and lowering see them."""
    found = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    return {key: v.decode() if isinstance(v, bytes) else v for key, v in found.items()}


def formula(node: onnx.NodeProto, operands: Sequence[Expression] | None = None) -> Expression:
    """The expression of a node over its operands."""
    given = operands or [Operand(index) for index in range(len(node.input))]
    return express(node.op_type, given, attributes(node))


def in_onnx(node: onnx.NodeProto, operands: Sequence[np.ndarray]) -> np.ndarray:
    """What onnx's own evaluator gives."""
    undefined = onnx.TypeProto()
    ports = [onnx.helper.make_value_info(each, undefined) for each in (*node.input, "y")]
    graph = onnx.helper.make_graph([node], "g", ports[:-1], ports[-1:])
    feed = dict(zip(node.input, operands, strict=True))
    with np.errstate(all="ignore"):
        (y,) = ReferenceEvaluator(graph, opsets={"": OPSET}).run(None, feed)
    return np.asarray(y)


def in_fp32(expression: Expression, operands: Sequence[np.ndarray]) -> np.ndarray:
    """An expression's value where everything is rounded to fp32, constants included."""
    arrays = [each.astype(np.float32) for each in operands]

    def rounded(leaf: Expression) -> Expression:
        if not isinstance(leaf, Scalar):
            return leaf
        arrays.append(np.asarray(leaf.value, np.float32))
        return Operand(len(arrays) - 1)

    fixed = substitute(expression, rounded)
    with np.errstate(all="ignore"):
        y: np.ndarray = evaluate(fixed, None, arrays)
    assert y.dtype == np.float32
    return y


def bound(node: onnx.NodeProto, given: Sequence[Ball]) -> tuple[np.ndarray, np.ndarray]:
    """A node's result in float64, and the bound of a kernel's error."""
    evaluate_node = NodeEvaluator(node, {"": OPSET})
    (y,) = evaluate_node([each.value for each in given])
    error = bound_error(Call(evaluate_node, given, [y], 2.0**-24))
    return y.astype(np.float64), np.zeros(()) if error is None else error


def test_a_name_has_one_row() -> None:
    rows = [row.name for room in (anchors, arithmetic, functions, movement) for row in room.ROWS]
    assert len(rows) == len(set(rows)) == len(OPERATORS)


def test_every_name_is_an_operator_of_onnx() -> None:
    assert {each.name for each in onnx.defs.get_all_schemas_with_history()}.issuperset(OPERATORS)


def test_every_operator_that_lowering_carries_has_a_rule_for_its_error() -> None:
    carried = {*ANCHORS, *names(lambda row: row.formula), *view_ops.OPERATORS}
    carried |= {"Cast", "Concat", "Split", "Constant"}
    assert not [name for name in carried if OPERATORS[name].error is None]


def test_rows_of_element_wise_operators_are_complete() -> None:
    for name in of_kind(OperatorKind.ELEMENTWISE):
        row = OPERATORS[name]
        assert name == "Cast" or row.formula is not None
        assert row.error is not None
        chooses = row.error == CHOOSES or isinstance(row.error, ErrorRule)
        assert chooses == (row.roundoff is Roundoff.NONE)


def test_columns_of_element_wise_operators_are_empty_elsewhere() -> None:
    for row in OPERATORS.values():
        if row.kind is not OperatorKind.ELEMENTWISE:
            assert row.rewrites is Rewrite.NONE
            assert row.formula is None or row.name in ("Identity", "Dropout")


def test_what_rounds_nothing_neither_sums_nor_is_written_with_one() -> None:
    assert not Roundoff.NONE & (Roundoff.TERMS | Roundoff.ONE)
    assert all(
        OPERATORS[name].roundoff is Roundoff.NONE
        for name in of_kind(OperatorKind.SHAPE, OperatorKind.VIEW)
    )


def test_what_broadcasts_has_several_operands_and_an_activation_has_one() -> None:
    for row in OPERATORS.values():
        several = row.name != "Clip" and SCHEMAS[row.name].max_input > 1 if row.rewrites else False
        assert (Rewrite.WITHOUT_EXPAND not in row.rewrites) or several
        assert Rewrite.ACTIVATION not in row.rewrites or not several


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_what_onnx_defines(name: str) -> None:
    for node in nodes(name):
        operands = drawn(name, len(node.input))
        expected = in_onnx(node, operands).astype(np.float64)
        actual = evaluate(formula(node), None, operands)
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [*((name, 0.0) for name in FORMULAS), *((name, WRONG) for name in BETWEEN_ENDS)],
)
def test_a_formula_in_fp32_stays_within_the_bound_of_its_error(name: str, wrong: float) -> None:
    """Whether its inputs are exact, or off by what their own bounds allow."""
    rng = np.random.default_rng(0)
    for node in nodes(name):
        given, moved = list[Ball](), list[np.ndarray]()
        for x in drawn(name, len(node.input), np.float32):
            if x.dtype == np.bool_:
                either = (rng.random(x.shape) < 0.3) & bool(wrong)
                given.append(Ball(x, either.astype(np.float64)))
                moved.append(x ^ (either & (rng.random(x.shape) < 0.5)))
            else:
                wide = x.astype(np.float64)
                error = wrong * np.abs(wide)
                given.append(Ball(wide, error if wrong else None))
                moved.append(wide + error * rng.uniform(-0.9, 0.9, x.shape))
        exact, error = bound(node, given)
        allowed = error + rounding(exact, DType.FP32)
        distance = np.abs(in_fp32(formula(node), moved) - exact)
        assert (distance <= allowed)[np.abs(exact) < np.finfo(np.float32).max].all()


@pytest.mark.parametrize("name", ROUNDED)
def test_a_bound_is_not_generous(name: str) -> None:
    """Eight roundings of the numbers that meet in it: 4 ulp."""
    for node in nodes(name):
        operands = drawn(name, len(node.input))
        y, error = bound(node, [Ball(each) for each in operands])
        size = 1.0 + np.abs(y) + sum(np.abs(each) for each in operands)
        assert (error <= 8.001 * 2.0**-24 * size).all()


@pytest.mark.parametrize("name", EXACT)
def test_what_rounds_nothing_gives_numbers_of_its_operands_type(name: str) -> None:
    for node in nodes(name):
        operands = drawn(name, len(node.input), np.float16)
        y = evaluate(formula(node), None, [each.astype(np.float64) for each in operands])
        np.testing.assert_array_equal(y, y.astype(np.float16).astype(np.float64))


@pytest.mark.parametrize("name", names(lambda row: row.formula and row.between))
def test_results_lie_between_what_the_row_says(name: str) -> None:
    low, high = OPERATORS[name].between or (-np.inf, np.inf)
    for node, size in product(nodes(name), (1.0, 1e3, 1e30)):
        operands = [size * each for each in drawn(name, len(node.input))]
        with np.errstate(all="ignore"):
            y = evaluate(formula(node), None, operands)
        assert (y[~np.isnan(y)] >= low).all()
        assert (y[~np.isnan(y)] <= high).all()


@pytest.mark.parametrize("name", BOUNDED)
def test_no_result_is_larger_than_its_magnitude_s_bound(name: str) -> None:
    for node in nodes(name):
        operands = drawn(name, len(node.input), np.float32)
        if name in ("Add", "Sub", "Mul", "Div"):
            operands[1] = np.abs(operands[1]) + np.float32(0.5)
        if name in ("Max", "Min", "Where"):
            operands[-1] *= 4
        inputs = [gs.Constant(f"x{index}", each) for index, each in enumerate(operands)]
        y = gs.Variable("y", np.float32, operands[-1].shape)
        built = gs.Node(name, attrs=attributes(node), inputs=inputs, outputs=[y])
        (most,) = magnitude_bounds(gs.Graph([built], outputs=[y], opset=OPSET)).values()
        largest = np.abs(in_fp32(formula(node), operands)).max()
        assert largest <= most <= 3 * largest


def integers_of(name: str) -> list[DType]:
    """Those that onnx has the operator of."""
    types = SCHEMAS[name].inputs[-1].types
    return [each for each in DType if each.is_integer and f"tensor({each.name.lower()})" in types]


@pytest.mark.parametrize("name", [*filter(integers_of, NARROW)])
def test_integers_give_what_onnx_defines(name: str) -> None:
    """Of all sizes: what a type does not hold wraps around."""
    for dtype, node in product(integers_of(name), nodes(name)):
        operands = _integers(name, node, np.iinfo(dtype.numpy))
        expected = in_onnx(node, operands)
        wide = DType.UINT64 if dtype is DType.UINT64 else DType.INT64
        actual = evaluate(In(wide, wrapped(name, formula(node), dtype)), None, operands)
        np.testing.assert_array_equal(actual.astype(expected.dtype), expected, str(dtype))


def _integers(name: str, node: onnx.NodeProto, limits: Any) -> list[Any]:
    """Operands of a type that has these limits, of which the operator is defined."""
    rng = np.random.default_rng(0)
    operands: list[Any] = [
        rng.integers(limits.min, limits.max, 500, limits.dtype, endpoint=True) for _ in node.input
    ]
    if name in ("BitShift", "Pow"):
        low, high = (-3 if limits.min and name == "BitShift" else 0), 70
        operands[1] = rng.integers(low, high, 500).astype(limits.dtype)
    if name in ("Div", "Mod"):
        operands[1][operands[1] == 0] = 3
    if name == "Clip":
        operands[1:] = [np.asarray(value, limits.dtype) for value in (3, 90)]
    if name == "Where":
        operands[0] = operands[0] > 0
    return operands
