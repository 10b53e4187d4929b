"""Several plans of one model: each run goes to the one that was written for its sizes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.devices.stream_device import Accountant
from support.networks import small_models
from support.plans.quick_search import compile_one

import wpk
from wpk.engine.profiles import Profiles
from wpk.errors import EngineError
from wpk.pipeline import optimize
from wpk.plan.plan_file import read_plan

MODEL = """agraph (float[B,S,6] x, float[6,5] w) => (float[B,S,5] y) {
    t = Softmax<axis=1>(x)  y = MatMul(t, w) }"""
LENGTHS = (4, 7)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    weights = {"w": np.random.default_rng(0).standard_normal((6, 5)).astype(np.float32)}
    return small_models.write(MODEL, tmp_path_factory.mktemp("profiles"), constants=weights)


@pytest.fixture(scope="module")
def plans(model: Path) -> list[Path]:
    """A plan for each length, with batches of 1 to 4."""
    written = []
    with pytest.MonkeyPatch.context() as patch:
        compile_one(patch)
        for length in LENGTHS:
            path = model.with_name(f"{length}.plan")
            shapes = {"x": [[n, length, 6] for n in (1, 2, 4)]}
            optimize(model, path, target="h200", search="static", check="off", shapes=shapes)
            written.append(path)
    return written


def _inputs(batch: int, length: int) -> dict[str, np.ndarray]:
    drawn = np.random.default_rng(batch).standard_normal((batch, length, 6))
    return {"x": drawn.astype(np.float32)}


def _opened(plans: list[Path], device: Accountant) -> Profiles:
    return Profiles([(path.name, read_plan(path)) for path in plans], device)


def test_each_run_goes_to_the_plan_of_its_sizes(model: Path, plans: list[Path]) -> None:
    with wpk.load_profiles(plans, device="cpu") as profiles:
        for batch in (1, 3):
            for length in LENGTHS:
                inputs = _inputs(batch, length)
                (right,) = small_models.expected(model, inputs).values()
                # Six products of numbers below 1 and about 1, and a softmax: a few roundings of each.
                np.testing.assert_allclose(profiles.run(inputs)["y"], right, rtol=0, atol=1e-6)


def test_going_from_one_to_another_captures_nothing_again(plans: list[Path]) -> None:
    device = Accountant()
    with _opened(plans, device) as profiles:
        for length in (*LENGTHS, *LENGTHS, *LENGTHS):
            profiles.run(_inputs(2, length))
        assert device.captured == len(LENGTHS)


def test_equal_weights_lie_on_the_device_once(plans: list[Path]) -> None:
    device = Accountant()
    alone = []
    for path in plans:
        with _opened([path], device) as profiles:
            alone.append(profiles.weight_bytes)
    with _opened(plans, device) as profiles:
        assert profiles.weight_bytes == max(alone)
        first, second = profiles.engines.values()
        first.close()
        profiles.run(_inputs(1, int(second.plan.inputs[0].shape[1])))  # its weights are still there
    assert device.held == set()


@pytest.mark.parametrize(("batch", "length"), [(5, 4), (1, 5)])
def test_sizes_that_no_plan_takes_are_refused_in_words(
    plans: list[Path], batch: int, length: int
) -> None:
    with _opened(plans, Accountant()) as profiles:
        words = rf"no profile takes 'x' \[{batch}, {length}, 6\]; there are 4.plan: 'x' \[B, 4, 6\], B 1 to 4"
        with pytest.raises(EngineError, match=words):
            profiles.run(_inputs(batch, length))
        with pytest.raises(EngineError, match="has no shape"):
            profiles.run({"x": [[1.0]]})
        with pytest.raises(EngineError, match=r"missing \['x'\]"):
            profiles.run({"z": np.ones(1)})


def test_the_plan_with_fewer_free_dimensions_is_asked_first(model: Path, plans: list[Path]) -> None:
    fixed = model.with_name("fixed.plan")
    with pytest.MonkeyPatch.context() as patch:
        compile_one(patch)
        options = {"shapes": {"x": (2, 4, 6)}, "target": "h200", "search": "static", "check": "off"}
        optimize(model, fixed, **options)
    with _opened([*plans, fixed], Accountant()) as profiles:
        assert profiles.engine_for(_inputs(2, 4)) is profiles.engines["fixed.plan"]
        assert profiles.engine_for(_inputs(3, 4)) is profiles.engines["4.plan"]


def test_plans_of_different_models_are_refused(plans: list[Path], small_plan: Path) -> None:
    with pytest.raises(EngineError, match="one of another model"):
        wpk.load_profiles([plans[0], small_plan], device="cpu")
    with pytest.raises(EngineError, match="no plan among the profiles"):
        wpk.load_profiles([])
