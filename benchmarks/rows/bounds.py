"""No measurement lies under its bound."""

from __future__ import annotations

from rows.base import Context, Outcome, Row, RowError
from rows.trials import over_bound, stores_in


def rows() -> list[Row]:
    """One, over all stores of all rows so far."""
    claim = "every trial that ran took longer than its roofline bound"
    return [Row("bounds", claim, _measure, is_last=True)]


def _measure(context: Context) -> Outcome:
    stores = stores_in(context.store)
    ratios = [pair for path in stores for pair in over_bound(path)]
    if not ratios:
        raise RowError(f"no trials in {context.store}: measure other rows first")
    under = [(ratio, trial) for ratio, trial in ratios if ratio <= 1.0]
    least, trial = min(ratios, key=lambda pair: pair[0])
    figures = {
        "stores": len(stores),
        "trials": len(ratios),
        "under": [f"{each.template} {dict(each.schedule)}: {r:.3f}" for r, each in under],
        "least_multiple_of_the_bound": least,
        "least_template": trial.template,
    }
    summary = f"{len(ratios)} trials, {len(under)} under; the least is {least:.2f} times its bound"
    return Outcome(not under, summary, figures)
