"""GELU of both forms, which kernels compute as one function: its errors over all of fp32, its ends, planted faults."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from support.faults.planter import Fault, change, plant
from support.machine_code.disassembly import listing

from wpk.build import load_nvrtc
from wpk.checks.reference.gelu import Gelu
from wpk.dtypes import DType
from wpk.expression import Expression, Operand, Scalar, apply
from wpk.extent import Extent
from wpk.operators import OPERATORS, OwnError, express
from wpk.problems import Elementwise, Tensor, stored_slots
from wpk.schedules.elementwise import ElementwiseSchedule, ElementwiseTemplate

Floats = NDArray[np.float64]
TEMPLATE = ElementwiseTemplate()
FORMS = ("none", "tanh")
UNIT = 2.0**-24
DECLARED = {"none": 1.4e-7, "tanh": 1.5e-7}
"""What the header says: times the argument. Beside it the result is rounded once."""

MOST_SHARE = 0.3
"""Of what the check allows the function's own arithmetic."""

OF_FP32 = np.arange(0, 2**32, 4099, dtype=np.uint64).astype(np.uint32).view(np.float32)
"""Patterns of all signs and exponents, subnormal numbers, infinities and no numbers among them."""


def elementwise(expression: Expression, count: int) -> Elementwise:
    flat = Tensor(DType.FP32, (count, 1), 0, 4)
    return Elementwise(Extent(1), (1, count), expression, (flat,), flat)


def computed(
    execution: Any, expression: Expression, x: NDArray[np.float32], template: Any = TEMPLATE
) -> Floats:
    problem = elementwise(expression, x.size)
    memory = [execution.memory(problem.inputs[0], x.reshape(problem.shape))]
    schedule = ElementwiseSchedule(1, 4, 128)
    y = execution.run(template, problem, schedule, memory, problem.shape, {})
    return np.asarray(y.reshape(-1), np.float64)


def gelu(approximate: str) -> Expression:
    return express("Gelu", (Operand(0),), {"approximate": approximate})


def in_parts(approximate: str) -> Expression:
    """The same with its factors in another order: by 1 + erf or 1 + tanh, as decision 65 has them."""
    whole = gelu(approximate)
    assert whole == apply("Mul", apply("Mul", Scalar(0.5), Operand(0)), whole.arguments[1])  # type: ignore[union-attr]
    return apply("Mul", whole.arguments[1], apply("Mul", Operand(0), Scalar(0.5)))  # type: ignore[union-attr]


def exact(approximate: str, x: NDArray[np.float32]) -> Floats:
    """In float64; without the cancellation of the formula where x is negative."""
    wide = x.astype(np.float64)
    if approximate == "none":
        return wide * 0.5 * np.vectorize(math.erfc)(-wide * math.sqrt(0.5))
    bell = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
    return wide / (1.0 + np.exp(-2 * bell))


def shares(approximate: str, x: NDArray[np.float32], y: Floats) -> Floats:
    """Errors in shares of what the check allows the function's own arithmetic."""
    own = OPERATORS["Gelu"].error
    assert isinstance(own, OwnError)
    right = exact(approximate, x)
    allowed = UNIT * (own.result * np.abs(right) + own.argument * np.abs(x.astype(np.float64)))
    return np.abs(y - right) / np.maximum(allowed, 1e-300)


def ordinary() -> NDArray[np.float32]:
    random = np.random.default_rng(3)
    return np.concatenate(
        [np.linspace(-12, 12, 40001), random.normal(size=20000), random.uniform(-1, 1, 20000)]
    ).astype(np.float32)


@pytest.mark.parametrize("approximate", FORMS)
def test_errors_are_as_the_header_says_over_all_of_fp32(
    approximate: str, fast_execution: Any
) -> None:
    x = np.concatenate([OF_FP32, ordinary()])
    with np.errstate(all="ignore"):
        finite = x[np.isfinite(x)]
        right = exact(approximate, finite)
    y = computed(fast_execution, gelu(approximate), finite)
    size = np.abs(finite.astype(np.float64))
    allowed = DECLARED[approximate] * size + UNIT * np.abs(right) + 2.0**-149
    assert (np.abs(y - right) <= allowed).all()
    assert (y[finite >= 0] >= 0).all()
    assert (y <= np.maximum(finite, 0)).all()


