"""Runs on arrays that lie on the device: nothing is copied, and the numbers are right."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.devices.device_arrays import Dlpack, Exchanged, Interface, aligned, x_of, y_of
from support.devices.stream_device import Streams

from wpk.engine import Engine
from wpk.pipeline import optimize
from wpk.plan.plan_file import read_plan

SHARED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[batch, 8] x) => (float[batch, 8] y, float[batch, 2, 4] z)
<int64[3] shape = {-1, 2, 4}>
{ y = Relu(x)  z = Reshape(y, shape) }
"""


def expected(engine: Engine, x: np.ndarray) -> np.ndarray:
    return engine.run({"x": x})["y"]


@pytest.mark.parametrize("kind", [Interface, Dlpack, Exchanged])
def test_arrays_are_read_and_written_where_they_lie(
    engine: Engine, device: Streams, kind: type
) -> None:
    x, y = x_of(engine), y_of()
    given = kind(y)
    outputs = engine.run({"x": kind(x)}, outputs={"y": given}, stream=5)
    assert outputs == {"y": given}
    assert not [entry for entry in device.log if entry[0] == "copy"]
    assert (y == expected(engine, x)).all()


def test_uploaded_inputs_run_without_another_library(engine: Engine) -> None:
    x = x_of(engine)
    uploaded = engine.upload({"x": x})
    assert (engine.run(uploaded)["y"].numpy() == expected(engine, x)).all()


def test_results_are_the_engines_and_are_overwritten(engine: Engine) -> None:
    first, second = x_of(engine), x_of(engine) * 2
    y = engine.run({"x": Interface(first)})["y"]
    assert (y.numpy() == expected(engine, first)).all()
    assert y.__cuda_array_interface__["stream"] == engine.device.stream
    again = engine.run({"x": Interface(second)}, stream=5)["y"]
    assert again is y
    assert y.__cuda_array_interface__["stream"] == 5
    assert (y.numpy() == expected(engine, second)).all()


def test_a_run_again_is_the_same_run_whatever_came_between(engine: Engine, device: Streams) -> None:
    xs = [x_of(engine, batch) for batch in (3, 3, 6)]
    xs[1] *= 2
    wanted = [expected(engine, x) for x in xs]  # by runs on the host, in other bindings
    ours = Interface(y_of())
    for index, own in [(0, 0), (0, 0), (1, 0), (0, 1), (0, 0), (2, 1), (1, 1), (1, 0), (2, 1)]:
        outputs = None if own else {"y": ours}
        y = engine.run({"x": Interface(xs[index])}, outputs=outputs)["y"]
        assert ((y.numpy() if own else ours.array) == wanted[index]).all()
        assert (engine.run({"x": xs[index]})["y"] == wanted[index]).all()


def test_sizes_take_turns_on_one_arena(engine: Engine) -> None:
    for batch in (1, 5, 2, 7, 1):
        x, y = x_of(engine, batch), y_of(batch)
        engine.run({"x": Interface(x)}, outputs={"y": Interface(y)})
        assert (y == expected(engine, x)).all()


def test_outputs_that_share_memory_inside_are_copied_on_the_stream(
    device: Streams, tmp_path: Path
) -> None:
    model, plan = tmp_path / "shared.onnx", tmp_path / "shared.plan"
    onnx.save(onnx.parser.parse_model(SHARED), model)
    optimize(model, plan, target="h200", check="off")
    x = aligned(np.random.default_rng(0).standard_normal((3, 8), np.float32))
    y, z = aligned(np.empty_like(x)), aligned(np.empty((3, 2, 4), np.float32))
    with Engine(read_plan(plan), device) as engine:
        engine.run({"x": Interface(x)}, outputs={"y": Interface(y), "z": Interface(z)}, stream=5)
    assert (y == np.maximum(x, 0)).all()
    assert (z.ravel() == y.ravel()).all()
    assert ("copy", 5) in device.log


def test_an_output_that_is_an_input_is_copied_and_nothing_is_computed(
    device: Streams, tmp_path: Path
) -> None:
    model, plan = tmp_path / "through.onnx", tmp_path / "through.plan"
    text = SHARED.replace("float[batch, 2, 4] z)", "float[batch, 8] x)")
    onnx.save(onnx.parser.parse_model(text.replace("z = Reshape(y, shape)", "")), model)
    bundle = optimize(model, plan, target="h200")
    assert [step.operator.outputs for step in bundle.plan.steps] == [("y",)]
    assert not [check for check in bundle.plan.checks if check.failed]
    x = aligned(np.random.default_rng(0).standard_normal((3, 8), np.float32))
    y, same = aligned(np.empty_like(x)), aligned(np.empty_like(x))
    with Engine(read_plan(plan), device) as engine:
        given = {"y": Interface(y), "x": Interface(same)}
        engine.run({"x": Interface(x)}, outputs=given, stream=5)
        on_host = engine.run({"x": x})
        own = engine.run({"x": Interface(x)})
        assert (own["x"].numpy() == x).all()
    assert (y == np.maximum(x, 0)).all()
    assert (same == x).all()
    assert (on_host["x"] == x).all()


def test_threads_that_share_an_engine_take_turns(engine: Engine) -> None:
    inputs = [x_of(engine, batch) for batch in (1, 2, 3, 4)]
    wanted = [expected(engine, x) for x in inputs]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(5):
            if not (engine.run({"x": inputs[index]})["y"] == wanted[index]).all():
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
