"""Where engines of all forms do not fit into the GPU together, those of the usual form are compared."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from wpk.errors import EngineError
from wpk.plan import EngineVariant
from wpk.search.loop.budget import ENGINES_SHARE, MEASURING_SHARE, Budget, Watch
from wpk.search.loop.confirmation import fastest_engine

MODULE = import_module("wpk.search.loop.measured_model")  # the door has a function of this name


@pytest.mark.parametrize("others", [{}, {"found": "other"}])
def test_what_does_not_fit_is_told_and_the_usual_form_is_compared(
    others: dict[str, str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[list[str]] = []

    def confirmed(forms: list[Any], *_given: Any) -> Any:
        asked.append([form.name for form in forms])
        if len(asked) == 1:
            raise EngineError("there is no memory for all", fix="")
        return SimpleNamespace(form=forms[0], book=None)

    found = SimpleNamespace(models=others, partitioning=None) if others else None
    monkeypatch.setattr(MODULE, "confirmed", confirmed)
    monkeypatch.setattr(MODULE, "_tuned", lambda *_given: (found, None))
    monkeypatch.setattr(MODULE, "static_choices", lambda static: static)
    form = lambda name, *_given, **_named: SimpleNamespace(name=name)  # noqa: E731
    monkeypatch.setattr(MODULE, "_form", form)
    monkeypatch.setattr(MODULE, "recorded", lambda *_given, **_named: None)
    monkeypatch.setattr(MODULE, "replace", lambda best, **_changes: best)
    lease = SimpleNamespace(process=lambda: None)
    how: Any = SimpleNamespace(equipment=SimpleNamespace(lease=lease), tell=None, cases=())
    lowered: Any = SimpleNamespace(source=SimpleNamespace(changed=frozenset()))
    given: Any = (lowered, None, how, None, None, Watch(Budget(), 0.0), None)
    if not others:
        with pytest.raises(EngineError):
            MODULE.measured_model(*given)
        return
    assert MODULE.measured_model(*given).lowered is lowered
    assert asked == [["", "found"], [""]]
    assert "there is no memory for all" in caplog.text


class _Cases:
    """Cases that were waited for."""

    def __init__(self, waited: float, error: Exception | None = None) -> None:
        self.waited, self._error = waited, error

    def expected_seconds(self) -> float:
        return 7.0

    def check(self) -> None:
        if self._error is not None:
            raise self._error


def test_time_counts_from_the_first_trial_and_waiting_for_references_is_no_measuring(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 12.0
    spent: list[Budget] = []

    def tune_model(*given: Any) -> str:
        nonlocal now
        now += 70.0  # the static choices, 55 s of which waited for references
        spent.append(given[-1]())
        return "tuned"

    monkeypatch.setattr(MODULE.time, "monotonic", lambda: now)
    monkeypatch.setattr(MODULE, "tune_model", tune_model)
    how: Any = SimpleNamespace(cases=(_Cases(50.0), _Cases(5.0)))
    watch = Watch(Budget(seconds=100.0), 0.0, lambda: now)
    assert MODULE._tuned(None, None, how, None, None, watch) == (None, "tuned")
    least = MEASURING_SHARE * 100.0 - (70.0 - 55.0)
    assert spent[0].seconds == pytest.approx(least - ENGINES_SHARE * 100.0)
    assert watch.for_engines() == pytest.approx(least)


def test_an_error_of_references_that_nobody_asked_for_ends_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best = SimpleNamespace(form=SimpleNamespace(name=""))
    monkeypatch.setattr(MODULE, "_tuned", lambda *_given: (None, None))
    monkeypatch.setattr(MODULE, "_form", lambda *_given, **_named: None)
    monkeypatch.setattr(MODULE, "static_choices", lambda static: static)
    monkeypatch.setattr(MODULE, "confirmed", lambda *_given: best)
    lease = SimpleNamespace(process=lambda: None)
    for error in (None, EngineError("nobody executes 'erf_3'", fix="")):
        cases = _Cases(0.0), _Cases(0.0, error)
        how: Any = SimpleNamespace(equipment=SimpleNamespace(lease=lease), tell=None, cases=cases)
        given: Any = None, None, how, None, None, Watch(Budget(), 0.0), None
        if error is None:
            assert MODULE.measured_model(*given).engine is best
        else:
            with pytest.raises(EngineError, match="nobody executes 'erf_3'"):
                MODULE.measured_model(*given)


@pytest.mark.parametrize(
    ("found", "noise", "chosen"),
    [
        (99.0, 0.01, "mixed"),
        (99.9, 0.01, "mixed"),
        (90.0, 0.01, "found"),
        (110.0, 0.01, "mixed"),
        (99.4, 0.001, "mixed"),
        (98.5, 0.001, "found"),
    ],
)
def test_another_form_must_be_faster_beyond_the_noise(
    found: float, noise: float, chosen: str
) -> None:
    """By 1 %: what differs was tried a few times in either form."""
    variants = [
        EngineVariant(name, median, (1 - noise) * median, (1 + noise) * median, 0, 1)
        for name, median in (("models", 105.0), ("mixed", 100.0), ("found", found))
    ]
    assert fastest_engine(variants, ["models", "mixed"]) == chosen
