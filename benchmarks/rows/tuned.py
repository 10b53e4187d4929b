"""Plans of exported networks, tuned once and kept for every row that looks at them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from export import NETWORKS, draw, exported_module

import wpk.graph_passes
import wpk.search
from rows.base import Context, Outcome, RowError
from rows.plan_forms import form_figures
from rows.plan_operators import plan_figures
from rows.plan_products import product_figures
from rows.plan_share import share_of, tuned_figures
from wpk.dtypes import Precision
from wpk.plan.plan_file import read_plan

_SOURCES = ("*.py", "*.cuh")

INPUT_SEED = 1000
"""Of the inputs: none that calibration or the exporter's comparison saw."""


class RefusedError(RowError):
    """wpk makes no plan of a network that was exported."""


@dataclass(frozen=True)
class Subject:
    """A module, and what it is run on.

    Attributes:
        module: Of torch, in fp32 on the CPU, ready for inference.
        inputs: Tensors on the CPU by name, in the order in which the module takes them.
    """

    module: Any
    inputs: Mapping[str, Any]


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

    def model(self, context: Context) -> Path:
        """The network's file, exported where that has not been done."""
        return context.exported(self.network)

    def subject(self, context: Context) -> Subject:
        """The module that the file was exported from, and inputs of this batch."""
        network = NETWORKS[self.network]
        module = exported_module(self.network, self.model(context))
        return Subject(module, {network.input: draw(network, self.batch, INPUT_SEED)})

    def shape_options(self) -> list[str]:
        """What ``wpk optimize`` is told of sizes that the file leaves free."""
        return ["--shapes", NETWORKS[self.network].shapes(self.batch)]

    def cache(self, context: Context) -> Path:
        """Folder of the trials that are known, and where new ones are kept."""
        return context.store


def plans_folder(context: Context, sources: str | None = None) -> Path:
    """Where plans of these sources, or of others, tuned at this effort and budget are kept."""
    identity = f"{sources or sources_digest()} {context.effort} {context.budget}"
    return context.store / "plans" / hashlib.sha256(identity.encode()).hexdigest()[:16]


def tuned_plan(case: Case, context: Context) -> Path:
    """The case's plan: the one that another row wrote, or a new one.

    Trials of all rows lie in one store, so what one tuning measured is nothing new to the next.

    Raises:
        RefusedError: `wpk optimize` fails, or does not finish in time.
    """
    kept = plans_folder(context) / f"{case}.plan"
    if not kept.is_file():
        tune(case, case.model(context), kept, context)
    return kept


def tune(
    case: Case,
    model: Path,
    kept: Path,
    context: Context,
    *,
    cache: Path | None = None,
    options: Sequence[str] = (),
) -> None:
    """Write the plan of a case's model where it is to be kept.

    Args:
        case: To be tuned.
        model: Its file.
        kept: Where the plan is to be.
        context: Of the row.
        cache: Folder of trials; the case's own by default.
        options: What ``wpk optimize`` is told besides.

    Raises:
        RefusedError: `wpk optimize` fails, or does not finish in time.
    """
    fresh = context.folder / "measured.plan"
    what = ["optimize", model, "-o", fresh, "--precision", case.precision]
    searched = ["--effort", context.effort, "--budget", context.budget]
    try:
        context.wpk(
            *what,
            *case.shape_options(),
            *searched,
            "--cache",
            cache or case.cache(context),
            *options,
        )
    except RowError as error:
        raise RefusedError(str(error)) from error
    kept.parent.mkdir(parents=True, exist_ok=True)
    os.replace(fresh, kept)


def measure_tuned(
    case: Case, measure: Callable[[Path, Context], Outcome], context: Context
) -> Outcome:
    """What is measured of a case's plan.

    The figures hold the plan's share of generated kernels too, where its time goes, its form beside the usual one, what
    its products reach, what the plan took here (next to nothing where another row has tuned the case), and what each
    phase of making it took.

    Raises:
        RowError: The case cannot be tuned, or its plan not measured.
    """
    begun = time.perf_counter()
    plan = tuned_plan(case, context)
    tuning: dict[str, Any] = {"tuning_seconds": time.perf_counter() - begun}
    outcome = measure(plan, context)
    written = read_plan(plan).plan
    if written.measurement is not None:
        tuning["tuning_phases"] = written.measurement.phases
    told = tuned_figures(str(case), share_of(written.steps)) | plan_figures(written)
    told |= form_figures(written.measurement, written.forms) | product_figures(written)
    return replace(outcome, figures=outcome.figures | tuning | told)


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
