"""Arrays that were computed before are not computed again, and are forgotten with what they were computed from."""

import gc
import weakref

import numpy as np
import onnx_graphsurgeon as gs
from numpy.typing import NDArray

from wpk.graph_passes.core import derived as module
from wpk.graph_passes.core.derived import derived
from wpk.graph_passes.core.exact import (
    ExactConstant,
    converted_constant,
    derived_constant,
    moved_constant,
    rounded_constant,
)

Array = NDArray[np.float64]


class Twice:
    """Doubles an array, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def of(self, what: object, array: Array) -> Array:
        def make() -> Array:
            self.calls += 1
            return 2 * array

        return derived(what, (array,), make)  # type: ignore[arg-type]


def test_the_same_of_the_same_array_is_computed_once() -> None:
    twice, array = Twice(), np.arange(4.0)
    first = twice.of("twice", array)
    assert twice.of("twice", array) is first
    assert twice.calls == 1


def test_another_array_of_equal_numbers_or_another_question_is_computed_anew() -> None:
    twice, array = Twice(), np.arange(4.0)
    twice.of("twice", array)
    twice.of("twice", array.copy())
    twice.of(("twice", True), array)
    assert twice.calls == 3


def test_what_was_computed_goes_with_its_source() -> None:
    array = np.arange(4.0)
    kept = weakref.ref(Twice().of("goes", array))
    gc.collect()  # what others left
    entries = len(module._entries)
    assert kept() is not None
    del array
    gc.collect()
    assert kept() is None
    assert len(module._entries) == entries - 1


def test_what_holds_its_source_is_not_kept() -> None:
    def viewed() -> weakref.ref[Array]:
        array = np.arange(4.0)
        derived("view", (array,), lambda: array[1:])
        return weakref.ref(array)

    gone = viewed()
    gc.collect()
    assert gone() is None


def test_an_address_that_is_used_again_is_not_taken_for_the_array_before() -> None:
    for number in range(50):
        array = np.full(8, float(number))
        assert derived("first", (array,), lambda array=array: float(array[0])) == number
        del array


def test_constants_are_rounded_and_moved_once() -> None:
    exact = np.random.default_rng(0).standard_normal((4, 6))
    first, second = (rounded_constant(name, exact, np.float32) for name in "ab")
    assert isinstance(first, ExactConstant)
    assert first.values is second.values
    assert first.name != second.name
    np.testing.assert_array_equal(first.values, exact.astype(np.float32))
    halves = [converted_constant("h", each, np.float16) for each in (first, second)]
    assert halves[0].values is halves[1].values
    np.testing.assert_array_equal(halves[0].values, exact.astype(np.float16))
    assert halves[0].exact is exact
    turned = [moved_constant("t", first, np.transpose) for _ in range(2)]
    other = moved_constant("t", first, lambda array: array[:, ::-1])
    assert turned[0].values is turned[1].values
    np.testing.assert_array_equal(turned[0].values, exact.T.astype(np.float32))
    np.testing.assert_array_equal(other.values, exact[:, ::-1].astype(np.float32))
    np.testing.assert_array_equal(turned[0].exact, exact.T)


def test_what_a_constant_is_computed_of_is_kept_with_its_type() -> None:
    source = np.random.default_rng(1).standard_normal(8)

    def thirds(dtype: type) -> gs.Constant:
        return derived_constant("c", "thirds", (source,), lambda: source / 3, dtype)

    wide, narrow = thirds(np.float64), thirds(np.float16)
    assert not isinstance(wide, ExactConstant)
    assert thirds(np.float16).values is narrow.values
    np.testing.assert_array_equal(narrow.values, (source / 3).astype(np.float16))
    np.testing.assert_array_equal(narrow.exact, source / 3)
