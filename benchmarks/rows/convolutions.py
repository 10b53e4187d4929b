"""Convolutions: the tuned generated kernel beside cuDNN's best fused engine.

One model holds all layers of a table. Both sides are what ``wpk optimize`` compared in turns in the end,
each candidate correct before it was timed.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from rows.base import Context, Outcome, Row, RowError
from rows.convolution_models import RESNET18, WOODPECKER, Layers, write_model
from rows.goals import Goal, Judged, as_figures, geometric_mean
from wpk.dtypes import Precision
from wpk.plan.measurement import Measurement, Ratio
from wpk.plan.plan_file import read_plan

MEAN = "geometric mean over cuDNN"
LARGEST = "largest speedup over cuDNN"
SMALLEST = "smallest speedup over cuDNN"


@dataclass(frozen=True)
class Table:
    """A table of convolutions.

    Attributes:
        layers: By name.
        precision: What products may use.
        batch: Images at once.
        mean: Goal of the geometric mean of speedups.
        most: Of the largest; None where nothing is asked.
        least: Of the smallest; likewise.
    """

    layers: Layers
    precision: Precision
    batch: int
    mean: float | None = None
    most: float | None = None
    least: float | None = None

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What the table is asked to reach: of its mean, its largest and its smallest speedup."""
        asked = ((MEAN, self.mean), (LARGEST, self.most), (SMALLEST, self.least))
        return tuple(Goal(what, figure) for what, figure in asked if figure is not None)


TABLES = {
    "convolutions.fp32": Table(RESNET18, Precision.FP32, 1, mean=4.0, most=10.0),
    "convolutions.tf32": Table(RESNET18, Precision.TF32, 1, mean=1.6, least=0.9),
    "convolutions.fp16": Table(RESNET18, Precision.FP16, 1, mean=1.6, least=0.9),
    "convolutions.bf16": Table(RESNET18, Precision.BF16, 1),
    "convolutions.fp16.b64": Table(RESNET18, Precision.FP16, 64, mean=1.0),
    "convolutions.fp32.b64": Table(RESNET18, Precision.FP32, 64, mean=1.5),
    "paper_table": Table(WOODPECKER, Precision.FP32, 1, mean=3.0),
}
"""ResNet-18's at batch 1 and 64, and Woodpecker-DL's table 1."""


def rows() -> list[Row]:
    """One a table."""
    claim = "table of the tuned kernels beside cuDNN's best fused engines"
    return [
        Row(name, claim, partial(_measure, table), goals=table.goals)
        for name, table in TABLES.items()
    ]


def _measure(table: Table, context: Context) -> Outcome:
    model, plan = context.folder / "convolutions.onnx", context.folder / "measured.plan"
    write_model(model, table.layers, table.precision, table.batch)
    command = ["optimize", model, "-o", plan, "--precision", table.precision]
    how = ["--effort", context.effort, "--budget", context.budget, "--cache", context.store]
    context.wpk(*command, *how)
    measured: dict[str, dict[str, Any]] = {}
    speedups: dict[str, Ratio] = {}
    for step in read_plan(plan).plan.steps:
        for layer in set(step.operator.nodes) & table.layers.keys():
            found = step.evidence.measurement
            if found is None:
                raise RowError(f"{layer} was not measured")
            measured[layer] = figures_of(found) | {"bound_seconds": step.evidence.bound_seconds}
            if found.generated is not None and found.library is not None:
                speedups[layer] = found.generated.speedup_over(found.library)
    if measured.keys() != table.layers.keys():
        raise RowError(f"no operator computes {sorted(table.layers.keys() - measured.keys())}")
    judged = judge(table, speedups)
    return Outcome(judged.passed, judged.summary, {"layers": measured} | judged.figures)


def judge(table: Table, speedups: dict[str, Ratio]) -> Outcome:
    """Hold speedups over cuDNN, by layer, to the goals of a table.

    Raises:
        RowError: cuDNN was compared with none.
    """
    if not speedups:
        raise RowError("cuDNN was compared with none of them")
    ratios = list(speedups.values())
    mean = geometric_mean(ratios)
    largest, smallest = (f(ratios, key=lambda ratio: ratio.median) for f in (max, min))
    figure_of = {MEAN: mean, LARGEST: largest, SMALLEST: smallest}
    judged: list[Judged] = [goal.judged_ratio(figure_of[goal.what]) for goal in table.goals]
    won = sum(ratio.low > 1 for ratio in ratios)
    summary = (
        f"{mean.median:.2f} times cuDNN's speed in the geometric mean of {len(ratios)} layers "
        f"({smallest.median:.2f} to {largest.median:.2f}), faster beyond noise in {won}"
    )
    figures = {"geometric_mean": mean.median} | as_figures(judged)
    complete = len(speedups) == len(table.layers)
    return Outcome(complete and all(each.reached for each in judged), summary, figures)


def figures_of(measured: Measurement) -> dict[str, Any]:
    """Both sides of one operator, and how many times as fast as cuDNN the generated kernel is."""
    generated, library = measured.generated, measured.library
    speedup = None
    if generated is not None and library is not None:
        speedup = asdict(generated.speedup_over(library))
    return {
        "generated": None if generated is None else asdict(generated),
        "cudnn": None if library is None else asdict(library),
        "refusals": list(measured.refusals),
        "speedup": speedup,
    }
