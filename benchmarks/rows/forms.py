"""Forms of models: the best partition found beside the one that passes make by rule, as whole engines.

Both engines are of one run of `wpk optimize`: tuned within one budget, and measured in turns with each other, with the unfused engine,
and with one that calls libraries wherever it can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from rows.base import Context, Outcome, Row, RowError, microseconds
from rows.goals import Goal, as_figures, geometric_mean
from rows.result_file import Record
from rows.tuned import measure_tuned
from rows.zoo import ZooCase
from wpk.dtypes import Precision
from wpk.plan.forms import FormSearch
from wpk.plan.measurement import EngineMeasurement, EngineVariant, Ratio
from wpk.plan.plan_file import read_plan

NETWORKS = (
    *("resnet", "densenet", "inception", "mobilenet-v3", "efficientnet"),
    *("bert", "vit", "swin", "convnext", "shufflenet"),
)
BATCHES = (1, 32)

USUAL = ("models", "generated", "library", "mixed")
"""Engines of the form that passes make by rule; so are those that are called ``undone 1/4``, …"""

BUDGET = "100s"
"""Of tuning each network, from its file to the last check: other forms have their part of it."""

LEAST = Goal("speedup of the form that was chosen over the usual one", 0.99)
MEAN = Goal("geometric mean of these speedups", 1.05)


class FormCase(ZooCase):
    """A network of the zoo, whose trials are none of the zoo's own rows."""

    def cache(self, context: Context) -> Path:
        """A folder of its own."""
        return context.store / "forms" / str(self)


def cases() -> list[FormCase]:
    """All networks at both batches."""
    return [FormCase(name, Precision.FP16, batch) for name in NETWORKS for batch in BATCHES]


def rows() -> list[Row]:
    """One a network and batch, and one of all of them."""
    claim = (
        "the partition found beside the passes' own, and neither unfused nor all-library is faster"
    )
    found = [
        Row(f"forms.{case}", claim, partial(_measured, case), goals=(LEAST,)) for case in cases()
    ]
    together = "the partitions found beside the passes' own, over all networks and batches"
    last = Row("forms.mean", together, _judge_rows, is_last=True, goals=(MEAN, LEAST))
    return [*found, last]


def _measured(case: FormCase, context: Context) -> Outcome:
    return measure_tuned(case, _measure, replace(context, budget=BUDGET))


def _measure(plan: Path, _context: Context) -> Outcome:
    written = read_plan(plan).plan
    outcome = judge(written.measurement, written.forms)
    checks = [check.detail for check in written.checks]
    return replace(outcome, figures=outcome.figures | {"checks": checks})


def judge(measured: EngineMeasurement | None, forms: FormSearch | None) -> Outcome:
    """Hold the chosen engine to the fastest of the usual form, to the unfused and to the library's.

    Raises:
        RowError: Forms did not compete, or nothing was measured.
    """
    if measured is None or forms is None or not forms.measured:
        raise RowError("forms of this plan did not compete by measuring")
    chosen, usual = measured.plan, fastest_usual(measured)
    ratio = chosen.speedup_over(usual)
    beside = {n: v for n in ("library", "unfused") if (v := measured.variant(n)) is not None}
    slower = [n for n, v in beside.items() if chosen.speedup_over(v).high < 1.0]
    judged = LEAST.judged_ratio(ratio)
    times = ", ".join(f"{v.name} {microseconds(v.median_seconds)}" for v in measured.variants)
    counts = Counter(each.outcome.value for each in forms.tried)
    summary = f"{judged}; {forms.partitions} partitions; {measured.chosen} of {times}"
    if slower:
        summary += f"; SLOWER than {', '.join(slower)}"
    figures: dict[str, Any] = {
        "speedup": asdict(ratio),
        "usual": usual.name,
        "chosen": measured.chosen,
        "taken_back": list(forms.chosen),
        "found": list(forms.found),
        "partitions": forms.partitions,
        "outcomes": dict(counts),
        "tried": [asdict(each) for each in forms.tried if each.measured is not None],
        "variants": {variant.name: asdict(variant) for variant in measured.variants},
        "slower_than": slower,
    }
    return Outcome(judged.reached and not slower, summary, figures | as_figures([judged]))


def fastest_usual(measured: EngineMeasurement) -> EngineVariant:
    """Return the fastest engine of the usual form.

    Raises:
        RowError: There is none.
    """
    usual = [v for v in measured.variants if v.name in USUAL or v.name.startswith("undone")]
    if not usual:
        raise RowError("no engine of the usual form was measured")
    return min(usual, key=lambda each: each.median_seconds)


def _judge_rows(context: Context) -> Outcome:
    return judge_rows(context.records)


def judge_rows(records: Mapping[str, Record]) -> Outcome:
    """Hold all rows together to the goals.

    Raises:
        RowError: One has not been measured.
    """
    names = [f"forms.{case}" for case in cases()]
    missing = [name for name in names if "figures" not in records.get(name, {})]
    if missing:
        raise RowError(f"not measured yet: {', '.join(missing)}")
    ratios = {name: Ratio(**records[name]["figures"]["speedup"]) for name in names}
    least = min(ratios.values(), key=lambda ratio: ratio.median)
    judged = [MEAN.judged_ratio(geometric_mean([*ratios.values()])), LEAST.judged_ratio(least)]
    slower = [name for name in names if records[name]["figures"]["slower_than"]]
    partitions = sum(records[name]["figures"]["partitions"] for name in names)
    figures: dict[str, Any] = {
        "speedups": {name: ratio.median for name, ratio in ratios.items()},
        "partitions": partitions,
        "slower": slower,
    }
    summary = f"{'; '.join(map(str, judged))}; {partitions} partitions were compared"
    return Outcome(
        all(each.reached for each in judged) and not slower, summary, figures | as_figures(judged)
    )
