"""Elements that roundings explain, elements that they decide, and elements that are wrong."""

import graph_text
import numpy as np
import pytest
from numpy.typing import NDArray

from wpk.checks.closer_look import CloserLook, distance
from wpk.checks.disturbed import DisturbedModel
from wpk.checks.limits import LIMITS, OutputError
from wpk.checks.model_check import check_outputs
from wpk.dtypes import Precision
from wpk.plans.plan import Check, Outcome

X = np.random.default_rng(0).standard_normal(400).astype(np.float32)
FLOOR = "e = Mul(x, x)  y = Floor(e)"
POSITIVE = "(float[400] x) => (bool[400] y) { c = Constant<value_float = 1.0>()  e = Mul(x, x)  y = Less(e, c) }"


def floats(
    body: str,
    y: NDArray[np.generic],
    x: NDArray[np.generic] = X,
    precision: Precision = Precision.BF16,
) -> tuple[Outcome, str]:
    """What is said of an engine that gives ``y``."""
    size = x.size
    graph = graph_text.flat(f"(float[{size}] x) => (float[{size}] y) {{ {body} }}")
    model = DisturbedModel(graph, precision, {"x": x})
    right = model.outputs()["y"]
    return CloserLook(model).floats("y", y, right, LIMITS[precision])


def test_ties_are_undecided_and_the_others_are_held_to_their_own() -> None:
    x = X.copy()
    x[:9] = np.sqrt(np.arange(1, 10))
    right = np.floor(x.astype(np.float64) ** 2)
    tied = right.copy()
    tied[:9] -= 1.0  # nine of four hundred fell on the other side
    outcome, words = floats(FLOOR, tied, x)
    assert outcome is Outcome.OK
    assert words.startswith("no further than roundings at every node move it; ")
    wrong = tied.copy()
    wrong[np.argmax(np.abs(x - 0.7) < 0.05)] += 1.0
    outcome, words = floats(FLOOR, wrong, x)
    assert outcome is Outcome.FAILED
    assert words.startswith("1 of 400 elements are further off")


def test_an_output_with_many_ties_says_nothing() -> None:
    x = X.copy()
    x[::5] = np.sqrt(np.arange(80) % 3 + 1)
    right = np.floor(x.astype(np.float64) ** 2)
    right[::5] -= 1.0
    outcome, words = floats(FLOOR, right, x)
    assert outcome is Outcome.INCONCLUSIVE
    assert "roundings at every node decide" in words


def test_an_output_that_roundings_move_by_itself_says_nothing() -> None:
    steep = "c = Constant<value_float = 1e4>()  e = Mul(x, c)  y = Sin(e)"
    outcome, words = floats(steep, np.sin(X.astype(np.float64) * 1e4 + 1.0))
    assert outcome is Outcome.INCONCLUSIVE
    assert "roundings at every node move half of it by " in words


def test_what_cancels_may_differ_by_what_was_rounded_before() -> None:
    body = "h = Constant<value_float = 1e4>()  a = Add(x, h)  y = Sub(a, h)"
    honest = (X + np.float32(1e4)) - np.float32(1e4)
    assert np.abs(honest - X).max() > LIMITS[Precision.FP32].worst
    assert floats(body, honest, precision=Precision.FP32)[0] is Outcome.OK
    assert floats(body, honest + 0.05, precision=Precision.FP32)[0] is Outcome.FAILED


def test_an_output_that_should_be_zero_is_held_to_its_noise() -> None:
    body = "h = Exp(x)  l = Log(h)  y = Sub(l, x)"
    honest = np.random.default_rng(3).uniform(-1, 1, X.size) * 2.0**-25
    assert floats(body, honest, precision=Precision.FP32)[0] is not Outcome.FAILED
    assert floats(body, honest + 1e-3, precision=Precision.FP32)[0] is Outcome.FAILED


@pytest.mark.parametrize("error", [1.3, 0.0, -1.0])
def test_a_wrong_function_fails(error: float) -> None:
    right = np.exp(X.astype(np.float64))
    for precision in Precision:
        assert floats("y = Exp(x)", right * error, precision=precision)[0] is Outcome.FAILED


def booleans(y: NDArray[np.generic], x: NDArray[np.generic] = X) -> tuple[Outcome, str]:
    model = DisturbedModel(graph_text.flat(POSITIVE), Precision.FP16, {"x": x})
    return CloserLook(model).integers("y", y, model.outputs()["y"])


def test_booleans_differ_only_at_ties() -> None:
    x = X.copy()
    x[7] = 1.0
    right = x**2 < 1.0
    flipped = right.copy()
    flipped[7] = ~flipped[7]
    assert booleans(flipped, x) == (
        Outcome.OK,
        "no further than roundings at every node move it; 1 undecided",
    )
    flipped[8] = ~flipped[8]
    outcome, words = booleans(flipped, x)
    assert outcome is Outcome.FAILED
    assert words == "1 of 400 elements that no rounding changes differ"
    ties = np.ones_like(X)
    assert booleans(np.zeros(400, bool), ties)[0] is Outcome.INCONCLUSIVE


def test_what_is_not_a_number_is_wrong_unless_roundings_make_it() -> None:
    x = np.abs(X) + 1.0
    x[3] = 1.0
    body = "c = Constant<value_float = 1.0>()  d = Sub(x, c)  y = Sqrt(d)"
    right = np.sqrt(x.astype(np.float64) - 1.0)
    made = right.copy()
    made[3] = np.nan  # a kernel that rounds one to less than one
    assert floats(body, made, x)[0] is Outcome.OK
    made[4] = np.nan
    outcome, words = floats(body, made, x)
    assert outcome is Outcome.FAILED
    assert words.startswith("1 of 400 elements")


def test_limits_are_asked_first_and_the_closer_look_where_they_do_not_do() -> None:
    class Asked(Exception):  # noqa: N818 (it says that something was asked)
        """Something was computed."""

    class Model:
        def outputs(self, noise: object = None) -> None:
            raise Asked

    def check(y: NDArray[np.generic], worst: float = 0.0) -> Check:
        look = CloserLook(Model())  # type: ignore[arg-type]
        own = {"y": OutputError(0.0, worst)}
        return check_outputs(
            lambda _: {"y": y}, {"y": X}, {}, Precision.FP16, "test", own, closer=look
        )

    assert check(X).outcome is Outcome.OK
    with pytest.raises(Asked):
        check(X * 2)
    with pytest.raises(Asked):
        check(X, worst=1.0)
    with pytest.raises(Asked):
        check(np.full_like(X, np.nan))


def test_distances_between_what_is_not_finite() -> None:
    a = np.array([1.0, np.nan, np.inf, np.nan, 1.0, np.inf])
    b = np.array([2.0, np.nan, np.inf, 1.0, np.inf, -np.inf])
    assert distance(a, b).tolist() == [1.0, 0.0, 0.0, np.inf, np.inf, np.inf]
