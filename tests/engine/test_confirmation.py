"""The whole engine has the last word."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from wpk.device.rotation import Region
from wpk.device.timing import Patience, Timing
from wpk.emulator.child import EmulatorProcess
from wpk.engine.confirmation import ROUNDS, confirmed
from wpk.engine.plan import PlanBundle
from wpk.engine.plan_file import read_plan, write_plan
from wpk.execution import BoundLaunch
from wpk.trial import Regime


class DummyGpu(EmulatorProcess):
    """Executes on the emulator; measures the given times, in turns."""

    def __init__(self, times: Sequence[tuple[float, ...]]) -> None:
        super().__init__(time_limit_seconds=20.0, threads=1)
        self._times = [*times] * ROUNDS

    def measure(
        self,
        launches: Sequence[BoundLaunch],
        regions: Sequence[Region],
        regime: Regime,
        patience: Patience,
    ) -> Timing:
        del launches, regions, patience
        return Timing(self._times.pop(0), regime)


@pytest.fixture
def plans(small_plan: Path) -> tuple[PlanBundle, PlanBundle]:
    """A static and a tuned plan, told apart by their model's name."""
    static = read_plan(small_plan)
    origin = replace(static.plan.provenance, model="tuned.onnx")
    return static, replace(static, plan=replace(static.plan, provenance=origin))


@pytest.fixture
def confirm(plans: tuple[PlanBundle, PlanBundle]) -> Callable[..., PlanBundle]:
    def run(*times: tuple[float, ...]) -> PlanBundle:
        return confirmed(*plans, open_gpu=lambda: DummyGpu(times))  # type: ignore[arg-type,return-value]

    return run


@pytest.mark.parametrize(
    ("tuned", "kept"),
    [((1.0, 1.1), True), ((2.0, 2.4), True), ((2.3, 2.4), False)],
    ids=["faster", "not slower beyond noise", "slower"],
)
def test_the_faster_engine_is_kept(
    confirm: Callable[..., PlanBundle], tuned: tuple[float, ...], kept: bool, tmp_path: Path
) -> None:
    chosen = confirm((2.0, 2.2), tuned)
    measured = chosen.plan.measurement
    assert measured is not None
    assert measured.chosen == ("mixed" if kept else "models")
    assert [each.name for each in measured.variants] == ["models", "mixed"]
    assert measured.variants[0].median_seconds == 2.0
    assert measured.median_seconds == (min(tuned) if kept else 2.0)
    assert (chosen.plan.provenance.model == "tuned.onnx") is kept
    write_plan(tmp_path / "confirmed.plan", chosen)
    assert read_plan(tmp_path / "confirmed.plan").plan == chosen.plan
