"""These types say how a model is tuned, with what, and what all of its problems share meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wpk.build import load_nvrtc
from wpk.device import GpuFacts
from wpk.search.loop.budget import Budget, Effort
from wpk.search.store import RunRecord, Setup, TuningStore
from wpk.targets import Target
from wpk.trial import Regime
from wpk.trial_bench import Bench, GpuLease, Offers, Submit


@dataclass(frozen=True)
class Tuning:
    """A tuning says how to tune a model.

    Attributes:
        searcher: Name of the searcher.
        effort: How thoroughly.
        budget: What it may cost.
        seed: Fixes the search.
        store: The file of all trials.
        gpu: The GPU that measures.
        operators: Patterns of the operators to measure (`wpk.search.loop.selection`); empty for all.
            The others keep the static choice.
    """

    searcher: str
    effort: Effort
    budget: Budget
    seed: int
    store: Path
    gpu: GpuFacts
    operators: tuple[str, ...] = ()

    def setup(self, target: Target) -> Setup:
        """Return where and with what a target's kernels are measured."""
        return Setup(target.name, target.arch, load_nvrtc().identity, self.gpu.driver)


@dataclass(frozen=True)
class Equipment:
    """Equipment is what measuring takes.

    Attributes:
        submit: Has kernels compiled.
        lease: The process that executes candidates.
        offers: What libraries offer for the model's problems.
    """

    submit: Submit
    lease: GpuLease
    offers: Offers


@dataclass(frozen=True)
class Session:
    """A session is what all problems of a run share.

    Attributes:
        store: Where trials are found and kept.
        run: The run in it; its seed fixes the search.
        setup: Where and with what is measured.
        regime: State of the caches that decides.
        effort: How thoroughly each problem is searched.
        budget: What all of them may cost.
        bench: Measures candidates.
        clock: Seconds of a clock that only goes forward.
    """

    store: TuningStore
    run: RunRecord
    setup: Setup
    regime: Regime
    effort: Effort
    budget: Budget
    bench: Bench
    clock: Callable[[], float] = time.monotonic
