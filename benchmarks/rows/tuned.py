"""Plans of exported networks, tuned once and kept for every row that looks at them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from export import NETWORKS

import wpk.graph_passes
import wpk.search
from rows.base import Context, Outcome
from rows.plan_share import share_of, tuned_figures
from wpk.dtypes import Precision
from wpk.plan.plan_file import read_plan

_SOURCES = ("*.py", "*.cuh")


@dataclass(frozen=True)
class Case:
    """A network at a precision and a batch.

    Attributes:
        network: One of `export.NETWORKS`.
        precision: What products may use.
        batch: Images or sentences at once.
    """

    network: str
    precision: Precision
    batch: int

    def __str__(self) -> str:
        """``resnet50.fp16.b1``, as rows are called."""
        return f"{self.network}.{self.precision}.b{self.batch}"


def plans_folder(context: Context) -> Path:
    """Where plans of these sources, tuned at this effort and budget, are kept."""
    identity = f"{sources_digest()} {context.effort} {context.budget}"
    return context.store / "plans" / hashlib.sha256(identity.encode()).hexdigest()[:16]


def tuned_plan(case: Case, context: Context) -> Path:
    """The case's plan: the one that another row wrote, or a new one.

    Trials of all rows lie in one store, so what one tuning measured is nothing new to the next.

    Raises:
        RowError: `wpk optimize` fails, or does not finish in time.
    """
    kept = plans_folder(context) / f"{case}.plan"
    if kept.is_file():
        return kept
    model, fresh = context.exported(case.network), context.folder / "measured.plan"
    what = ["optimize", model, "-o", fresh, "--precision", case.precision]
    shapes = ["--shapes", NETWORKS[case.network].shapes(case.batch)]
    how = ["--effort", context.effort, "--budget", context.budget, "--cache", context.store]
    context.wpk(*what, *shapes, *how)
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(fresh, kept)
    return kept


def measure_tuned(
    case: Case, measure: Callable[[Path, Context], Outcome], context: Context
) -> Outcome:
    """What is measured of a case's plan.

    The figures hold the plan's share of generated kernels too, and what the plan took: next to nothing
    where another row has tuned the case.

    Raises:
        RowError: The case cannot be tuned, or its plan not measured.
    """
    begun = time.perf_counter()
    plan = tuned_plan(case, context)
    tuning = {"tuning_seconds": time.perf_counter() - begun}
    outcome = measure(plan, context)
    share = share_of(read_plan(plan).plan.steps)
    return replace(outcome, figures=outcome.figures | tuning | tuned_figures(str(case), share))


@lru_cache(maxsize=1)
def sources_digest() -> str:
    """SHA-256 of the installed package: other sources make other plans."""
    digest = hashlib.sha256()
    for path in _source_files():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _source_files() -> Iterator[Path]:
    # What stands beside the package in a checkout may lie inside it where it is installed.
    roots = {
        Path(place).resolve()
        for package in (wpk, wpk.search, wpk.graph_passes)
        for place in package.__path__
    }
    files = {path for root in roots for kind in _SOURCES for path in root.rglob(kind)}
    return iter(sorted(files))
