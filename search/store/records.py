"""The rows of the tuning store are runs and trials."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from wpk.options import BuildOptions, SearchOptions
from wpk.trial import Regime, Status


class RunState(StrEnum):
    """This is what became of a run; one that was killed stays ``running``, and can be resumed like any."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


class Stage(StrEnum):
    """A stage is what a trial was measured for."""

    SEARCH = "search"  # to guide a searcher
    FINAL = "final"  # to choose among the best, measured side by side


@dataclass(frozen=True)
class RunRequest:
    """A request is what a run was asked to do: enough to go on with it, and to refuse to go on with another.

    Attributes:
        model: File name of the model.
        model_digest: SHA-256 of the model file.
        build: What plan it is for; the target by its name.
        search: How candidates are found.
    """

    model: str
    model_digest: str
    build: BuildOptions
    search: SearchOptions


@dataclass(frozen=True)
class RunRecord:
    """A run is one tuning of a network.

    Attributes:
        id: Its name, to resume it by.
        seed: Fixes the search.
        started: Seconds since the epoch.
        state: What became of it.
        wpk: Version of wpk.
        request: What it was asked to do; None where its writer did not say.
    """

    id: str
    seed: int
    started: float
    state: RunState
    wpk: str
    request: RunRequest | None = None


@dataclass(frozen=True)
class TrialRecord:
    """This is a trial as it is stored and exported.

    Attributes:
        uid: A name that no other trial of any store has.
        run: The run that measured it.
        problem: Digest of its problem.
        target: Of its setup, as the next three.
        arch: See `wpk.search.store.key.Setup`.
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
