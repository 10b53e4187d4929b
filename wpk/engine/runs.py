"""Runs in the tuning store: enter one, or go on with an earlier one if it is about the same."""

from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from wpk.engine.tuning import Tuning
from wpk.errors import EngineError
from wpk.search.store import TuningStore
from wpk.search.store_record import Run, RunRequest

_DIGEST = 12
_WORDS = {
    "model_digest": "the model's digest",
    "skipped_passes": "--skip-pass",
    "searcher": "--search",
    "operators": "--ops",
}
"""Fields of a request that are not called as their option is."""


def find_run(store: Path, name: str) -> Run:
    """An earlier run, by the name that `TuningStore.find_run` takes.

    Raises:
        StoreError: There is no store, or no such run in it; names the latest.
        EngineError: The run does not say what it was asked to do.
    """
    if not store.is_file():
        raise EngineError(
            f"there is no run to resume: {store} does not exist",
            fix="name the folder that it was started with: --cache FOLDER",
        )
    with TuningStore(store) as opened:
        run = opened.find_run(name)
    if run.request is None:
        raise EngineError(
            f"run {run.id} does not say what it was asked to do: wpk {run.wpk} entered it",
            fix="start anew without --resume: trials are found anyway",
        )
    return run


def asked_of(run: Run) -> dict[str, Any]:
    """What a run was asked to do, as keyword arguments of `wpk.optimize`."""
    asked = run.request
    if asked is None:
        raise ValueError(f"run {run.id} has no request")
    return {
        "target": asked.target,
        "precision": asked.precision,
        "shapes": asked.shapes,
        "skip_passes": asked.skipped_passes,
        "search": asked.searcher,
        "effort": asked.effort,
        "budget": asked.budget,
        "seed": run.seed,
        "operators": asked.operators,
    }


def require_same(run: Run, request: RunRequest, seed: int) -> None:
    """Refuse to go on with a run that was asked for something else.

    The model's name may differ, its content may not.

    Raises:
        EngineError: They differ; says in what.
    """
    differences = list(_differences(run, request, seed))
    if differences:
        raise EngineError(
            f"run {run.id} is about something else: {'; '.join(differences)}",
            fix="resume it with its own model and options, or start anew without --resume",
        )


def _differences(run: Run, request: RunRequest, seed: int) -> Iterator[str]:
    stored = run.request
    for field in fields(RunRequest):
        if stored is None or field.name == "model":
            continue
        then, now = getattr(stored, field.name), getattr(request, field.name)
        if then != now:
            what = _WORDS.get(field.name, f"--{field.name}")
            yield f"{what} is {_short(now)}, the run has {_short(then)}"
    if run.seed != seed:
        yield f"--seed is {seed}, the run has {run.seed}"


def _short(value: object) -> str:
    if isinstance(value, str) and len(value) == 64:
        return f"{value[:_DIGEST]}…"
    return str(value) if isinstance(value, str | int) else repr(value)


def enter_run(tuning: Tuning, request: RunRequest, earlier: Run | None) -> tuple[Tuning, Run]:
    """The tuning with its run: a new one, or an earlier one that goes on.

    Raises:
        StoreError: The store cannot be used.
    """
    with TuningStore(tuning.store) as store:
        if earlier is None:
            run = store.begin_run(["wpk", "optimize", request.model], tuning.seed, request)
        else:
            run = store.resume_run(earlier.id)
    return replace(tuning, run=run), run
