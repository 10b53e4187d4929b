"""What Loops collect and Ifs give when only a run decides how long it is; sizes that a run is free to choose."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from support.devices.stream_device import Streams
from support.networks.control_flow_models import COLLECT, COUNTED, FREE_LOOP, KEPT, drawn
from support.networks.fallback_models import text_model

import wpk
from wpk.dtypes import Precision
from wpk.engine import Engine, collection, turns_run
from wpk.engine.collection import Collection
from wpk.errors import EngineError, LaunchError, VerificationError
from wpk.lowering.model import lower_model
from wpk.plan import PlanBundle
from wpk.plan.control import CONTROL
from wpk.plan.plan_file import read_plan
from wpk.runtime import RUNTIME

pytestmark = pytest.mark.usefixtures("one_finalist")


def planned(text: str, folder: Path, **options: Any) -> tuple[Path, PlanBundle]:
    """A model and its plan, unchecked and not unrolled."""
    onnx.save(text_model(text), folder / "m.onnx")
    how = {"target": "h200", "search": "static", "check": "off", "skip_passes": KEPT}
    return folder / "m.onnx", wpk.optimize(folder / "m.onnx", folder / "m.plan", **(how | options))


def right(model: Path, inputs: dict[str, Any]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.fixture(name="collecting", scope="module")
def fixture_collecting(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A Loop that collects until its condition ends it, and its plan."""
    folder = tmp_path_factory.mktemp("collecting")
    model, _ = planned(COLLECT, folder)
    return model, folder / "m.plan"


def ways(seed: int, stop: float) -> dict[str, Any]:
    x = np.random.default_rng(seed).standard_normal((2, 5)).astype(np.float32)
    return {"x": x, "stop": np.asarray(stop, np.float32)}


