"""What a plan says of its form: the partition found beside the one that passes make by rule, as whole engines."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from wpk.plan.forms import FormSearch
from wpk.plan.measurement import EngineMeasurement, EngineVariant

BEGUN = ("models", "generated", "library", "mixed")
"""Engines of the form that tuning began with; so are those that are called ``undone 1/4``, …"""

PASSES = "passes"
"""The engine of the form that passes make by rule, where tuning began with another: of what only that form has, models
choose the kernels."""


def form_figures(measured: EngineMeasurement | None, forms: FormSearch | None) -> dict[str, Any]:
    """The engine that was chosen beside the fastest of the passes' own form, the unfused and the library's.

    All are of one run of ``wpk optimize``: tuned within one budget, and measured in turns. Nothing is said where
    forms did not compete by measuring.
    """
    if measured is None or forms is None or not forms.measured:
        return {}
    chosen, usual = measured.plan, fastest_usual(measured)
    begun = forms.begun
    beside = {n: v for n in ("library", "unfused") if (v := measured.variant(n)) is not None}
    slower = [n for n, v in beside.items() if chosen.speedup_over(v).high < 1.0]
    figures = {
        "speedup": asdict(chosen.speedup_over(usual)),
        "usual": usual.name,
        "chosen": measured.chosen,
        "begun": None if begun is None else asdict(begun),
        "taken_back": list(forms.chosen),
        "found": list(forms.found),
        "partitions": forms.partitions,
        "outcomes": dict(Counter(each.outcome.value for each in forms.tried)),
        "tried": [asdict(each) for each in forms.tried if each.measured is not None],
        "variants": {variant.name: asdict(variant) for variant in measured.variants},
        "slower_than": slower,
    }
    return {"forms": figures}


def fastest_usual(measured: EngineMeasurement) -> EngineVariant:
    """Return the fastest engine of the form that passes make by rule; of the one begun with where that was not measured."""
    passes = measured.variant(PASSES)
    if passes is not None:
        return passes
    usual = [v for v in measured.variants if v.name in BEGUN or v.name.startswith("undone")]
    return min(usual, key=lambda each: each.median_seconds)
