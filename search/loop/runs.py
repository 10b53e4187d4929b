"""Runs in the tuning store: enter one, or go on with an earlier one if it is about the same."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from wpk.assembly.origin import model_digest
from wpk.dtypes import Precision
from wpk.errors import EngineError
from wpk.search.loop.budget import Budget, limits
from wpk.search.loop.model_tuning import Tuning
from wpk.search.store.records import Run, RunRequest, RunState
from wpk.search.store.store import TuningStore

_DIGEST = 12
_WORDS = {
    "model_digest": "the model's digest",
    "skipped_passes": "--skip-pass",
    "skipped_templates": "--skip-template",
    "searcher": "--search",
    "operators": "--ops",
}
"""Fields of a request that are not called as their option is."""


@dataclass(frozen=True)
class WhatToBuild:
    """What a plan is to be, and to be made of, however its schedules are found.

    Attributes:
        model: The ONNX file.
        target: Name of the GPU.
        precision: What multiplications may use.
        shapes: Shapes given, by input.
        skipped_passes: Passes skipped on request.
        skipped_templates: Schedule templates left out on request.
    """

    model: Path
    target: str
    precision: Precision
    shapes: Mapping[str, Sequence[int]]
    skipped_passes: Collection[str]
    skipped_templates: Collection[str]

    def request(
        self, searcher: str, effort: int, budget: str | None, operators: Sequence[str]
    ) -> RunRequest:
        """The same with how it is to be searched, as a run remembers it.

        Raises:
            GraphError: The model cannot be read.
        """
        return RunRequest(
            model=self.model.name,
            model_digest=model_digest(self.model),
            target=self.target,
            precision=self.precision.value,
            shapes={name: tuple(shape) for name, shape in self.shapes.items()},
            skipped_passes=tuple(sorted(self.skipped_passes)),
            skipped_templates=tuple(sorted(self.skipped_templates)),
            searcher=searcher,
            effort=effort,
            budget=budget,
            operators=tuple(operators),
        )


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
        "skip_templates": asked.skipped_templates,
        "search": asked.searcher,
        "effort": asked.effort,
        "budget": asked.budget,
        "seed": run.seed,
        "operators": asked.operators,
    }


def find_same_run(store: Path, name: str, request: RunRequest, seed: int) -> Run:
    """An earlier run that was asked for the same. The model's name may differ, its content may not.

    Raises:
        StoreError: See `find_run`.
        EngineError: See there; or they differ, and it says in what.
    """
    run = find_run(store, name)
    differences = list(_differences(run, request, seed))
    if differences:
        raise EngineError(
            f"run {run.id} is about something else: {'; '.join(differences)}",
            fix="resume it with its own model and options, or start anew without --resume",
        )
    return run


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


@contextmanager
def entered(
    tuning: Tuning,
    request: RunRequest,
    earlier: Run | None = None,
    on_run: Callable[[Run], None] | None = None,
) -> Iterator[Tuning]:
    """The tuning within its run: a new one, or an earlier one with what is left of its budget.

    An error or an interrupt in the block is noted in the run, which can then be resumed.

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
            run = store.begin_run(["wpk", "optimize", request.model], tuning.seed, request)
        else:
            run = store.resume_run(earlier.id)
            left = _left(limits(tuning.effort, tuning.budget), *store.spent(run.id))
            tuning = replace(tuning, budget=left)
    try:
        if on_run is not None:
            on_run(run)
        yield replace(tuning, run=run)
    except BaseException as error:
        interrupted = isinstance(error, KeyboardInterrupt)
        with TuningStore(tuning.store) as store:
            store.end_run(run.id, RunState.INTERRUPTED if interrupted else RunState.FAILED)
        raise


def _left(whole: Budget, trials: int, seconds: float) -> Budget:
    return Budget(
        seconds=None if whole.seconds is None else max(0.0, whole.seconds - seconds),
        trials=None if whole.trials is None else max(0, whole.trials - trials),
    )
