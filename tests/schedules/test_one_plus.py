"""1 + erf and 1 + tanh, which kernels compute as one function: absolute errors, tails, infinities."""

import math
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.expression import Expression, In, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.problems import Elementwise, Tensor
from wpk.schedules.elementwise import ElementwiseSchedule, ElementwiseTemplate

FUNCTIONS = {"Erf": np.vectorize(math.erf), "Tanh": np.tanh}
ERROR = 2.5e-7
"""Two roundoffs of numbers from 1 to 2, which a sum with an exact function has one of."""


def computed(execution: Any, name: str, x: np.ndarray, one: float = 1.0) -> np.ndarray:
    """What a kernel makes of ``one + f(x)``."""
    dtype = {np.dtype(np.float32): DType.FP32, np.dtype(np.float64): DType.FP64}[x.dtype]
    flat = Tensor(dtype, (x.size, 1), 0, dtype.bytes)
    expression: Expression = apply("Add", Scalar(one), apply(name, Operand(0)))
    if dtype is DType.FP64:
        expression = In(DType.FP64, expression)
    problem = Elementwise(Extent(1), (1, x.size), expression, (flat,), flat)
    memory = [execution.memory(flat, x.reshape(problem.shape))]
    schedule = ElementwiseSchedule(1, 4, 128)
    y = execution.run(ElementwiseTemplate(), problem, schedule, memory, problem.shape, {})
    found: np.ndarray = y.reshape(-1)
    return found


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_those_of_numbers_near_one(name: str, fast_execution: Any) -> None:
    x = np.linspace(-12, 12, 20011).astype(np.float32)
    y = computed(fast_execution, name, x)
    exact = 1 + FUNCTIONS[name](x.astype(np.float64))
    assert np.abs(y - exact).max() < ERROR
    assert (y >= 0).all()
    assert (y <= 2).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ends_are_0_and_2_and_no_number_stays_none(name: str, fast_execution: Any) -> None:
    x = np.array([-np.inf, -3e38, -1e4, 0, 1e4, 3e38, np.inf, np.nan], np.float32)
    y = computed(fast_execution, name, x)
    np.testing.assert_array_equal(y[:-1], [0, 0, 0, 1, 2, 2, 2])
    assert np.isnan(y[-1])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_constant_is_added_to_the_exact_function(name: str, fast_execution: Any) -> None:
    x = np.linspace(-5, 5, 301).astype(np.float32)
    y = computed(fast_execution, name, x, one=0.0)
    exact = FUNCTIONS[name](x.astype(np.float64))
    assert np.abs(y - exact).max() < ERROR / 2
    assert (np.abs(y - exact) <= 5e-7 * np.abs(exact)).all(), "near 0, too"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fp64_is_computed_in_fp64(name: str, fast_execution: Any) -> None:
    x = np.linspace(-5, 5, 301)
    exact = 1 + FUNCTIONS[name](x)
    assert np.abs(computed(fast_execution, name, x) - exact).max() < 1e-14
