"""Choices say what may compute each problem of a model, and what does: by the models, and after measuring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from wpk.assembly import Implementation, generated
from wpk.build import CompiledKernel
from wpk.candidate import GENERATED, Candidate
from wpk.device import noise_band
from wpk.problems import Problem
from wpk.search.loop.result import TuningResult
from wpk.search.models import KernelChoice, StaticChoices
from wpk.trial import Regime, Status, Trial, fastest
from wpk.trial_bench import Bench


@dataclass(frozen=True)
class Choices:
    """Choices hold what may compute each problem of a model.

    Attributes:
        options: Of each problem the best implementation of every family that has a correct one.
        families: The family whose best computes the problem.
        schedules: Of each problem what the models say of the best generated kernel.
        kernels: Compiled kernels by source digest, those of all options among them.
        results: What measuring found, for the problems that were tuned.
        regime: What the caches held when they were measured; None without measuring.
    """

    options: dict[Problem, dict[str, Implementation]]
    families: dict[Problem, str]
    schedules: dict[Problem, KernelChoice]
    kernels: dict[str, CompiledKernel]
    results: dict[Problem, TuningResult] = field(default_factory=dict)
    regime: Regime | None = None

    @property
    def implementations(self) -> dict[Problem, Implementation]:
        """What computes each problem."""
        return {problem: self.options[problem][name] for problem, name in self.families.items()}

    @property
    def candidates(self) -> dict[Problem, Candidate]:
        """The same, by name."""
        return {problem: each.candidate for problem, each in self.implementations.items()}

    @property
    def libraries(self) -> dict[Problem, str]:
        """The fastest library of each problem that one computes correctly."""
        return {
            problem: best.candidate.family
            for problem, result in self.results.items()
            if (best := best_library(result)) is not None
        }

    def of(self, problems: Iterable[Problem]) -> Choices:
        """Return the same for some of the problems alone."""
        kept = dict.fromkeys(problems)
        return replace(
            self,
            options={p: self.options[p] for p in kept},
            families={p: self.families[p] for p in kept},
            schedules={p: self.schedules[p] for p in kept},
            results={p: each for p, each in self.results.items() if p in kept},
        )

    def beside(self, others: Choices) -> Choices:
        """Return these with what others hold of problems that these lack."""
        return replace(
            self,
            options={**others.options, **self.options},
            families={**others.families, **self.families},
            schedules={**others.schedules, **self.schedules},
            kernels={**others.kernels, **self.kernels},
            results={**others.results, **self.results},
        )

    def by(self, families: Mapping[Problem, str]) -> Choices:
        """Return the same with other families for some problems."""
        return replace(self, families={**self.families, **families})


def static_choices(static: StaticChoices) -> Choices:
    """Return what the models choose."""
    options = {
        problem: {GENERATED: generated(problem, choice.finalist)}
        for problem, choice in static.kernels.items()
    }
    families = dict.fromkeys(options, GENERATED)
    return Choices(options, families, dict(static.kernels), static.compiled)


def after_tuning(
    static: StaticChoices, results: dict[Problem, TuningResult], bench: Bench, regime: Regime
) -> Choices:
    """Return the fastest correct implementation of every problem that was tuned; the others as they were.

    A problem of which no generated kernel ran correctly keeps its static choice among the options.
    """
    choices = static_choices(static)
    for problem, result in results.items():
        shortlists, options = static.shortlists[problem], choices.options[problem]
        for family, best in result.best_of_each.items():
            if family == GENERATED:
                compiled = (t for t in result.tried if t.status is not Status.COMPILE_FAILED)
                names = (trial.candidate.maker.name for trial in compiled)
                schedule = bench.choice(shortlists, best).with_compiled(names)
                choices.schedules[problem] = schedule
                options[family] = generated(problem, schedule.finalist)
            else:
                options[family] = bench.library(best, shortlists)
        choices.families[problem] = fastest_family(result)
    return replace(
        choices, kernels={**choices.kernels, **bench.kernels()}, results=results, regime=regime
    )


def fastest_family(result: TuningResult) -> str:
    """Return a library where it is faster beyond noise, else the kernel that anyone can check."""
    generated, library = result.best_of(GENERATED), best_library(result)
    if library is None:
        return GENERATED
    if generated is not None:
        _, high = noise_band(library.seconds)
        low, _ = noise_band(generated.seconds)
        if high >= low:
            return GENERATED
    return library.candidate.family


def best_library(result: TuningResult) -> Trial | None:
    """Return the fastest finalist of any library; None where none ran."""
    return fastest(each for each in result.finalists if each.candidate.family != GENERATED)
