"""Candidates become trials: only what is right is timed. The emulator stands in for the GPU."""

from __future__ import annotations

from collections.abc import Sequence

import faulty_kernels
import pytest
from faulty_kernels import AFTER, Kit

from wpk.device.rotation import Region
from wpk.device.timing import Patience, Timing
from wpk.emulator.child import EmulatorProcess
from wpk.emulator.mode import CHECKING
from wpk.engine.trials import TrialRunner
from wpk.execution import BoundLaunch, Pointer
from wpk.trial import Regime, Status


class DummyGpu(EmulatorProcess):
    """Executes on the emulator with its checks, and measures what it is told."""

    opened = 0

    def __init__(self) -> None:
        super().__init__(CHECKING, time_limit_seconds=20.0, threads=1)
        DummyGpu.opened += 1

    @property
    def is_alive(self) -> bool:
        return self._child.poll() is None

    def measure(
        self,
        launches: Sequence[BoundLaunch],
        regions: Sequence[Region],
        regime: Regime,
        patience: Patience,
    ) -> Timing:
        del patience
        for launch in launches:
            for each in launch.arguments:
                if isinstance(each, Pointer):
                    assert any(r.address <= each.address < r.address + r.size for r in regions)
        return Timing((1e-6, 2e-6, 3e-6), regime)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return faulty_kernels.make_kit(tmp_path_factory.mktemp("kit"))


@pytest.fixture
def runner(kit: Kit) -> TrialRunner:
    DummyGpu.opened = 0
    return TrialRunner(kit.cases(), Regime.WARM, open_gpu=DummyGpu)  # type: ignore[arg-type]


def test_a_right_candidate_is_timed(kit: Kit, runner: TrialRunner) -> None:
    with runner:
        trials = [runner.trial(kit.good) for _ in range(2)]
    assert [trial.status for trial in trials] == [Status.OK] * 2
    assert trials[0].cost == 2e-6
    assert trials[0].schedule == kit.good.finalist.scored.schedule.parameters()
    assert DummyGpu.opened == 1


@pytest.mark.parametrize("fault", AFTER)
def test_a_wrong_candidate_is_not_timed_and_the_next_one_is_untouched(
    kit: Kit, runner: TrialRunner, fault: str
) -> None:
    with runner:
        trial = runner.trial(kit.with_statement(AFTER[fault]))
        after = runner.trial(kit.good)
    assert trial.status in (Status.WRONG_RESULT, Status.LAUNCH_FAILED), trial
    assert trial.cost == float("inf")
    assert trial.detail
    assert after.status is Status.OK
    assert DummyGpu.opened == 2  # nothing of the wrong one is left


def test_a_kernel_that_does_nothing_is_wrong_everywhere(kit: Kit, runner: TrialRunner) -> None:
    with runner:
        trial = runner.trial(kit.doing_nothing())
    assert trial.status is Status.WRONG_RESULT
    total = faulty_kernels.ELEMENTS
    assert f"{total} of {total} elements are wrong" in trial.detail
