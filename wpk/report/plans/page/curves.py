"""How a problem's search went: the best so far against trials, with the lines that matter."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor, log10

from wpk.candidate import GENERATED
from wpk.plan import Curve, Measurement
from wpk.report.plans.contest import candidate_words, tally_words
from wpk.report.plans.measured import curve_name
from wpk.report.plans.page.markup import Html, joined, tag

_WIDTH, _HEIGHT = 320.0, 180.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 36.0, 312.0, 18.0, 158.0

_COLOURS = 6
"""Style classes ``curve-0`` to ``curve-5``; further curves begin again."""

_NICE = (1.0, 2.0, 5.0)
_LINEAR_BELOW = 3.0
"""Times that differ by less are drawn on a linear axis, others on a logarithmic one."""

_FEWEST_TICKS = 3
_ROUNDING = 1e-9
"""The relative rounding by which a mark at the very end of an axis still lies within it."""


@dataclass(frozen=True)
class _Axes:
    """Where trials and times (in microseconds) lie in the picture."""

    trials: int
    low: float
    high: float

    @property
    def logarithmic(self) -> bool:
        return self.low > 0 and self.high / self.low > _LINEAR_BELOW

    def x(self, trial: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * (trial - 1) / max(self.trials - 1, 1)

    def y(self, time: float) -> float:
        along: Callable[[float], float] = log10 if self.logarithmic else float
        span = along(self.high) - along(self.low)
        part = (along(time) - along(self.low)) / span if span > 0 else 0.5
        return _BOTTOM - (_BOTTOM - _TOP) * part

    def ticks(self) -> list[float]:
        """Round times within the axis."""
        if self.logarithmic:
            decades = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
            found = [nice * 10.0**decade for decade in decades for nice in _NICE]
        else:
            step = _round_step((self.high - self.low) / _FEWEST_TICKS)
            first = ceil(self.low / step)
            found = [step * number for number in range(first, first + 2 * _FEWEST_TICKS + 4)]
        low, high = self.low * (1 - _ROUNDING), self.high * (1 + _ROUNDING)
        return [tick for tick in found if low <= tick <= high]


def _round_step(least: float) -> float:
    """The largest of 1, 2, 5, 10, ... times a power of ten that is not above ``least``."""
    decade = 10.0 ** floor(log10(least)) if least > 0 else 1.0
    return decade * max((nice for nice in _NICE if nice * decade <= least), default=1.0)


def search_curves(measured: Measurement, bound_us: float, number: int) -> Html:
    """Return the picture of one problem's search with its legend, trials and what was known before."""
    curves = [curve for curve in measured.curves if curve.points]
    library = measured.library
    levels = [("bound", "bound", bound_us)] if bound_us > 0 else []
    if library is not None:
        name = f"{library.candidate.family}'s best"
        levels.append((name, "library", library.median_seconds * 1e6))
    keys = [
        tag("li", tag("span", class_=f"swatch curve-{place % _COLOURS}"), curve_name(curve))
        for place, curve in enumerate(curves)
    ]
    keys += [
        tag("li", tag("span", class_=f"swatch level-{kind}"), f"{name} {time:.2f} µs")
        for name, kind, time in levels
    ]
    picture = _picture(measured, curves, levels, number)
    lines = [
        f"Chosen: {candidate_words(measured.chosen)}.",
        f"{tally_words(measured)}; stopped: {measured.stop}.",
        *measured.lookups,
    ]
    lines += [f"Library: {reason}" for reason in measured.refusals]
    parts = [picture, tag("ul", *keys, class_="keys")] if curves else []
    return joined([*parts, *(tag("p", line, class_="legend") for line in lines)])


def _picture(
    measured: Measurement, curves: list[Curve], levels: list[tuple[str, str, float]], number: int
) -> Html:
    axes = _axes(measured, curves, levels)
    marks = [_tick(axes, tick) for tick in axes.ticks()]
    marks += [_trials(axes)]
    marks += [
        tag("path", d=f"M{_LEFT} {axes.y(time):.1f}H{_RIGHT}", class_=f"level-{kind}")
        for _, kind, time in levels
    ]
    marks += [_line(axes, curve, place % _COLOURS) for place, curve in enumerate(curves)]
    label = f"Best time so far against trials, problem {number + 1}"
    return tag(
        "svg",
        *marks,
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        role="img",
        aria_label=label,
        class_="curves",
    )


def _axes(
    measured: Measurement, curves: list[Curve], levels: list[tuple[str, str, float]]
) -> _Axes:
    times = [seconds * 1e6 for curve in curves for _, seconds in curve.points]
    times += [time for *_, time in levels]
    tried = sum(sum(t.statuses.values()) for t in measured.tallies if t.family == GENERATED)
    last = max((trial for curve in curves for trial, _ in curve.points), default=1)
    return _Axes(max(tried, last), min(times, default=1.0), max(times, default=1.0))


def _tick(axes: _Axes, time: float) -> Html:
    y = axes.y(time)
    return tag(
        "g",
        tag("path", d=f"M{_LEFT} {y:.1f}H{_RIGHT}", class_="grid"),
        tag("text", f"{time:g}", x=_LEFT - 4, y=y + 3, text_anchor="end"),
    )


def _trials(axes: _Axes) -> Html:
    return tag(
        "g",
        tag("text", "1", x=_LEFT, y=_BOTTOM + 14),
        tag("text", "trials", x=(_LEFT + _RIGHT) / 2, y=_BOTTOM + 14, text_anchor="middle"),
        tag("text", str(axes.trials), x=_RIGHT, y=_BOTTOM + 14, text_anchor="end"),
        tag("text", "µs", x=_LEFT - 4, y=10, text_anchor="end"),
    )


def _line(axes: _Axes, curve: Curve, colour: int) -> Html:
    """Draw steps: a best holds until the next one, and the last to the end of the search."""
    (first, seconds), *rest = curve.points
    path = f"M{axes.x(first):.1f} {axes.y(seconds * 1e6):.1f}"
    for trial, better in rest:
        path += f"H{axes.x(trial):.1f}V{axes.y(better * 1e6):.1f}"
    path += f"H{_RIGHT}"
    end, best = curve.points[-1]
    title = f"{curve_name(curve)}: {best * 1e6:.2f} µs after {end} trials"
    dot = tag("circle", cx=axes.x(end), cy=axes.y(best * 1e6), r=2.5)
    return tag("g", tag("title", title), tag("path", d=path), dot, class_=f"curve-{colour}")
