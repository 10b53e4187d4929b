"""Which tensors are fp64, which are computed in nothing narrower, and what such are held to."""

from collections.abc import Mapping

import numpy as np
import onnx
import pytest

from wpk.checks.body import NodeBody
from wpk.checks.doubles import double_names, exact_to_double
from wpk.checks.model_check import check_outputs
from wpk.dtypes import DType, Precision
from wpk.lowering.flat_graph import FlatGraph, FlatNode
from wpk.plan import Outcome

FP32, FP64 = np.dtype(np.float32), np.dtype(np.float64)


def nodes(text: str) -> list[onnx.NodeProto]:
    return list(onnx.parser.parse_graph(f"g (double[4] x) => (double[4] y) {{ {text} }}").node)


@pytest.mark.parametrize(
    ("text", "doubles"),
    [
        ("a = Exp (x)  b = Cast<to = 1> (a)  c = Relu (b)", "x a"),
        ("a = Less (x, x)  b = Where (a, f, f)", "x"),
        ("a = Cast<to = 11> (f)  b = Add (a, x)", "x a b"),
        ("a, b = TopK (x, k)  c = ArgMax (x)", "x a"),
        ("a = CastLike (f, x)  b = Gather (x, i)  c = Gather (f, i)", "x a b"),
    ],
)
def test_types_are_read_off_the_nodes(text: str, doubles: str) -> None:
    given = {"x": FP64, "f": FP32, "i": np.dtype(np.int64), "k": np.dtype(np.int64)}
    assert double_names(nodes(text), given) == set(doubles.split())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a = Exp (x)  b = Cast<to = 11> (f)  c = Mul (a, b)", "x a b c"),
        ("a = Exp (f)  b = Cast<to = 11> (a)  c = Mul (x, b)", "x"),
        ("a = Cast<to = 1> (x)  b = Cast<to = 11> (a)  c = Exp (x)", "x c"),
        ("a = Reshape (f, i)  b = Cast<to = 11> (a)", "x b"),
    ],
)
def test_no_way_through_narrower_arithmetic(text: str, found: str) -> None:
    given: Mapping[str, np.dtype] = {"x": FP64, "f": FP32, "i": np.dtype(np.int64)}
    flat = tuple(FlatNode(each, each.name, tuple(each.output)) for each in nodes(text))
    graph = FlatGraph(flat, {}, tuple(given), ("c",), 18)
    assert exact_to_double(graph, given) == set(found.split())


def tolerance(text: str, dtypes: list[DType]) -> np.ndarray:
    """What is allowed of the one output of a body, relative to it."""
    x = np.linspace(0.5, 2.0, 4)
    node = onnx.helper.make_node("f", ["x"], ["y"], domain="wpk")
    opsets = [onnx.helper.make_opsetid("", 18)]
    function = onnx.helper.make_function("wpk", "f", ["x"], ["y"], nodes(text), opsets)
    (output,) = NodeBody(node, function, {"": 18})([x], [], 0.0, dtypes)
    return np.asarray(output.tolerance / np.abs(output.value))


def test_a_kernel_of_fp64_is_held_to_its_unit() -> None:
    allowed = tolerance("a = Exp (x)  y = Mul (a, x)", [DType.FP64])
    assert (allowed < 100 * 2.0**-53).all()
    assert (allowed > 2.0**-53).all()


def test_a_cast_to_fp32_is_one_rounding_of_it() -> None:
    allowed = tolerance("a = Exp (x)  y = Cast<to = 1> (a)", [DType.FP32])
    assert (allowed > 2.0**-25).all()
    assert (allowed < 4 * 2.0**-24).all()


@pytest.mark.parametrize(
    ("doubles", "outcome"), [((), Outcome.OK), (("y",), Outcome.FAILED)], ids=["fp32", "fp64"]
)
def test_an_output_that_passed_through_fp32_is_found_out(
    doubles: tuple[str, ...], outcome: Outcome
) -> None:
    right = np.random.default_rng(0).standard_normal(100)
    seen = right.astype(np.float32).astype(np.float64)
    check = check_outputs(
        lambda _: {"y": seen}, {"y": right}, {}, Precision.FP32, "n", doubles=doubles
    )
    assert check.outcome is outcome
