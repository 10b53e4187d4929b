"""Products of many rows with one matrix are one product, and the same numbers."""

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from wpk.checks.reference.linear import matmul
from wpk.checks.reference.operators import REFERENCE_OPS

NODE = helper.make_node("MatMul", ["a", "b"], ["y"])
KIND = TensorProto.DOUBLE
MODEL = helper.make_model(
    helper.make_graph(
        [NODE],
        "g",
        [helper.make_tensor_value_info(name, KIND, None) for name in "ab"],
        [helper.make_tensor_value_info("y", KIND, None)],
    ),
    opset_imports=[helper.make_opsetid("", 17)],
)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3, 5, 7), (7, 4)),  # one matrix for all rows
        ((3, 5, 7), (7, 1)),
        ((0, 5, 7), (7, 4)),
        ((2, 3, 0), (0, 4)),
        ((5, 7), (7, 4)),
        ((7,), (7, 4)),
        ((2, 5, 7), (7,)),
        ((2, 5, 7), (2, 7, 4)),
        ((5, 7), (3, 7, 4)),
    ],
)
def test_products_are_numpys(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    generator = np.random.default_rng(len(a) * 10 + len(b))
    given = {"a": generator.standard_normal(a), "b": generator.standard_normal(b)}
    (y,) = ReferenceEvaluator(MODEL, new_ops=[*REFERENCE_OPS]).run(None, given)
    right = np.einsum("...i,i->...", given["a"], given["b"]) if len(b) == 1 else None
    right = given["a"] @ given["b"] if right is None else right
    assert y.shape == right.shape
    np.testing.assert_allclose(y, right, rtol=1e-12, atol=1e-12)


def test_rows_that_lie_apart_in_memory_are_multiplied_and_the_type_stays() -> None:
    a = np.arange(24, dtype=np.float32).reshape(2, 4, 3).transpose(0, 2, 1)
    b = np.arange(20, dtype=np.float32).reshape(5, 4).T
    y = matmul(a, b)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, np.einsum("nij,jk->nik", a, b))
