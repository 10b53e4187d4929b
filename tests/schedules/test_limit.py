"""A limit filters columns, refuses in words, and is a static_assert: all of one expression."""

import numpy as np
import pytest

from wpk.build import load_nvrtc
from wpk.errors import CompileError, ScheduleError
from wpk.kernel_source import KernelSource
from wpk.schedules.limit import Limit, meeting

A, B = (np.array(side).ravel() for side in np.meshgrid(range(1, 9), range(1, 9)))
COLUMNS = {"a": A, "b": B}
CONDITIONS = {
    "a % (2 * b) == 0": A % (2 * B) == 0,
    "a * b // 2 - 1 < a + b": A * B // 2 - 1 < A + B,
    "a - (b - 1) > 2": A - (B - 1) > 2,
    "(a & (a - 1)) == 0": (A & (A - 1)) == 0,
    "2 <= a <= b": (A >= 2) & (A <= B),
    "a in (2, 3, b)": (A == 2) | (A == 3) | (A == B),
    "a == 1 or b != 2 and (a >= 3 or b == 1)": (A == 1) | ((B != 2) & ((A >= 3) | (B == 1))),
    "min(a, b) + max(a, 3) <= ceil_div(a * b, 4)": (
        np.minimum(A, B) + np.maximum(A, 3) <= -(-A * B // 4)
    ),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_columns_and_cpp_agree(condition: str) -> None:
    limit = Limit(condition, "a rule")
    holds = limit.holds(COLUMNS)
    np.testing.assert_array_equal(holds, CONDITIONS[condition])
    each = "\n".join(
        f"struct S{i} {{ static constexpr int a = {a}, b = {b}; {limit.static_assert} }};"
        for i, (a, b, met) in enumerate(zip(A, B, holds, strict=True))
        if met
    )
    load_nvrtc().compile(_unit(each), "sm_90a")
    a, b = A[~holds][0], B[~holds][0]
    illegal = f"struct S {{ static constexpr int a = {a}, b = {b}; {limit.static_assert} }};"
    with pytest.raises(CompileError, match="a rule"):
        load_nvrtc().compile(_unit(illegal), "sm_90a")


def test_a_refusal_says_what_is_allowed_and_what_was_seen() -> None:
    limit = Limit("a * 3 <= 8", "a block has at most 8 warps")
    seen = {"b": np.array([5]), "a": np.array([4])}
    assert limit.refusal(seen) == "a block has at most 8 warps (a=4)"


def test_extents_of_nothing_are_refused_without_a_warning() -> None:
    nothing = {"a": np.array([0, 4]), "b": np.array([8, 8])}
    limits = [Limit("b % a == 0", "a divides b"), Limit("a >= 1", "there is an a")]
    np.testing.assert_array_equal(meeting(limits, nothing), [False, True])


@pytest.mark.parametrize("condition", ["a ** 2 < 3", "abs(a) < 3", "a / 2 == 1", "a is b"])
def test_refuses_what_is_no_expression_of_limits(condition: str) -> None:
    with pytest.raises(ScheduleError, match="no expression of limits"):
        Limit(condition, "a rule").holds(COLUMNS)


def _unit(text: str) -> KernelSource:
    head = "#include <wpk/kernels/portable.cuh>\n"
    return KernelSource("k", f"{head}{text}\nWPK_KERNEL(32) k(int n, void* y) {{}}\n")
