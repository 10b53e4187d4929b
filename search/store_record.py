"""The rows of the tuning store: runs and trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from wpk.trial import Regime, Status


class RunState(StrEnum):
    """What became of a run. One that was killed stays ``running``, and can be resumed like any."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Stage(StrEnum):
    """What a trial was measured for."""

    SEARCH = "search"  # to guide a searcher
    FINAL = "final"  # to choose among the best, measured side by side


@dataclass(frozen=True)
class RunRequest:
    """What a run was asked to do: enough to go on with it, and to refuse to go on with another.

    Attributes:
        model: File name of the model.
        model_digest: SHA-256 of the model file.
        target: Name of the GPU.
        precision: What multiplications may use.
        shapes: Shapes given, by input.
        skipped_passes: Passes skipped on request, sorted.
        skipped_templates: Schedule templates left out on request, sorted.
        searcher: Name of the searcher.
        effort: Level of effort.
        budget: As it was written; None for what the effort says.
        operators: Patterns of the operators that are tuned; empty for all.
    """

    model: str
    model_digest: str
    target: str
    precision: str
    shapes: dict[str, tuple[int, ...]]
    skipped_passes: tuple[str, ...]
    skipped_templates: tuple[str, ...]
    searcher: str
    effort: int
    budget: str | None
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One tuning of a network.

    Attributes:
        id: Its name, to resume it by.
        argv: The command that started it.
        seed: Fixes the search.
        started: Seconds since the epoch.
        state: What became of it.
        wpk: Version of wpk.
        request: What it was asked to do; None where its writer did not say.
    """

    id: str
    argv: tuple[str, ...]
    seed: int
    started: float
    state: RunState
    wpk: str
    request: RunRequest | None = None


@dataclass(frozen=True)
class TrialRecord:
    """A trial as it is stored and exported.

    Attributes:
        uid: A name that no other trial of any store has.
        run: The run that measured it.
        problem: Digest of its problem.
        target: Of its setup, as the next three.
        arch: See `wpk.search.store_key.Setup`.
        compiler: See there.
        driver: See there.
        template: Name of the template or library.
        version: Its version.
        schedule: Parameter names and values.
        status: Outcome.
        regime: State of the caches; None for a trial that was not measured.
        stage: What it was measured for.
        seconds: Every repetition.
        detail: See `wpk.trial.Trial`.
        at: When it was stored, in seconds since the epoch.
        searcher: Who proposed the schedule; empty where its writer did not say.
    """

    uid: str
    run: str
    problem: str
    target: str
    arch: str
    compiler: str
    driver: str
    template: str
    version: str
    schedule: tuple[tuple[str, int], ...]
    status: Status
    regime: Regime | None
    stage: Stage
    seconds: tuple[float, ...]
    detail: str
    at: float
    searcher: str = ""

    def __post_init__(self) -> None:
        """Refuse a measurement that cannot be one: it would win, or lose, by mistake.

        Raises:
            ValueError: Seconds or the regime do not fit the status, or are no durations.
        """
        if not all(math.isfinite(each) and each > 0 for each in self.seconds):
            raise ValueError(f"seconds {self.seconds} are not all finite and above 0")
        if self.status is Status.OK and (not self.seconds or self.regime is None):
            raise ValueError("an ok trial has seconds, and a regime that they were measured in")
        if self.status is not Status.OK and self.regime is not None:
            raise ValueError(f"a trial that ended {self.status} belongs to no regime")
