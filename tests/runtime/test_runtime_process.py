"""ONNX Runtime in a process of its own: what it gives, and what a bad model costs."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from threading import Timer

import numpy as np
import onnx
import pytest

from wpk.errors import EngineError, LaunchError
from wpk.runtime import RefusedInputsError, RuntimeProcess

pytestmark = pytest.mark.usefixtures("own_processes")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'

DIVIDED = "g (int64[n] x, int64[n] y) => (int64[n] z) { z = Div (x, y) }"
DOUBLED = "g (float[n] x) => (float[n] y, int64[1, m] i) { y = Add (x, x)  i = NonZero (x) }"
ENDLESS = """g (float[1] x) => (float[1] y) <int64 trips = {9223372036854775807}, bool go = {1}>
    { y = Loop (trips, go, x) <body = b (int64 i, bool c, float[1] v) => (bool d, float[1] w)
        { d = Identity (c)  w = Sin (v) }> }"""
HUGE = "g (int64[4] s) => (float[a, b, c, d] y) { y = ConstantOfShape (s) }"


@contextmanager
def running(*texts: str, limit_seconds: float = 60.0) -> Iterator[RuntimeProcess]:
    """A process that knows these models by their numbers."""
    parsed = [onnx.parser.parse_model(HEAD + text) for text in texts]
    models = {str(number): model.SerializeToString() for number, model in enumerate(parsed)}
    with closing(RuntimeProcess(models, limit_seconds=limit_seconds)) as process:
        yield process


def test_outputs_come_in_order_with_the_shapes_that_they_have() -> None:
    with running(DOUBLED) as process:
        for x in (np.array([1, 0, 3], np.float32), np.zeros(0, np.float32)):
            y, i = process.run("0", [x])
            np.testing.assert_array_equal(y, 2 * x)
            np.testing.assert_array_equal(i, [np.flatnonzero(x)])
            assert (y.dtype, i.dtype) == (np.float32, np.int64)


def test_16_bit_floats_are_converted_to_what_the_model_takes() -> None:
    with running(DOUBLED) as process:
        y, _ = process.run("0", [np.array([1.5, -2], np.float16)])
        np.testing.assert_array_equal(y, [3, -4])


def test_strided_arrays_are_read_as_they_are_seen() -> None:
    x = np.arange(12, dtype=np.float32).reshape(3, 4).T[1]
    with running(DOUBLED) as process:
        np.testing.assert_array_equal(process.run("0", [x])[0], 2 * x)


def test_results_stay_when_the_next_model_is_executed() -> None:
    with running(DOUBLED, DIVIDED) as process:
        y, _ = process.run("0", [np.ones(3, np.float32)])
        for _ in range(3):
            process.run("1", [np.full(3, 7), np.full(3, 2)])
        np.testing.assert_array_equal(y, [2, 2, 2])


def test_inputs_that_a_model_does_not_take_are_refused_and_the_process_goes_on() -> None:
    with running(DIVIDED) as process:
        with pytest.raises(RefusedInputsError, match="ONNX Runtime cannot execute its part"):
            process.run("0", [np.ones(3, np.int64), np.ones(4, np.int64)])
        np.testing.assert_array_equal(
            process.run("0", [np.full(3, 7), np.full(3, 2)])[0], [3, 3, 3]
        )


def test_a_death_costs_the_process_alone() -> None:
    with running(ENDLESS, DOUBLED) as process:
        process.run("1", [np.ones(1, np.float32)])
        child = process._child
        assert child is not None
        killer = Timer(1.0, child.kill)
        killer.start()
        with pytest.raises(LaunchError, match=r"process died in the execution \(status -9\)"):
            process.run("0", [np.ones(1, np.float32)])
        killer.join()
        assert process.run("1", [np.ones(1, np.float32)])[0] == 2


def test_what_does_not_end_is_ended() -> None:
    with running(ENDLESS, DOUBLED, limit_seconds=3.0) as process:
        process.run("1", [np.ones(1, np.float32)])
        with pytest.raises(LaunchError, match="did not end within 3 s"):
            process.run("0", [np.ones(1, np.float32)])
        assert process.run("1", [np.ones(1, np.float32)])[0] == 2


def test_more_memory_than_there_is_is_refused() -> None:
    with running(HUGE) as process:
        assert process.run("0", [np.array([1, 2, 1, 3])])[0].shape == (1, 2, 1, 3)
        with pytest.raises(LaunchError):
            process.run("0", [np.array([2**14, 2**14, 2**14, 4])])


def test_bytes_that_are_no_model_are_said_in_words() -> None:
    with (
        closing(RuntimeProcess({"0": b"\x08\x07no model"})) as process,
        pytest.raises(EngineError, match="ONNX Runtime does not take a part of the plan"),
    ):
        process.run("0", [])