@pytest.mark.parametrize("approximate", FORMS)
def test_a_small_share_of_what_the_check_allows_is_taken(
    approximate: str, fast_execution: Any
) -> None:
    """In parts it is 0.11; what is stored in 16 bits may differ by a thousand times as much."""
    x = ordinary()
    found = shares(approximate, x, computed(fast_execution, gelu(approximate), x)).max()
    parts = shares(approximate, x, computed(fast_execution, in_parts(approximate), x)).max()
    assert parts < 0.2
    assert found < MOST_SHARE


@pytest.mark.parametrize("approximate", FORMS)
def test_ends_are_those_of_the_formula(approximate: str, fast_execution: Any) -> None:
    """0 times infinity is no number, as in ONNX Runtime; 3e38 is not doubled on the way."""
    largest = np.finfo(np.float32).max
    x = np.array([-np.inf, np.inf, np.nan, -0.0, 0.0, largest, 1e-40, -1e-40], np.float32)
    y = computed(fast_execution, gelu(approximate), x)
    half = x[6].astype(np.float64) / 2
    np.testing.assert_allclose(
        y, [np.nan, np.inf, np.nan, 0, 0, float(largest), half, -half], rtol=0, atol=2.0**-149
    )
    far = computed(fast_execution, gelu(approximate), np.float32([-20, -1e4, -1e30, -largest]))
    assert (np.abs(far) < 1e-14).all()


FAULTS = {
    "none": [
        Fault("the polynomial does not end", change("gelu_ends", "8.0f", "asFloat(0x7f800000u)")),
        Fault("a coefficient is off", change("gelu_slope", "-2.30223", "-2.30224")),
    ],
    "tanh": [Fault("a coefficient is off", change("gelu_by_tanh", "-2.3022082f", "-2.302210f"))],
}


@pytest.mark.parametrize(
    ("approximate", "fault"),
    [(form, fault) for form in FORMS for fault in FAULTS[form]],
    ids=lambda each: getattr(each, "name", each),
)
def test_a_fault_of_the_function_is_seen(
    approximate: str, fault: Fault, fast_execution: Any
) -> None:
    """So the types that units are made of are those of the header."""
    x = np.append(ordinary(), np.float32(np.inf))
    y = computed(fast_execution, gelu(approximate), x, plant(TEMPLATE, fault))
    assert y[-1] != np.inf or shares(approximate, x[:-1], y[:-1]).max() > MOST_SHARE


@pytest.mark.parametrize(("approximate", "powers", "most"), [("none", 1, 10.5), ("tanh", 2, 6.5)])
def test_machine_code_has_as_many_instructions_as_models_count(
    approximate: str, powers: int, most: float, tmp_path: Path
) -> None:
    """Of eight elements a thread, beside a copy of magnitudes; in parts they would be 13 and 10."""
    counts = {}
    for name, expression in (("copy", apply("Abs", Operand(0))), ("gelu", gelu(approximate))):
        problem = elementwise(expression, 1 << 16)
        (source,) = TEMPLATE.instantiate(problem, ElementwiseSchedule(2, 4, 128))
        text = listing(load_nvrtc().compile(source, "sm_90a").cubin, tmp_path)
        lines = [line for line in text.splitlines() if line.strip().startswith("/*")]
        counts[name] = [line for line in lines if "NOP" not in line]
    special = [line for line in counts["gelu"] if "MUFU" in line]
    assert len(special) == 8 * powers
    assert len(counts["gelu"]) - len(counts["copy"]) <= 8 * most
    assert stored_slots(elementwise(gelu(approximate), 8)) == {1: 11, 2: 16}[powers]


def test_the_reference_is_that_of_the_check() -> None:
    x = np.linspace(-4, 4, 101).astype(np.float32)
    for approximate in FORMS:
        checked = Gelu.eval(x.astype(np.float64), approximate=approximate)
        np.testing.assert_allclose(exact(approximate, x), checked, rtol=1e-9, atol=1e-12)
