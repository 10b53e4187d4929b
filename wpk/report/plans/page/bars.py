"""Bars beside numbers."""

from wpk.plan import Contestant, EngineVariant
from wpk.report.plans.page.markup import Html, tag


def bar(*pieces: Html) -> Html:
    """Return the track of a bar with its pieces; whoever cannot see it reads the number beside it."""
    return tag("span", *pieces, class_="bar", aria_hidden="true")


def piece(shade: str, percent: float) -> Html:
    """Return a piece from the left end of a bar to a part of its length."""
    return tag("span", class_=shade, style=f"width:{percent:.2f}%")


def noise_bar(timed: Contestant | EngineVariant, slowest: float, shade: str) -> Html:
    """Return a bar as long as a median, with the noise band at its end.

    Args:
        timed: What was measured.
        slowest: Seconds that the whole length of the bar stands for.
        shade: Style class of the median.
    """
    part = 100 / slowest
    low, width = part * timed.low_seconds, part * (timed.high_seconds - timed.low_seconds)
    noise = tag("span", class_="noise", style=f"left:{low:.2f}%;width:{width:.2f}%")
    return bar(piece(shade, part * timed.median_seconds), noise)
