"""A run in the tuning store is its options, and lives as long as the block that it is entered for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from wpk.assembly import model_digest
from wpk.errors import EngineError
from wpk.options import BuildOptions, SearchOptions, flag_of, keywords
from wpk.search.loop.tuning import Tuning
from wpk.search.store import RunRecord, RunRequest, RunState, TuningStore

_DIGEST = 12


def request_of(model: Path, build: BuildOptions, search: SearchOptions) -> RunRequest:
    """Return what a run remembers of what it is asked to do.

    Raises:
        GraphError: The model cannot be read.
    """
    return RunRequest(model.name, model_digest(model), build, search)


def find_run(store: Path, name: str) -> tuple[RunRecord, RunRequest]:
    """Return an earlier run with what it was asked to do, by the name that `TuningStore.find_run` takes.

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
    return run, run.request


def recall(store: Path, name: str) -> dict[str, Any]:
    """Return what an earlier run was asked to do, as keyword arguments of `wpk.optimize`.

    Raises:
        StoreError: See `find_run`, as EngineError.
    """
    _, request = find_run(store, name)
    return keywords(request.build, request.search)


def find_same_run(store: Path, name: str, request: RunRequest) -> RunRecord:
    """Return an earlier run that was asked for the same. The model's name may differ, its content may not.

    Raises:
        StoreError: See `find_run`.
        EngineError: See there; or they differ, and it says in what.
    """
    run, earlier = find_run(store, name)
    differences = list(_differences(earlier, request))
    if differences:
        raise EngineError(
            f"run {run.id} is about something else: {'; '.join(differences)}",
            fix="resume it with its own model and options, or start anew without --resume",
        )
    return run


def _differences(earlier: RunRequest, request: RunRequest) -> Iterator[str]:
    if earlier.model_digest != request.model_digest:
        then, now = earlier.model_digest[:_DIGEST], request.model_digest[:_DIGEST]
        yield f"the model's digest is {now}…, the run has {then}…"
    for before, after in ((earlier.build, request.build), (earlier.search, request.search)):
        for option in fields(before):
            was, is_now = getattr(before, option.name), getattr(after, option.name)
            if was != is_now:
                yield f"{flag_of(option)} is {_short(is_now)}, the run has {_short(was)}"


def _short(value: object) -> str:
    return str(value) if isinstance(value, str | int) else repr(value)


@contextmanager
def entered(
    tuning: Tuning,
    request: RunRequest,
    earlier: RunRecord | None = None,
    on_run: Callable[[RunRecord], None] | None = None,
) -> Iterator[tuple[Tuning, RunRecord]]:
    """Begin a run or go on with one; yield it, and the tuning with what is left of its budget.

    What becomes of the block is noted in the run: it is finished, or was interrupted or failed, and can
    then be resumed.

    Args:
        tuning: How to tune.
        request: What a new run is asked to do.
        earlier: The run to go on with.
        on_run: Told of the run before the block begins.

    Raises:
        StoreError: The store cannot be used.
    """
    with TuningStore(tuning.store) as store:
        if earlier is None:
            run = store.begin_run(request.search.seed, request)
        else:
            run = store.resume_run(earlier.id)
            trials, seconds = store.spent(run.id)
            tuning = replace(tuning, budget=tuning.budget.less(seconds, trials))
    state = RunState.FAILED
    try:
        if on_run is not None:
            on_run(run)
        yield tuning, run
        state = RunState.FINISHED
    except KeyboardInterrupt:
        state = RunState.INTERRUPTED
        raise
    finally:
        with TuningStore(tuning.store) as store:
            store.end_run(run.id, state)
