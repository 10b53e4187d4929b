"""A cast moved in front of a guard against NaN: the same numbers, and only where nobody else looks."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from wpk.tensorrt.nan_guards import cast_in_front

TEXT = """<ir_version: 8, opset_import: ["" : 17]> g (float[3, 5] x) => (float16[3, 5] y{more}) {{
  p = Softmax(x)
  n = IsNaN({tested})
  z = Constant<value = float {{0.25}}>()
  g = Where(n, z, p)
  y = Cast<to = 10>(g)
}}"""


def model(tested: str = "p", more: str = "") -> onnx.ModelProto:
    parsed: onnx.ModelProto = onnx.parser.parse_model(TEXT.format(tested=tested, more=more))
    return parsed


def kinds(given: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in given.graph.node]


def test_the_cast_stands_in_front_and_the_numbers_are_the_same() -> None:
    plain, moved = model(), model()
    cast_in_front(moved.graph)
    onnx.checker.check_model(moved, full_check=True)
    assert kinds(moved) == ["Softmax", "Constant", "Cast", "IsNaN", "Constant", "Where"]
    x = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)
    x[1] = -np.inf
    with np.errstate(invalid="ignore"):
        (one,), (other,) = (ReferenceEvaluator(each).run(None, {"x": x}) for each in (plain, moved))
    assert (one[1] == 0.25).all()
    np.testing.assert_array_equal(one, other)
    assert one.dtype == other.dtype == np.float16


@pytest.mark.parametrize(("tested", "more"), [("x", ""), ("p", ", float[3, 5] g")])
def test_other_guards_and_values_that_others_read_stay(tested: str, more: str) -> None:
    given = model(tested, more)
    before = given.SerializeToString()
    cast_in_front(given.graph)
    assert given.SerializeToString() == before
