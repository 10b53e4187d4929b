"""Steps that the host drives, among others: what stands beside them, and what is said of their times."""

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.control_flow_models import BRANCHES, KEPT, MODELS
from support.networks.fallback_models import text_model

import wpk
from wpk.cli.bench import turn_sentences
from wpk.device import Timing
from wpk.engine import EngineTimes, fallback_seconds, random_inputs
from wpk.engine.memory_use import MemoryUse
from wpk.plan import PlanBundle
from wpk.trial import Regime

pytestmark = pytest.mark.usefixtures("one_cubin")


def planned(model: onnx.ModelProto, folder: Path) -> tuple[Path, PlanBundle]:
    """A model and its plan, unchecked."""
    onnx.save(model, folder / "m.onnx")
    paths = folder / "m.onnx", folder / "m.plan"
    return paths[0], wpk.optimize(
        *paths, target="h200", search="static", check="off", skip_passes=KEPT
    )


def test_a_neighbour_without_a_kernel_is_a_step_of_its_own(tmp_path: Path) -> None:
    text = BRANCHES.replace("(float[2, 3] y)", "(float[2, 3] z) <int64[3] n = {2, 1, 2}>").replace(
        "}> }", "}>  z = ReverseSequence<time_axis = 0, batch_axis = 1> (y, n) }"
    )
    model, bundle = planned(text_model(text), tmp_path)
    assert [bool(step.bodies) for step in bundle.plan.steps] == [True, False]
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    with wpk.load(tmp_path / "m.plan", device="cpu") as engine:
        for condition in (True, False):
            inputs = random_inputs(engine.plan, 4) | {"c": np.asarray(condition)}
            (right,) = session.run(["z"], inputs)
            np.testing.assert_allclose(engine.run(inputs)["z"], right, rtol=1e-5, atol=1e-5)


def test_times_are_told_with_the_number_of_turns(tmp_path: Path) -> None:
    planned(MODELS["counted"](), tmp_path)
    with wpk.load(tmp_path / "m.plan", device="cpu") as engine:
        assert engine.host_steps.turns == {"onnxruntime_0": 0}
        engine.run(random_inputs(engine.plan, 2))
        assert engine.host_steps.turns == {"onnxruntime_0": 9}
        ((_, seconds),) = fallback_seconds(engine, 2).items()
        turns = engine.host_steps.turns
    assert len(seconds) == 2
    timing = Timing((18e-6, 18e-6, 27e-6), Regime.WARM)
    times = EngineTimes(timing, (), {"onnxruntime_0": timing}, turns, MemoryUse(0, 0, 0, 0))
    assert turn_sentences(times) == ["onnxruntime_0 took 9 turns on these inputs, 2.00 µs each"]
