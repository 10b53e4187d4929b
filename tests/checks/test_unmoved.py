"""Outputs that are the same for all inputs: by their weights, by the model's architecture, or constants."""

from collections.abc import Iterator, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from support.networks import graph_text

from wpk.checks import unmoved
from wpk.checks.unmoved import (
    INPUTS,
    moved_with_other_weights,
    moving_tensors,
    unmoved_outputs,
)
from wpk.dtypes import Precision
from wpk.lowering.flat_graph import FlatGraph

Arrays = Mapping[str, NDArray[np.generic]]


def test_outputs_that_no_input_moves_are_found_with_as_few_inputs_as_can_be() -> None:
    asked = []

    def further() -> Iterator[Arrays]:
        for seed in range(1, INPUTS):
            asked.append(seed)
            moved = np.full(3, seed) if seed > 1 else np.zeros(3)
            yield {"late": moved, "still": np.full(3, np.nan)}

    first = {"late": np.zeros(3), "still": np.full(3, np.nan)}
    assert unmoved_outputs([first], further()) == {"still"}
    assert asked == [1, 2, 3]
    asked.clear()
    other = {"late": np.ones(3), "still": np.zeros(3)}
    assert unmoved_outputs([first, other], further()) == set()
    assert asked == []


def test_what_is_computed_from_the_elements_of_inputs_is_read_off_the_model() -> None:
    model = graph_text.flat(
        """(float[3] x) => (float[3] b, float[2] n) {
            a = Relu(x)
            s = Shape(a)
            t = Cast<to = 1>(s)
            c = Constant<value_floats = [1.0, 2.0]>()
            b = Add(a, x)
            n = Neg(c)
        }"""
    )
    assert moving_tensors(model) & {"x", "a", "b", "s", "t", "c", "n"} == {"x", "a", "b"}


@pytest.mark.parametrize(
    ("body", "by_weights"),
    [
        ("y = Mul(x, zero)", True),
        ("z = Mul(x, zero)  y = Add(z, w)", True),
        ("y = Pow(x, zero)", True),
        ("l = Sub(x, far)  y = Relu(l)", True),
        ("y = Sub(x, x)", False),
        ("z = Sub(x, x)  y = Add(z, w)", False),
        ("a = Abs(x)  n = Neg(a)  y = Relu(n)", False),
        ("m = Identity(x)  y = Sub(x, m)", False),
        ("a = Abs(x)  n = Neg(a)  y = Log(n)", False),  # no number for any weights
    ],
)
def test_an_output_is_silent_by_its_weights_or_by_its_architecture(
    body: str, *, by_weights: bool
) -> None:
    constants = {
        "zero": np.zeros(4, np.float32),
        "w": np.array([1, -2, 3, -4], np.float32),
        "far": np.array([4, 5, 6, 7], np.float32),
    }
    model = graph_text.flat(f"(float[4] x) => (float[4] y) {{ {body} }}", constants)
    drawn = [
        {"x": np.abs(np.random.default_rng(seed).standard_normal(4)).astype(np.float32) + 1}
        for seed in range(2)
    ]
    found = moved_with_other_weights(model, drawn, {"y"})
    assert found == ({"y"} if by_weights else set())


def test_other_weights_leave_shapes_as_they_are() -> None:
    constants = {"s": np.array([1, 2], np.float32), "w": np.ones(8, np.float32)}
    text = "(float[1, 4] x) => (float[1, 8] y) { r = Resize(x, , s)  y = Mul(r, w) }"
    model = graph_text.flat(text, constants)
    drawn = [{"x": np.full((1, 4), seed + 1, np.float32)} for seed in range(2)]
    assert moved_with_other_weights(model, drawn, {"y"}) == {"y"}


def test_other_weights_are_quite_others_but_for_sign_and_kind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[Arrays] = []

    class Model:
        """Says what it should be executed with."""

        def __init__(self, graph: FlatGraph, precision: Precision, inputs: Arrays) -> None:
            drawn.append(graph.constants)

        def outputs(self) -> Arrays:
            return {"y": np.zeros(1)}

    monkeypatch.setattr(unmoved, "DisturbedModel", Model)
    size = 20000
    constants = {
        "variance": np.full(size, 0.01, np.float32),
        "weights": np.tile(np.array([5, -5], np.float16), size // 2),
        "zeros": np.zeros(size, np.float32),
        "index": np.arange(3),
    }
    text = """(float[1] x) => (float[1] y) {
        a = Add(variance, weights)  b = Add(a, zeros)  c = Gather(b, index)  y = Add(x, c) }"""
    model = graph_text.flat(text, constants)
    assert moved_with_other_weights(model, [{}, {}], {"y"}) == set()
    first, again, second, _ = drawn  # twice, for two inputs each
    assert first is again
    for made in (first, second):
        growth = np.log(made["variance"] / 0.01)  # no logarithm: a variance stays positive
        assert np.median(np.abs(growth)) == pytest.approx(np.log(4), rel=0.05)
        assert abs(np.median(growth)) < 0.1
        assert np.std(made["weights"] / constants["weights"]) == pytest.approx(1.0, rel=0.02)
        assert np.std(made["zeros"]) == pytest.approx(1.0, rel=0.02)
        assert abs(np.mean(made["zeros"])) < 0.03
        assert np.array_equal(made["index"], constants["index"])
    assert not np.array_equal(first["zeros"], second["zeros"])
