"""Candidates become trials: only what is right is timed. The emulator stands in for the GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
from subjects import faulty_candidates
from subjects.faulty_candidates import AFTER, Kit
from support.devices.dummy_gpu import DummyGpu

from wpk.checks.operator_check import OperatorCheck, StepRunner
from wpk.checks.prepared import StepCase
from wpk.device import MemoryRange
from wpk.emulator import CHECKING
from wpk.execution import BoundCall, Pointer, Work
from wpk.plan.plan import Step
from wpk.trial import Regime, Status
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.trials import TrialRunner, Way

opened: list[DummyGpu] = []


def _clock(works: Sequence[Work], regions: Sequence[MemoryRange]) -> tuple[float, ...]:
    addresses: list[int] = []
    for work in works:
        if isinstance(work, BoundCall):
            addresses += [*work.pointers, work.workspace]
        else:
            addresses += [each.address for each in work.arguments if isinstance(each, Pointer)]
    for address in addresses:
        assert any(r.address <= address < r.address + r.size for r in regions)
    return 1e-6, 2e-6, 3e-6


def _open() -> DummyGpu:
    opened.append(DummyGpu(_clock, engines=2, mode=CHECKING))
    return opened[-1]


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return faulty_candidates.make_kit(tmp_path_factory.mktemp("kit"))


@pytest.fixture
def lease() -> Iterator[GpuLease]:
    opened.clear()
    with GpuLease(_open) as lease:  # type: ignore[arg-type]
        yield lease


@pytest.fixture
def runner(kit: Kit, lease: GpuLease) -> TrialRunner:
    return TrialRunner(lease, kit.cases(), Regime.WARM)


def test_a_right_candidate_is_timed(kit: Kit, runner: TrialRunner) -> None:
    trials = [kit.good.by(runner) for _ in range(2)]
    assert [trial.status for trial in trials] == [Status.OK] * 2
    assert trials[0].cost == 2e-6
    assert trials[0].candidate == kit.good.implementation.candidate
    assert len(opened) == 1


@pytest.mark.parametrize("fault", AFTER)
def test_a_wrong_candidate_is_not_timed_and_the_next_one_is_untouched(
    kit: Kit, runner: TrialRunner, fault: str
) -> None:
    trial = kit.with_statement(AFTER[fault]).by(runner)
    after = kit.good.by(runner)
    assert trial.status in (Status.WRONG_RESULT, Status.LAUNCH_FAILED), trial
    assert trial.cost == float("inf")
    assert trial.detail
    assert after.status is Status.OK
    assert len(opened) == 2  # nothing of the wrong one is left


def test_a_kernel_that_does_nothing_is_wrong_everywhere(kit: Kit, runner: TrialRunner) -> None:
    trial = kit.doing_nothing().by(runner)
    assert trial.status is Status.WRONG_RESULT
    total = faulty_candidates.ELEMENTS
    assert f"{total} of {total} elements are wrong" in trial.detail


def test_what_may_be_chosen_is_checked_at_a_second_seed(kit: Kit, lease: GpuLease) -> None:
    (problem, case), *_ = kit.cases().items()
    others = {problem: replace(case, result=None)}  # another truth: it cannot be met as well
    thorough = Way(thorough=True)
    runner = TrialRunner(lease, kit.cases(), Regime.WARM, others)
    assert kit.good.by(runner).status is Status.OK
    assert kit.good.by(runner, thorough).status is Status.WRONG_RESULT
    runner = TrialRunner(lease, kit.cases(), Regime.WARM, kit.cases())
    assert kit.good.by(runner, thorough).status is Status.OK


def test_what_may_be_chosen_is_checked_once_however_often_it_is_timed(
    kit: Kit, lease: GpuLease, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str] = []
    check = StepRunner.check

    def counted(self: StepRunner, step: Step, prepared: StepCase, **how: bool) -> OperatorCheck:
        checked.append(step.operator.name)
        return check(self, step, prepared, **how)

    monkeypatch.setattr(StepRunner, "check", counted)
    thorough = Way(thorough=True)
    runner = TrialRunner(lease, kit.cases(), Regime.WARM, kit.cases())
    assert [kit.good.by(runner, thorough).cost for _ in range(3)] == [2e-6] * 3
    assert len(checked) == 2
    # Other machine code for the same schedule has not been checked.
    wrong = kit.doing_nothing().by(runner, thorough)
    assert wrong.status is Status.WRONG_RESULT
    # What only guides a search is checked each time: nothing is known of it at the other seed.
    assert [kit.good.by(runner).cost for _ in range(2)] == [2e-6] * 2
    assert len(checked) == 5
