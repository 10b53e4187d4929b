"""How a model is tuned, and with what."""

from dataclasses import dataclass
from pathlib import Path

from wpk.bench import GpuLease, Offers, Submit
from wpk.device import GpuFacts
from wpk.search.loop.budget import Budget, Effort


@dataclass(frozen=True)
class Tuning:
    """How to tune.

    Attributes:
        searcher: Name of the searcher.
        effort: How thoroughly.
        budget: What it may cost; None for what the effort says.
        seed: Fixes the search.
        store: The file of all trials.
        gpu: The GPU that measures.
        operators: Patterns of the operators to measure (`wpk.search.loop.selection`); empty for all.
            The others keep the static choice.
    """

    searcher: str
    effort: Effort
    budget: Budget | None
    seed: int
    store: Path
    gpu: GpuFacts
    operators: tuple[str, ...] = ()


@dataclass(frozen=True)
class Equipment:
    """What measuring takes.

    Attributes:
        submit: Has kernels compiled.
        lease: The process that executes candidates.
        offers: What libraries offer for the model's problems.
    """

    submit: Submit
    lease: GpuLease
    offers: Offers
