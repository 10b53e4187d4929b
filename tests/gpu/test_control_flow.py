"""Control flow whose bodies are engines, on a GPU: each way gives what ONNX Runtime gives, whatever was there before."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.networks.control_flow_models import DRAWN, KEPT, MODELS, drawn
from support.networks.scripted_models import TEXTS, WAYS, drawn_way, scripted_model

import wpk
from wpk.device import CudaDevice
from wpk.engine import Engine, time_engine, turns_run
from wpk.errors import VerificationError
from wpk.plan.plan_file import read_plan

pytestmark = pytest.mark.gpu

_POISON = 0xFF  # NaN in every floating type, -1 in integers


def planned(model: onnx.ModelProto, folder: Path, **options: Any) -> tuple[Path, Path]:
    """A model and its plan, unchecked."""
    path, plan = folder / "m.onnx", folder / "m.plan"
    onnx.save(model, path)
    wpk.optimize(path, plan, target="h200", search="static", check="off", **options)
    return path, plan


def require_right(
    engine: Engine, device: CudaDevice, model: Path, ways: Iterable[Mapping[str, Any]]
) -> None:
    """Check runs on arrays of the machine and of the GPU, on two streams, over memory that is poisoned before each."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    for inputs in ways:
        expected = dict(zip(names, session.run(names, dict(inputs)), strict=True))
        for execute in (engine.run, _on_the_gpu(engine, None), _on_the_gpu(engine, device.stream)):
            for step in engine.host_steps._driven.values():
                for place, size in step.cells._places.values():
                    device.fill(place, size, _POISON)
            given = execute(inputs)
            assert given.keys() == expected.keys()
            for name, array in expected.items():
                assert (given[name].dtype, given[name].shape) == (array.dtype, array.shape), name
                if array.dtype == np.int64:
                    np.testing.assert_array_equal(given[name], array)
                else:
                    np.testing.assert_allclose(given[name], array, rtol=1e-4, atol=1e-5)


def _on_the_gpu(engine: Engine, stream: int | None) -> Callable[[Mapping[str, Any]], Any]:
    """A run on arrays that lie on the GPU, asynchronous but for what the host decides."""

    def execute(inputs: Mapping[str, Any]) -> dict[str, Any]:
        outputs = engine.run(engine.upload(inputs), stream=stream)
        engine.synchronize()
        return {name: array.numpy() for name, array in outputs.items()}

    return execute


@pytest.mark.parametrize("name", MODELS)
def test_every_way_gives_what_onnxruntime_gives(
    cuda: CudaDevice, name: str, tmp_path: Path
) -> None:
    model, plan = planned(MODELS[name](), tmp_path, skip_passes=KEPT)
    with Engine(read_plan(plan), cuda) as engine:
        ways = [drawn(engine.plan, seed, way) for seed, way in enumerate(DRAWN[name] * 3)]
        require_right(engine, cuda, model, ways)


@pytest.mark.parametrize("name", TEXTS)
def test_loops_of_exports_are_right_at_every_length(
    cuda: CudaDevice, name: str, tmp_path: Path
) -> None:
    model, plan = planned(scripted_model(name), tmp_path)
    with Engine(read_plan(plan), cuda) as engine:
        require_right(engine, cuda, model, [drawn_way(name, *way) for way in WAYS[name] * 2])


@pytest.mark.parametrize("name", ["gated", "both ways"])
def test_bodies_in_fp16_pass_all_checks(name: str, tmp_path: Path) -> None:
    model, plan = planned(scripted_model(name), tmp_path, precision="fp16")
    given = [drawn_way(name, *way) for way in WAYS[name]]
    assert wpk.verify(plan, model, device="gpu", check="quick", inputs=given).passed


def test_a_turn_too_few_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, plan = planned(scripted_model("gated"), tmp_path)
    given = [drawn_way("gated", 1, 7)]
    assert wpk.verify(plan, model, device="gpu", check="quick", inputs=given).passed
    count = turns_run.count_of
    monkeypatch.setattr(turns_run, "count_of", lambda *of: count(*of) - 1)
    with pytest.raises(VerificationError, match=r"disagree|place for each"):
        wpk.verify(plan, model, device="gpu", check="quick", inputs=given)


@pytest.mark.timed
@pytest.mark.parametrize("name", ["counted", "loop"])
def test_times_say_how_many_turns_they_are_of(
    cuda: CudaDevice, name: str, tmp_path: Path, record: Callable[[str, object], None]
) -> None:
    _, plan = planned(MODELS[name](), tmp_path, skip_passes=KEPT)
    times = time_engine(read_plan(plan), cuda)
    ((operator, turns),) = times.turns.items()
    alone = times.operators[operator].median
    assert turns == 9 if name == "counted" else turns < 6
    assert 0 < alone < 1.5 * times.engine.median
    record(f"control_flow.{name}.us_a_turn", alone * 1e6 / max(1, turns))
