"""Which forms of a model were tried, in words and in rows: what was taken back, and what that took."""

from collections import Counter

from wpk.plan import Begun, FormOutcome, FormSearch, TriedForm
from wpk.problems.signs import DASH

FORMS = ("what is taken back", "places", "estimate µs", "was", "measured µs", "was", "outcome")
"""Columns of `form_rows`."""


def form_sentences(search: FormSearch | None) -> list[str]:
    """Say how many partitions were compared, and which form the plan is; nothing where only one was looked at."""
    if search is None:
        return []
    how = "measured times" if search.measured else "the models, which must be sure,"
    counts = Counter(each.outcome for each in search.tried)
    words = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items())
    said = f"forms: {search.partitions} partitions of the model were compared by {how}"
    lines = [f"{said} ({words})." if words else f"{said}."]
    if search.begun is not None:
        lines.append(_begun_words(search.begun))
    if search.found and search.chosen != search.found:
        lines.append(
            "The best partition found was not the fastest whole engine beyond the noise: "
            f"it takes back {', '.join(search.found)}."
        )
    if search.chosen:
        lines.append(f"Taken back in this plan: {', '.join(search.chosen)}.")
    return lines


def _begun_words(begun: Begun) -> str:
    """Which form tuning began with, and why."""
    looked_at = f"of {begun.looked_at} that were looked at before"
    passes = f"{begun.passes_estimate * 1e6:.1f} µs by estimates"
    if not begun.changed:
        return f"Tuning began with the passes' own form, {passes}: none {looked_at} is faster by estimates."
    return (
        f"Tuning began with the form that the models prefer {looked_at}, {begun.estimate * 1e6:.1f} µs by estimates; "
        f"the passes' own is {passes}."
    )


def form_rows(search: FormSearch | None) -> list[list[str]]:
    """Return a row for each form that was compared; what the models ruled out is only counted."""
    tried = () if search is None else search.tried
    ruled_out = (FormOutcome.HOPELESS, FormOutcome.EQUAL)
    return [_row(each) for each in tried if each.outcome not in ruled_out]


def _row(form: TriedForm) -> list[str]:
    times = (form.predicted, form.predicted_usual, form.measured, form.measured_usual)
    outcome = f"{form.outcome.value}: {form.reason}" if form.reason else form.outcome.value
    again = "done again: " if form.again else ""
    what = f"{again}{form.usual} ({', '.join(form.keys)})"
    return [what, str(form.places), *map(_microseconds, times), outcome]


def _microseconds(seconds: float | None) -> str:
    return DASH if seconds is None else f"{seconds * 1e6:.2f}"
