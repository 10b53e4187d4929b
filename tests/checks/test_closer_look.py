"""Elements that roundings explain, elements that they decide, and elements that are wrong."""

import numpy as np
import pytest
from numpy.typing import NDArray
from support.networks import graph_text

from wpk.checks.closer_look import CloserLook, distance
from wpk.checks.disturbed import DisturbedModel, Noise
from wpk.checks.limits import LIMITS, ErrorLimit, OutputDistance
from wpk.checks.model_check import check_outputs
from wpk.dtypes import ASKED, Precision
from wpk.plan.plan import Check, Outcome

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


def test_an_element_may_be_that_of_float64_where_the_other_runtime_rounds_a_tie_away() -> None:
    """Quantised models: one integer, far off what any tie moves here, decides in the other runtime alone."""
    graph = graph_text.flat("(float[400] x) => (float[400] y) { y = Floor(x) }")
    model = DisturbedModel(graph, Precision.FP32, {"x": X})
    exact = model.outputs()["y"]
    other = exact.copy()
    other[:5] += 1.0  # no disturbance reaches so far
    outcome, words = CloserLook(model).floats("y", exact, other, LIMITS[Precision.FP32])
    assert outcome is Outcome.OK
    assert words.endswith(", 5 as in float64, where those of ONNX Runtime decide otherwise")
    for wrong in (other + np.eye(400)[7], exact - np.eye(400)[2]):  # of neither of the two
        outcome, words = CloserLook(model).floats("y", wrong, other, LIMITS[Precision.FP32])
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
    for precision in ASKED:
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
        own = {"y": OutputDistance(0.0, worst)}
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


class Moved:
    """A model whose output is moved in one run of several: by what weak or strong disturbances do."""

    def __init__(self, right: NDArray[np.generic], weak: object, strong: object) -> None:
        self._right, self._by = right, {1.0: weak, 8.0: strong}
        self.asked: list[Noise] = []

    def outputs(self, noise: Noise | None = None) -> dict[str, NDArray[np.generic]]:
        if noise is None:
            return {"y": self._right}
        self.asked.append(noise)
        return {"y": self._right + self._by[noise.strength] if noise.seed == 2 else self._right}


WEAK_RUNS = [Noise(1.0, seed) for seed in range(5)]
ALL_RUNS = [*WEAK_RUNS, *(Noise(8.0, seed) for seed in range(24))]
EXPLAINED_RUNS = ALL_RUNS[: len(WEAK_RUNS) + 3]
"""Up to the one that moves an output."""
RMS = 0.25
MIXED = np.concatenate([np.zeros(30), np.full(10, 2 * RMS)])
ZEROS, ONE = np.zeros(40), np.array([RMS])
LITTLE = 2.0**-30


def first(count: int, value: float, rest: float = 0.0) -> NDArray[np.float64]:
    """Some of forty elements that have a value."""
    return np.where(np.arange(40) < count, value, rest)


def judged(
    off: object,
    weak: object,
    strong: object = 0.0,
    right: NDArray[np.float64] = MIXED,
    limit: ErrorLimit = ErrorLimit(0.0, 0.0),  # noqa: B008 (it cannot be changed)
) -> tuple[Outcome, str]:
    """An output off by so much where disturbances move it by so much, in units of 0.25."""
    model = Moved(right, np.multiply(weak, RMS), np.multiply(strong, RMS))
    look = CloserLook(model)  # type: ignore[arg-type]
    found = look.floats("y", right + np.multiply(off, RMS), right, limit)
    assert model.asked in (WEAK_RUNS, EXPLAINED_RUNS, ALL_RUNS)
    if found[1].startswith(("1 of", "2 of")):
        assert model.asked == ALL_RUNS
    return found


OK = "no further than roundings at every node move it; {} undecided"
DECIDED = "which says nothing: roundings at every node decide {} of 40 elements"
HALF = "which says nothing: roundings at every node move half of it by {} of its RMS"
FAR = "{} of 40 elements are further off than roundings at every node move them"


@pytest.mark.parametrize(
    ("off", "weak", "strong", "said"),
    [
        # Six times what an element, or most of them, was moved by.
        (6 / 128, 1 / 128, 0.0, OK.format(0)),
        (first(1, 6 / 128 + LITTLE), 1 / 128, 0.0, FAR.format(1)),
        (first(1, 6 / 128), first(1, 0.0, 1 / 128), 0.0, FAR.format(1)),
        (first(1, 6 / 130), first(1, 0.0, 1 / 128), 0.0, OK.format(0)),
        (first(1, 6 / 16), first(1, 1 / 16), 0.0, OK.format(0)),
        (first(2, 6 / 16), first(1, 1 / 16), 0.0, FAR.format(1)),
        # Twice what strong disturbances do is a tie, but not that of half the elements.
        (first(4, 1 / 8), 1 / 128, 1 / 16, OK.format(4)),
        (first(5, 1 / 8), 1 / 128, 1 / 16, DECIDED.format(5)),
        (first(1, 1 / 8 + LITTLE), 1 / 128, 1 / 16, FAR.format(1)),
        (first(2, 1 / 8), 1 / 128, first(1, 1 / 16), FAR.format(1)),
        (1 / 8, 1 / 128, 1 / 16, FAR.format(0)),
        # Half of the RMS says nothing of an element, a twentieth for most of them nothing of all.
        (0.0, first(4, 1 / 12), 0.0, OK.format(4)),
        (0.0, first(5, 1 / 12), 0.0, DECIDED.format(5)),
        (0.0, first(5, 1 / 12.1), 0.0, OK.format(0)),
        (0.0, 0.049, 0.0, OK.format(0)),
        (0.0, first(30, 0.05), 0.0, HALF.format("5.0e-02")),
        (0.0, first(21, 0.05), 0.0, HALF.format("5.0e-02")),
        (0.0, first(19, 0.05), 0.0, OK.format(0)),
    ],
)
def test_how_far_elements_may_be_off(off: object, weak: object, strong: object, said: str) -> None:
    assert judged(off, weak, strong)[1] == said


