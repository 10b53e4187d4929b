"""A loaded plan: what it computes, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from support.plans.candidates import kernel

import wpk
from wpk.dtypes import DType
from wpk.emulator import Emulator
from wpk.engine import Engine, load, random_inputs
from wpk.errors import EngineError, PlanError
from wpk.execution import BoundLaunch
from wpk.plan.plan_file import read_plan


def reference(model: Path, x: np.ndarray) -> np.ndarray:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": x})[0])


@pytest.mark.parametrize("batch", [1, 2, 5])
def test_computes_what_the_model_computes_at_any_batch(
    small_plan: Path, small_model: Path, batch: int
) -> None:
    x = np.random.default_rng(batch).standard_normal((batch, 3, 9, 7), np.float32)
    with load(small_plan, "cpu") as engine:
        y = engine.run({"x": x})["y"]
        expected = reference(small_model, x)
        # fp16: 7 layers that each round to 11 bits; the outputs are probabilities up to 1.
        limit = 1e-6 if engine.plan.precision == "fp32" else 7 * 2.0**-11
    assert y.dtype == np.float32
    assert np.abs(y - expected).max() < limit


def test_the_package_offers_load(small_plan: Path) -> None:
    with wpk.load(small_plan, device="cpu") as engine:
        assert engine.run(random_inputs(engine.plan, 0))["y"].shape == (1, 5)


def test_a_batch_can_change_between_runs(small_plan: Path) -> None:
    with load(small_plan, "cpu") as engine:
        first = engine.run(random_inputs(engine.plan, 0))["y"]
        engine.run(random_inputs(engine.plan, 1, {"batch": 4}))
        again = engine.run(random_inputs(engine.plan, 0))["y"]
    assert (first == again).all()


def test_every_step_executes_its_own_kernels_and_nothing_else(small_plan: Path) -> None:
    launched: list[BoundLaunch] = []

    class Recorder(Emulator):
        def launch(self, launch: BoundLaunch) -> None:  # type: ignore[override]
            launched.append(launch)
            super().launch(launch)

    bundle = read_plan(small_plan)
    with Engine(bundle, Recorder()) as engine:
        engine.run(random_inputs(engine.plan, 0))
    planned = [launch.kernel for step in bundle.plan.steps for launch in step.launches]
    assert [launch.kernel for launch in launched] == planned


def test_inputs_need_not_be_contiguous(small_plan: Path) -> None:
    x = np.random.default_rng(0).standard_normal((7, 9, 3, 2), np.float32)
    with load(small_plan, "cpu") as engine:
        strided = engine.run({"x": x.T})["y"]
        plain = engine.run({"x": np.ascontiguousarray(x.T)})["y"]
    assert (strided == plain).all()


X = np.zeros((1, 3, 9, 7), np.float32)


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        ({}, r"missing \['x'\]"),
        ({"x": X, "z": X}, r"unknown \['z'\]"),
        ({"x": X.astype(np.float64)}, "has type float64, expected float32"),
        ({"x": X[0]}, r"shape \[3, 9, 7\], expected 'x' fp32\[batch, 3, 9, 7\]"),
        ({"x": X[..., :6]}, r"shape \[1, 3, 9, 6\]"),
        ({"x": X[:0]}, r"shape \[0, 3, 9, 7\]"),
    ],
)
def test_refuses_inputs_that_do_not_fit(
    small_plan: Path, inputs: dict[str, np.ndarray], reason: str
) -> None:
    with load(small_plan, "cpu") as engine, pytest.raises(EngineError, match=reason):
        engine.run(inputs)


def test_refuses_an_unknown_device(small_plan: Path) -> None:
    with pytest.raises(EngineError, match="unknown device 'tpu'"):
        load(small_plan, "tpu")


def test_refuses_kernels_that_are_not_those_of_this_installation(small_plan: Path) -> None:
    bundle = read_plan(small_plan)
    step = bundle.plan.steps[0]
    maker, configuration = step.candidate.maker.name, step.candidate.configuration
    newer = replace(step, candidate=kernel(maker, configuration, 99))
    unknown = replace(step, candidate=kernel("conv_magic", configuration))
    other = replace(step, launches=(replace(step.launches[0], block=(1, 1, 1)),))
    wrong = replace(step, candidate=replace(step.candidate, configuration=(("warp", 1),)))
    for changed, reason in [
        (newer, r"steps\[0\].candidate.maker.version"),
        (unknown, r"steps\[0\].candidate.maker.name: 'conv_magic' is unknown"),
        (wrong, r"steps\[0\].candidate.configuration"),
        (other, r"steps\[0\].launches: operator .* installed headers give"),
    ]:
        plan = replace(bundle.plan, steps=(changed, *bundle.plan.steps[1:]))
        with pytest.raises(PlanError, match=reason):
            Engine(replace(bundle, plan=plan), Emulator())


def test_random_integers_stay_within_their_limit(small_plan: Path) -> None:
    plan = read_plan(small_plan).plan
    port = replace(plan.inputs[0], dtype=type(plan.inputs[0].dtype)("int64"), draw_below=7)
    drawn = random_inputs(replace(plan, inputs=(port,)), 0)["x"]
    assert (drawn.min(), drawn.max()) == (0, 6)


def test_integers_that_something_is_divided_by_are_drawn_without_zero(small_plan: Path) -> None:
    plan = read_plan(small_plan).plan
    for dtype, low, high in ((DType.INT8, -128, 127), (DType.UINT8, 0, 255)):
        port = replace(plan.inputs[0], dtype=dtype, shape=(10000,))
        drawn = random_inputs(replace(plan, inputs=(port,)), 0)["x"]
        assert (drawn.min(), drawn.max()) == (low, high)
        assert (drawn == 0).any()
        divisor = replace(port, divides=True)
        assert (random_inputs(replace(plan, inputs=(divisor,)), 0)["x"] != 0).all()
