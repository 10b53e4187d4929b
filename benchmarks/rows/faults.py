"""The fault kit: candidates that hang, crash, trample or compute nonsense."""

from __future__ import annotations

from functools import partial

from subjects import faulty_candidates

from rows.base import Context, Outcome, Row
from wpk.backends import GpuProcess
from wpk.trial import Regime, Status
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.trials import TrialRunner

_LIMIT_SECONDS = 3.0


def rows() -> list[Row]:
    """One: all faults in one run."""
    return [Row("faults", "every faulty candidate is refused, and the next trial is right", _kit)]


def _kit(context: Context) -> Outcome:
    kit = faulty_candidates.make_kit(context.folder)
    statements = {**faulty_candidates.AFTER, **faulty_candidates.ON_THE_GPU_ONLY}
    candidates: dict[str, faulty_candidates.Attempt] = {
        **{fault: kit.with_statement(text) for fault, text in statements.items()},
        "does nothing": kit.doing_nothing(),
        "too large a block": kit.too_large_a_block(),
    }
    figures = {}
    with GpuLease(partial(GpuProcess, limit_seconds=_LIMIT_SECONDS)) as lease:
        runner = TrialRunner(lease, kit.cases(), Regime.WARM)
        for fault, candidate in candidates.items():
            trial, after = candidate.by(runner), kit.good.by(runner)
            refused = trial.status is not Status.OK and after.status is Status.OK
            figures[fault] = {
                "status": trial.status.value,
                "detail": trial.detail,
                "next": after.status.value,
                "refused": refused,
            }
            context.seconds_left()
    count = sum(bool(each["refused"]) for each in figures.values())
    summary = f"{count} of {len(figures)} refused, each with a right trial after it"
    return Outcome(count == len(figures), summary, figures)
