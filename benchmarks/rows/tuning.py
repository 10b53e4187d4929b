"""What tuning costs, and that nothing of it is lost."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import onnx
from subjects import exported

from rows.base import Context, Outcome, Row, RowError, microseconds, wpk_command
from rows.goals import Goal, as_figures
from rows.side_by_side import time_plans
from rows.trials import FILE, all_trials, damage, measured_again
from wpk.search.store.store import TuningStore

FIRST_SECONDS, AGAIN_SECONDS = 360.0, 15.0
"""What tuning ResNet-50 may take, and taking everything from the store."""

TUNED_WITHIN = Goal("seconds of tuning ResNet-50 from nothing", 600.0, at_most=True)
"""What the goals of generated kernels allow; the row itself asks for `FIRST_SECONDS`."""

KILL_WITHIN_SECONDS = 30.0
"""After the first trial."""

SAME_QUALITY = 1.03
"""Times of two plans whose searches saw different noise, and which are called equally good."""

_POLL_SECONDS = 0.5
_TWO_PROCESSES_BUDGET = "60s"


def rows() -> list[Row]:
    """The time of a tuning, a killed one, and two at once."""
    return [
        Row(
            "tuning.resnet50",
            "fp16 with --effort 1 in 6 minutes, again from a warm store in 15 s",
            _time,
            goals=(TUNED_WITHIN,),
        ),
        Row("kill.resnet18", "killed and resumed: no trial lost, the same quality", _kill),
        Row("store.two_processes", "two tunings fill one store, and no trial is lost", _two),
    ]


def _refilled(network: str, context: Context) -> Path:
    path = context.folder / f"{network}.onnx"
    onnx.save(exported.refill(network), path)
    return path


def _time(context: Context) -> Outcome:
    model, plan = _refilled("tv_resnet50.dynamo", context), context.folder / "measured.plan"
    command = ["optimize", model, "-o", plan, "--precision", "fp16", "--effort", "1"]
    first, again = (context.wpk(*command, "--cache", context.folder).seconds for _ in range(2))
    figures = {
        "first_seconds": first,
        "again_seconds": again,
        "trials": len(all_trials(context.folder / FILE)),
    }
    passed = first <= FIRST_SECONDS and again <= AGAIN_SECONDS
    figures |= as_figures([TUNED_WITHIN.judged(first)])
    return Outcome(passed, f"{first:.0f} s, again {again:.1f} s", figures)


@dataclass(frozen=True)
class Killed:
    """A command that was killed: after how many seconds, and the trials that were in the store."""

    seconds: float
    trials: frozenset[str]


def kill_while_tuning(
    command: list[str], store: Path, delay: float, seconds_left: Callable[[], float]
) -> Killed:
    """Start a command, and kill its process group ``delay`` seconds after its first trial.

    Args:
        command: Tunes into the store.
        store: File of the store.
        delay: In seconds.
        seconds_left: Raises when the row must end.

    Raises:
        RowError: The command ended before.
    """
    begun = time.monotonic()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        first: float | None = None
        while first is None or time.monotonic() < first + delay:
            if process.poll() is not None:
                raise RowError(f"ended with exit code {process.returncode} before it was killed")
            seconds_left()
            if first is None and all_trials(store):
                first = time.monotonic()
            time.sleep(min(_POLL_SECONDS, delay))
        seen = {trial.uid for trial in all_trials(store)}
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    seen |= {trial.uid for trial in all_trials(store)}
    return Killed(time.monotonic() - begun, frozenset(seen))


def _kill(context: Context) -> Outcome:
    model = _refilled("tv_resnet18.dynamo", context)
    whole, cut = context.folder / "whole", context.folder / "cut"
    plans = {name: context.folder / f"{name}.plan" for name in ("whole", "resumed")}
    command = ["optimize", model, "--precision", "fp16", "--effort", "1"]
    resumed = ["-o", plans["resumed"], "--cache", cut]
    context.wpk(*command, "-o", plans["whole"], "--cache", whole)
    seed = time.time_ns()
    delay = random.Random(seed).uniform(0.0, KILL_WITHIN_SECONDS)
    tune = wpk_command(*command, *resumed)
    killed = kill_while_tuning(tune, cut / FILE, delay, context.seconds_left)
    if plans["resumed"].exists():
        raise RowError("the plan was written before the kill")
    with TuningStore(cut / FILE) as store:
        run = store.runs()[-1].id
    context.wpk("optimize", model, *resumed, "--resume", run)
    after = all_trials(cut / FILE)
    lost = killed.trials - {trial.uid for trial in after}
    again = measured_again(killed.trials, after)
    first, second = time_plans([plans["whole"], plans["resumed"]])
    ratio = second.median / first.median
    figures = {
        "killed_after_seconds": killed.seconds,
        "trials_at_the_kill": len(killed.trials),
        "trials_in_the_end": len(after),
        "lost": len(lost),
        "measured_again": len(again),
        "damage": damage(cut / FILE),
        "whole_seconds": first.median,
        "resumed_seconds": second.median,
    }
    summary = (
        f"killed with {len(killed.trials)} of {len(after)} trials, {len(lost)} lost, "
        f"{len(again)} measured again; {microseconds(second.median)}, "
        f"uninterrupted {microseconds(first.median)}"
    )
    kept = not lost and not again and not figures["damage"]
    return Outcome(kept and ratio <= SAME_QUALITY, summary, figures)


def _two(context: Context) -> Outcome:
    model, store = _refilled("tv_resnet18.dynamo", context), context.folder / FILE
    common = ["optimize", model, "--precision", "fp16", "--effort", "2", "--check", "off"]
    options = ["--budget", _TWO_PROCESSES_BUDGET, "--cache", context.folder]
    commands = [
        wpk_command(*common, *options, "-o", context.folder / f"{seed}.plan", "--seed", str(seed))
        for seed in (1, 2)
    ]
    seen = run_together(commands, store, context.seconds_left)
    trials = all_trials(store)
    lost = seen - {trial.uid for trial in trials}
    with TuningStore(store) as opened:
        runs = {run.id: run.state.value for run in opened.runs()}
    counts = {run: sum(trial.run == run for trial in trials) for run in runs}
    figures = {
        "trials_by_run": counts,
        "states": runs,
        "lost": len(lost),
        "damage": damage(store),
    }
    both = len(counts) == len(commands) and all(counts.values())
    finished = set(runs.values()) == {"finished"}
    summary = f"{' + '.join(map(str, counts.values()))} trials, {len(lost)} lost"
    return Outcome(both and finished and not lost and not figures["damage"], summary, figures)


def run_together(
    commands: list[list[str]], store: Path, seconds_left: Callable[[], float]
) -> frozenset[str]:
    """Run commands at once, and return every trial that was seen in the store meanwhile.

    Raises:
        RowError: One of them fails.
    """
    seen: set[str] = set()
    processes = [
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for command in commands
    ]
    try:
        while any(process.poll() is None for process in processes):
            seconds_left()
            seen |= {trial.uid for trial in all_trials(store)}
            time.sleep(_POLL_SECONDS)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    codes = [process.returncode for process in processes]
    if any(codes):
        raise RowError(f"exit codes {codes}")
    return frozenset(seen)
