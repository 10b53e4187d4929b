"""The steps that cuDNN is given compute the epilogue; what it cannot compute is refused in words."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from wpk.dtypes import DType
from wpk.expression import (
    OPERATIONS,
    Acc,
    Expression,
    Operand,
    Round,
    Scalar,
    apply,
    evaluate,
)
from wpk.libraries.cudnn_pointwise import (
    METHODS,
    PointwiseCall,
    PointwiseTensor,
    pointwise_steps,
    tensor_first,
    why_no_steps,
)
from wpk.operators import express

BIAS = apply("Add", Acc(), Operand(0))

ERF = np.vectorize(math.erf)

ACTIVATIONS: dict[str, Callable[..., Any]] = {
    "relu": lambda x, lower_clip=0.0, upper_clip=np.inf: np.clip(x, lower_clip, upper_clip),
    "leaky_relu": lambda x, negative_slope: np.where(x < 0, negative_slope * x, x),
    "elu": lambda x: np.where(x < 0, np.expm1(x), x),
    "swish": lambda x, swish_beta: x / (1 + np.exp(-swish_beta * x)),
    "gelu": lambda x: x * (1 + ERF(x / math.sqrt(2))) / 2,
    "gelu_approx_tanh": lambda x: (
        x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2
    ),
    "identity": lambda x: x,
}
"""What cuDNN's documentation says of the methods that are none of wpk's operations."""


def _compute(steps: tuple[PointwiseCall, ...], acc: Any, operands: list[Any]) -> Any:
    named = {name.lower(): each.numpy for name, each in OPERATIONS.items()}
    meanings = {name: named[name] for name in METHODS} | ACTIVATIONS
    values = [acc, *operands]
    for step in steps:
        arguments = [
            values[a.index] if isinstance(a, PointwiseTensor) else a for a in step.arguments
        ]
        values.append(meanings[step.method](*arguments, **dict(step.options)))
    return values[-1] if steps else values[0]


@pytest.mark.parametrize(
    ("operator", "attributes", "methods"),
    [
        ("Relu", {}, ["add", "relu"]),
        ("Clip", {"min": 0.0, "max": 6.0}, ["add", "relu"]),
        ("Clip", {"min": -0.5, "max": 0.25}, ["add", "relu"]),
        ("Clip", {"min": -0.5}, ["add", "max"]),
        ("LeakyRelu", {"alpha": 0.1}, ["add", "leaky_relu"]),
        ("Elu", {}, ["add", "elu"]),
        ("Swish", {}, ["add", "swish"]),
        ("Swish", {"alpha": 1.7}, ["add", "swish"]),
        ("Gelu", {}, ["add", "gelu"]),
        ("Gelu", {"approximate": "tanh"}, ["add", "gelu_approx_tanh"]),
        ("HardSwish", {}, ["add", "mul", "add", "relu", "mul"]),
        ("Mish", {}, ["add", "softplus", "tanh", "mul"]),
        ("Sigmoid", {}, ["add", "sigmoid"]),
    ],
)
def test_says_activations_in_cudnns_words(
    operator: str, attributes: Any, methods: list[str]
) -> None:
    expression = express(operator, [BIAS], attributes)
    steps = pointwise_steps(expression, 1)
    assert [step.method for step in steps] == methods
    acc, bias = np.linspace(-4, 4, 41), np.full(41, 0.3)
    np.testing.assert_allclose(
        _compute(steps, acc, [bias]), evaluate(expression, acc, [bias]), rtol=1e-12, atol=1e-14
    )


def test_a_silu_written_out_is_a_swish() -> None:
    for x in (
        apply("Mul", BIAS, apply("Sigmoid", BIAS)),
        apply("Mul", apply("Sigmoid", BIAS), BIAS),
    ):
        assert [step.method for step in pointwise_steps(x, 1)] == ["add", "swish"]


def test_equal_parts_are_computed_once() -> None:
    steps = pointwise_steps(apply("Mul", apply("Tanh", BIAS), BIAS), 1)
    assert steps == (
        PointwiseCall("add", (PointwiseTensor(0), PointwiseTensor(1))),
        PointwiseCall("tanh", (PointwiseTensor(2),)),
        PointwiseCall("mul", (PointwiseTensor(3), PointwiseTensor(2))),
    )


def test_what_is_stored_as_it_is_has_no_steps() -> None:
    assert pointwise_steps(Acc(), 0) == ()


def test_a_result_that_no_operation_gives_is_still_written() -> None:
    assert pointwise_steps(Operand(0), 1) == (PointwiseCall("identity", (PointwiseTensor(1),)),)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        (apply("Relu", Round(DType.FP16, Acc())), "rounds to fp16"),
        (apply("Add", apply("RoundEven", Acc()), Operand(0)), "holds RoundEven"),
        (apply("Where", apply("Less", Acc(), Scalar(1.0)), Acc(), Scalar(0.0)), "holds Where"),
    ],
)
def test_refuses_what_cudnn_has_no_word_for(expression: Expression, reason: str) -> None:
    assert reason in (why_no_steps(expression) or "")
    with pytest.raises(ValueError, match=reason):
        pointwise_steps(expression, 1)


def test_the_residual_moves_before_the_bias() -> None:
    vectors = frozenset({0})
    wanted = apply("Relu", apply("Add", apply("Add", Acc(), Operand(1)), Operand(0)))
    assert tensor_first(apply("Relu", apply("Add", BIAS, Operand(1))), vectors) == wanted
    assert tensor_first(apply("Relu", apply("Add", Operand(1), BIAS)), vectors) == wanted
    assert tensor_first(wanted, vectors) == wanted
    assert tensor_first(apply("Add", BIAS, Operand(1)), frozenset({0, 1})) == apply(
        "Add", BIAS, Operand(1)
    )
