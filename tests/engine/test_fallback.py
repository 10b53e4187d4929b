"""Steps that ONNX Runtime executes, from the model to numbers, on the CPU and on a device with streams."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.devices.stream_device import Streams
from support.networks.fallback_models import LEFT_ALONE, MODELS, text_model
from support.networks.right_outputs import right

import wpk
from wpk.engine import Engine, random_inputs
from wpk.errors import LaunchError, UnsupportedError
from wpk.plan import Outcome, Plan
from wpk.plan.plan_file import read_plan
from wpk.problems import Fallback
from wpk.problems.signs import TIMES

pytestmark = pytest.mark.usefixtures("one_cubin")


def written(name: str, folder: Path, **options: Any) -> tuple[Path, Path]:
    model, plan = folder / f"{name}.onnx", folder / f"{name}.plan"
    onnx.save(MODELS[name](), model)
    wpk.optimize(model, plan, target="h200", search="static", skip_passes=LEFT_ALONE, **options)
    return model, plan


def require_equal(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    assert given.keys() == expected.keys()
    for name, array in expected.items():
        assert (given[name].dtype, given[name].shape) == (array.dtype, array.shape), name
        # Sums of some ten numbers around 1 in fp32, in another order.
        np.testing.assert_allclose(given[name], array, rtol=2e-6, atol=2e-6)


def steps(plan: Plan) -> list[Fallback]:
    return [each.fallback for each in plan.steps if each.fallback is not None]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_with_nodes_that_have_no_kernel_runs(name: str, tmp_path: Path) -> None:
    model, path = written(name, tmp_path, check="quick")
    with wpk.load(path, device="cpu") as engine:
        assert steps(engine.plan)
        for step in engine.plan.steps:
            alone = step.fallback is not None and "LSTM" in step.fallback.operators
            expected = Outcome.INCONCLUSIVE if alone else Outcome.OK
            assert {check.outcome for check in step.evidence.checks} == {expected}
        for dims in ({}, {"n": 3} if engine.plan.free else {}):
            inputs = random_inputs(engine.plan, 7, dims)
            require_equal(engine.run(inputs), right(model, inputs))


def test_what_has_a_kernel_keeps_it(tmp_path: Path) -> None:
    _, path = written("lstm", tmp_path, check="off")
    plan = read_plan(path).plan
    assert [step.operators for step in steps(plan)] == [("LSTM",), ("LSTM",)]
    kernels = [each.operator.problem.words() for each in plan.steps if each.launches]
    joined = [f"copy 14{TIMES}5"] * 2 + ["copy 10"] * 2  # what both directions give, side by side
    assert sorted(kernels) == sorted([*joined, "relu(a) 140"])


def test_neighbours_are_one_step_and_a_kernel_between_them_makes_two(tmp_path: Path) -> None:
    _, path = written("nonzero", tmp_path, check="off")
    plan = read_plan(path).plan
    assert [step.operators for step in steps(plan)] == [
        ("NonZero", "Transpose", "GatherND", "Relu")
    ]
    assert [(each.name, each.dtype) for each in plan.kept_outputs] == [("y", "fp32")]
    _, path = written("between", tmp_path, check="off")
    assert [step.operators for step in steps(read_plan(path).plan)] == [
        ("ReverseSequence",),
        ("ReverseSequence",),
    ]


def test_boxes_are_selected_by_a_kernel_and_only_cut_by_onnxruntime(tmp_path: Path) -> None:
    _, path = written("nms", tmp_path, check="off")
    plan = read_plan(path).plan
    words = [step.operator.problem.words() for step in plan.steps]
    assert "select 3 of 8 boxes for 2 classes" in words
    assert [step.operators for step in steps(plan)] == [("Compress",)]


def test_without_fallback_the_model_is_refused_with_all_reasons(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as error:
        written("between", tmp_path, fallback="off")
    assert "ReverseSequence_0" in error.value.what
    assert "ReverseSequence_2" in error.value.what
    assert not (tmp_path / "between.plan").exists()


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_16_bits_go_in_and_out_where_onnxruntime_computes_in_fp32(
    precision: str, tmp_path: Path
) -> None:
    model, path = written("lstm", tmp_path, precision=precision, check="quick")
    with wpk.load(path, device="cpu") as engine:
        inputs = random_inputs(engine.plan, 1)
        given, expected = engine.run(inputs), right(model, inputs)
    # Inputs and states are rounded, and an LSTM's gates damp that: some units of roundoff.
    unit = {"fp16": 2.0**-11, "bf16": 2.0**-8}[precision]
    for name, array in expected.items():
        np.testing.assert_allclose(given[name], array, rtol=0, atol=8 * unit)


def test_on_a_device_with_streams_graphs_stand_around_the_step(tmp_path: Path) -> None:
    model, path = written("between", tmp_path, check="off")
    device = Streams()
    with Engine(read_plan(path), device) as engine:
        inputs = random_inputs(engine.plan, 3)
        require_equal(engine.run(inputs), right(model, inputs))
        # ReverseSequence | Relu | ReverseSequence | Add: a graph for each of the two kernels.
        assert device.captured == 2
        arrays = engine.upload(inputs)
        device.log.clear()
        output = engine.run(arrays, stream=77)["y"]
        asked = [
            each for each in device.log if each in (("record", 77), ("wait", 0), ("replay", 77))
        ]
        expected = right(model, inputs)["y"]
        given = device.read(output.address, output.nbytes).view(np.float32)
        np.testing.assert_allclose(given.reshape(expected.shape), expected, rtol=2e-6, atol=2e-6)
    # Before each step the caller's stream is waited for; the last mark is the run's own.
    step, graph = [("record", 77), ("wait", 0)], [("replay", 77)]
    assert asked == [*step, *graph, *step, *graph, ("record", 77)]


def test_outputs_of_any_shape_are_given_on_the_gpu(tmp_path: Path) -> None:
    model, path = written("nonzero", tmp_path, check="off")
    with Engine(read_plan(path), Streams()) as engine:
        for seed in (1, 2, 3):
            inputs = random_inputs(engine.plan, seed)
            outputs = engine.run(engine.upload(inputs))
            expected = right(model, inputs)["y"]
            assert outputs["y"].shape == expected.shape
            given = engine.device.read(outputs["y"].address, expected.nbytes).view(np.float32)
            np.testing.assert_allclose(given, expected, rtol=2e-6)


def test_what_onnxruntime_cannot_execute_on_these_inputs_is_said_in_words(tmp_path: Path) -> None:
    text = """g (float[4, 2] x, int64[2] n) => (float[4, 2] y)
        { y = ReverseSequence<time_axis = 0, batch_axis = 1> (x, n) }"""
    model, path = tmp_path / "gather.onnx", tmp_path / "gather.plan"
    onnx.save(text_model(text), model)
    wpk.optimize(
        *(model, path),
        target="h200",
        search="static",
        check="off",
        skip_passes=LEFT_ALONE,
    )
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    with wpk.load(path, device="cpu") as engine:
        with pytest.raises(LaunchError, match=r"cannot execute its part .* on these inputs"):
            engine.run({"x": x, "n": np.array([1, 9])})
        y = engine.run({"x": x, "n": np.array([1, 4])})["y"]
        np.testing.assert_array_equal(y, np.stack([x[:, 0], x[::-1, 1]], axis=1))
