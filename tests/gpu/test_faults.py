"""The fault kit: kernels that hang, crash, trample or compute nonsense cost one trial each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from subjects import faulty_candidates
from subjects.faulty_candidates import AFTER, ON_THE_GPU_ONLY, Kit

from wpk.backends import GpuProcess
from wpk.trial import Regime, Status
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.trials import TrialRunner

pytestmark = [pytest.mark.gpu, pytest.mark.timed]

EXPECTED = {
    "wrong": Status.WRONG_RESULT,
    "slightly wrong": Status.WRONG_RESULT,
    "NaN": Status.WRONG_RESULT,
    "overwrites its input": Status.WRONG_RESULT,
    "writes before its output": Status.WRONG_RESULT,
    "writes after its output": Status.WRONG_RESULT,
    "crashes": Status.LAUNCH_FAILED,
    "traps": Status.LAUNCH_FAILED,
    "hangs": Status.TIMED_OUT,
    "hangs while it is timed": Status.TIMED_OUT,
}


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Kit:
    return faulty_candidates.make_kit(tmp_path_factory.mktemp("kit"))


@pytest.fixture(scope="module")
def runner(kit: Kit) -> Iterator[TrialRunner]:
    with GpuLease(partial(GpuProcess, limit_seconds=3.0)) as lease:
        yield TrialRunner(lease, kit.cases(), Regime.WARM)


@pytest.mark.parametrize("fault", EXPECTED)
def test_a_fault_costs_one_trial(
    kit: Kit, runner: TrialRunner, fault: str, record: Callable[[str, object], None]
) -> None:
    trial = kit.with_statement({**AFTER, **ON_THE_GPU_ONLY}[fault]).by(runner)
    after = kit.good.by(runner)
    record(f"faults.{fault}", {"status": trial.status, "detail": trial.detail})
    assert trial.status is EXPECTED[fault], trial
    assert trial.cost == float("inf")
    assert after.status is Status.OK, after


def test_a_kernel_that_does_nothing_cannot_win(kit: Kit, runner: TrialRunner) -> None:
    assert kit.doing_nothing().by(runner).status is Status.WRONG_RESULT


def test_a_launch_that_no_gpu_can_start_fails(kit: Kit, runner: TrialRunner) -> None:
    assert kit.too_large_a_block().by(runner).status is Status.LAUNCH_FAILED


def test_trials_of_one_kernel_agree(
    kit: Kit, runner: TrialRunner, record: Callable[[str, object], None]
) -> None:
    costs = [kit.good.by(runner).cost for _ in range(5)]
    record("trials.repeated", {"seconds": costs})
    assert max(costs) < 1.2 * min(costs)
    bound = 2 * 4 * faulty_candidates.ELEMENTS / 20e12  # more than any L2 can move
    assert min(costs) > bound