@pytest.mark.parametrize(
    ("off", "right", "fails"),
    [
        (first(1, 1 / 4), MIXED, False),
        (first(1, 1 / 4 + LITTLE), MIXED, True),
        (1 / 16, MIXED, False),
        (1 / 16 + LITTLE, MIXED, True),
        (first(19, 1 / 8), MIXED, False),
        (1 / 16, ONE, False),
        (1 / 16 + LITTLE, ONE, True),
    ],
)
def test_limits_hold_where_roundings_do_less(
    off: object, right: NDArray[np.float64], *, fails: bool
) -> None:
    outcome, _ = judged(off, 1 / 1024, right=right, limit=ErrorLimit(1 / 16, 1 / 4))
    assert outcome is (Outcome.FAILED if fails else Outcome.OK)


@pytest.mark.parametrize(
    ("off", "weak", "strong", "said"),
    [
        (0.0, 0.0, 0.0, OK.format(0)),
        (0.0, first(4, LITTLE), 0.0, OK.format(4)),
        (0.0, 4 * LITTLE, 0.0, DECIDED.format(40)),
        (0.0, 0.24, 0.0, HALF.format("6.0e-02")),  # of 1
        (first(1, LITTLE), 0.0, 0.0, FAR.format(1)),
        (LITTLE, 0.0, LITTLE, FAR.format(0)),
    ],
)
def test_no_limit_holds_for_an_output_of_zeros(
    off: object, weak: object, strong: object, said: str
) -> None:
    assert judged(off, weak, strong, right=ZEROS, limit=ErrorLimit(1.0, 1.0))[1] == said


def test_what_is_not_finite_has_no_part_in_the_rms() -> None:
    right = np.concatenate([MIXED, [np.inf, -np.inf, np.nan]])
    limit = ErrorLimit(1 / 16, 1 / 4)
    assert judged(1 / 16, 0.0, right=right, limit=limit)[0] is Outcome.OK
    assert judged(1 / 16 + LITTLE, 0.0, right=right, limit=limit)[0] is Outcome.FAILED
    assert judged(0.0, 0.0, right=np.full(3, np.nan))[1] == OK.format(0)


@pytest.mark.parametrize(
    ("flipped", "weak", "strong", "said"),
    [
        (0, 0, 0, OK.format(0)),
        (0, first(4, 1), 0, OK.format(4)),
        (1, first(1, 1), 1, OK.format(1)),
        (4, first(2, 1), first(4, 1), OK.format(4)),
        (5, first(2, 1), first(5, 1), DECIDED.format(5)),
        (4, first(1, 1), first(3, 1), "1 of 40 elements that no rounding changes differ"),
    ],
)
def test_integers_that_strong_disturbances_change_are_ties(
    flipped: int, weak: object, strong: object, said: str
) -> None:
    right = np.arange(40)
    model = Moved(right, np.asarray(weak, np.int64), np.asarray(strong, np.int64))
    actual = right + first(flipped, 1).astype(np.int64)
    assert CloserLook(model).integers("y", actual, right)[1] == said  # type: ignore[arg-type]
    explained = ALL_RUNS if "differ" in said else EXPLAINED_RUNS
    assert model.asked == (WEAK_RUNS if flipped < 2 else explained)


@pytest.mark.parametrize(
    ("weak", "strong", "asked"),
    [(1, 0, WEAK_RUNS), (0, 1, EXPLAINED_RUNS), (0, 0, ALL_RUNS)],
)
def test_shapes_are_looked_for_until_one_is_moved(
    weak: int, strong: int, asked: list[Noise]
) -> None:
    class Longer(Moved):
        def outputs(self, noise: Noise | None = None) -> dict[str, NDArray[np.generic]]:
            longer = (
                0
                if noise is None or noise.seed != 2
                else (weak if noise.strength == 1.0 else strong)
            )
            return {"y": np.resize(super().outputs(noise)["y"], 40 + longer)}

    model = Longer(np.arange(40), 0, 0)
    assert CloserLook(model).moves_shape("y") == bool(weak or strong)  # type: ignore[arg-type]
    assert model.asked == asked