def test_memory_grows_is_kept_and_nothing_of_earlier_runs_is_seen(
    collecting: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = collecting
    monkeypatch.setattr(collection, "FIRST_PLACES", 3)
    device = Streams()
    with Engine(read_plan(path), device) as engine:
        (ready,) = engine.host_steps._driven.values()
        seen = []
        for seed, stop in enumerate((50.0, 1e9, 0.0, 70.0, 1e9)):
            for place, size in ready.cells._places.values():
                device.fill(place, size, 0xFF)  # NaN
            inputs = ways(seed, stop)
            given, expected = engine.run(inputs), right(model, inputs)
            for name, array in expected.items():
                assert given[name].shape == array.shape
                np.testing.assert_allclose(given[name], array, rtol=1e-5, atol=1e-5)
            seen.append((len(given["s"]), ready.cells.bytes))
        turns, held = (list(each) for each in zip(*seen, strict=True))
        assert turns[2] == 1
        assert turns[1] == turns[4] == 20
        assert min(turns[0], turns[3]) > 3
        assert held[0] < held[1] == held[2] == held[3] == held[4]
    assert not device.held


def _short(place: Callable[..., int]) -> Callable[..., int]:
    """Each part in the place of the one in front."""
    return lambda each, turn: place(each, max(0, turn - 1))


@pytest.mark.parametrize("fault", ["a place too early", "a part too many", "a turn too few"])
def test_what_is_collected_wrongly_is_found(
    collecting: tuple[Path, Path], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, path = collecting
    given = [ways(3, 60.0)]
    if fault == "a place too early":
        monkeypatch.setattr(Collection, "place", _short(Collection.place))
    elif fault == "a part too many":
        whole = turns_run.TurnsRun._collected
        monkeypatch.setattr(
            turns_run.TurnsRun, "_collected", lambda run, c, t, turn: whole(run, c, t, turn + 1)
        )
    else:
        monkeypatch.setattr(turns_run, "count_of", lambda *_: 2)
    with pytest.raises(VerificationError, match=r"disagree|shape"):
        wpk.verify(path, model, device="cpu", check="quick", inputs=given)


def test_what_is_right_passes(collecting: tuple[Path, Path]) -> None:
    model, path = collecting
    found = wpk.verify(path, model, device="cpu", check="quick", inputs=[ways(3, 60.0)])
    assert found.passed


def test_onnxruntime_reads_what_has_no_place_in_memory(tmp_path: Path) -> None:
    text = COLLECT.replace("float[q] s)\n", "float[q] e)\n").replace(
        "y = Neg (y0) }", "y = Neg (y0)  e = Sqrt (s) }"
    )
    model, bundle = planned(text, tmp_path)
    makers = [s.candidate.maker.name for s in bundle.plan.steps if s.fallback is not None]
    assert makers == [CONTROL.maker.name, RUNTIME]
    with Engine(bundle, Streams()) as engine:
        inputs = ways(5, 25.0)
        np.testing.assert_allclose(
            engine.run(inputs)["e"], right(model, inputs)["e"], rtol=1e-5, atol=1e-5
        )


def test_a_kernel_reads_what_has_a_part_of_each_of_a_constant_number_of_turns(
    tmp_path: Path,
) -> None:
    _, bundle = planned(COUNTED, tmp_path, fallback="off")
    assert not bundle.plan.kept_outputs
    last = bundle.plan.steps[-1]
    assert last.launches
    assert last.operator.outputs == ("z",)


def test_a_condition_that_may_end_it_leaves_the_number_of_turns_open(tmp_path: Path) -> None:
    text = COUNTED.replace(
        "d = Identity (k)", "five = Constant<value_int = 5> ()  d = Less (i, five)"
    )
    _, bundle = planned(text.replace("float[9, 2, 5] z", "float[r, 2, 5] z"), tmp_path)
    assert [each.name for each in bundle.plan.kept_outputs] == ["z"]


def test_other_turns_than_an_output_has_places_for_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, bundle = planned(COUNTED, tmp_path)
    with Engine(bundle, Streams()) as engine:
        for turns in (8, 10):
            monkeypatch.setattr(turns_run, "count_of", lambda *_, turns=turns: turns)
            with pytest.raises(LaunchError, match="its outputs have a place for each of 9"):
                engine.run({"x": np.ones((2, 5), np.float32)})


def test_bodies_have_the_sizes_of_the_model_around_them(tmp_path: Path) -> None:
    shapes = {"x": [[2, 3], [4, 3], [9, 3]]}
    model, bundle = planned(FREE_LOOP, tmp_path, shapes=shapes)
    (body,) = bundle.bodies.values()
    assert (body.plan.free, body.plan.limits) == ({"n": 4}, {"n": (2, 9)})
    found = wpk.verify(tmp_path / "m.plan", model, device="cpu", check="quick")
    assert any("body 1 of" in check.name for check in found.checks.whole)
    with Engine(bundle, Streams()) as engine:
        for n in (2, 9, 5):
            inputs = drawn(engine.plan, n, {"m": 3, "n": n})
            np.testing.assert_allclose(
                engine.run(inputs)["z"], right(model, inputs)["z"], rtol=1e-5, atol=1e-5
            )
        with pytest.raises(EngineError, match="'n' has the size 10"):
            engine.run(drawn(engine.plan, 1, {"m": 3, "n": 10}))


FEW = """g (float[n, 3] x, bool c) => (float[n, 3] y)
    <float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, int64[1] zero = {0}>
    { y = If (c) <then_branch = t () => (float[n, 3] p)
        { m = Shape<start = 0, end = 1> (x)  u = Slice (w, zero, m)  p = Add (x, u) },
        else_branch = e () => (float[n, 3] q) { q = Neg (x) }> }"""
"""A branch that takes four rows at most, in a model that takes any number."""


def test_a_body_that_takes_fewer_sizes_than_the_model_stays_with_onnxruntime(
    tmp_path: Path,
) -> None:
    onnx.save(text_model(FEW), tmp_path / "m.onnx")
    lowered = lower_model(tmp_path / "m.onnx", {}, Precision.FP32, fallback=True)
    (note,) = [each.note for each in lowered.program.operators if each.note]
    assert "a body takes sizes of 'n' from 1 to 4" in note
    within = {"x": [[1, 3], [2, 3], [4, 3]]}
    assert lower_model(tmp_path / "m.onnx", within, Precision.FP32, fallback=True).bodies
