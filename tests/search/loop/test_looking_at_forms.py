"""What looking at forms may cost: nothing beside other work, a part of the budget else; on clocks that tests move."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import pytest

from wpk.dtypes import Precision
from wpk.errors import UnsupportedError
from wpk.graph_passes import pass_of
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.model import ModelForms
from wpk.problems import Problem
from wpk.search.loop import form_contest
from wpk.search.loop.budget import Budget
from wpk.search.loop.form_contest import BEGIN_SHARE, LOOK_SHARE, FormContest
from wpk.search.loop.form_tuning import FormTuning

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 8, 4, 3] x) => (float[1, 8, 4, 3] z) <float[8, 8, 1, 1] w = {WEIGHTS}>
{
    c = Conv(x, w)  r = Relu(c)  d = Conv(r, w)  s = Sigmoid(d)  e = Conv(s, w)  t = Tanh(e)
    f = Conv(t, w)  z = Abs(f)
}
""".replace("WEIGHTS", ", ".join(["0.5"] * 64))


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> ModelForms:
    path = tmp_path_factory.mktemp("forms") / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return ModelForms(Source(Path(path), {}, Precision.FP32, ("channels-last",)))


@dataclass
class Guess:
    """Every problem takes a second; those that are prepared are noted."""

    prepared: list[Problem] = field(default_factory=list)

    def seconds(self, problem: Problem) -> float:
        del problem
        return 1.0

    headroom = seconds

    def prepare(self, problems: Any, goes_on: Any) -> None:
        self.prepared += [problem for problem in problems if goes_on()]


class Looks:
    """A contest whose forms take a second each to be lowered."""

    def __init__(self, forms: ModelForms, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.now, self.lowered, self.guess = 0.0, list[frozenset[str]](), Guess()

        def lower(changed: frozenset[str]) -> LoweredModel:
            self.now += 1.0
            self.lowered.append(changed)
            return forms.lowered(changed)

        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(form_contest, "time", clock)
        given: Any = lower, forms.lowered(), self.guess, Budget(seconds)
        self.contest = FormContest(*given)


def test_looking_ends_with_its_part_of_the_budget(
    forms: ModelForms, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(forms, monkeypatch, seconds=1.0 / LOOK_SHARE)
    looks.contest.look()
    assert len(looks.lowered) == 1
    assert not looks.guess.prepared
    assert looks.contest._apart() == looks.contest._unfused() == {}
    assert len(looks.lowered) == 1


def test_the_form_to_begin_with_is_looked_for_in_a_part_of_that_whatever_else_goes_on(
    forms: ModelForms, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(forms, monkeypatch, seconds=1.0 / LOOK_SHARE / BEGIN_SHARE)
    looks.contest.begin()
    assert len(looks.lowered) == 1
    assert looks.contest.begun.looked_at == 1
    assert looks.contest.begun.changed == ()  # every problem takes a second: the fewest do least
    looks = Looks(forms, monkeypatch, seconds=1e3)
    kinds = {(pass_of(k), s[0].words) for k, s in looks.contest._forms.root.sites.items()}
    looks.contest.begin()
    assert len(looks.lowered) == len(kinds)


def test_looking_goes_on_as_long_as_other_work_does(
    forms: ModelForms, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = Looks(forms, monkeypatch, seconds=1.0 / LOOK_SHARE)
    looks.contest.look(is_free=lambda: True)
    assert len(looks.lowered) > 3
    assert len(set(looks.lowered)) == len(looks.lowered)
    assert looks.guess.prepared
    before = len(looks.lowered)
    assert looks.contest._unfused().keys() == {"unfused"}  # known by now, and so whatever the time
    assert looks.contest.lower(frozenset({"fuse-operators:*"})) is not None
    assert len(looks.lowered) == before


def test_time_that_other_forms_take_is_off_their_budget_whatever_it_went_for() -> None:
    now = [0.0]
    how: Any = SimpleNamespace(tuning=SimpleNamespace(budget=Budget(10.0, 9)))

    def within(budget: Budget) -> Any:
        return SimpleNamespace(tuning=SimpleNamespace(budget=budget), within=within)

    nothing: Any = None
    given = within(how.tuning.budget), nothing, nothing, nothing, nothing
    tuning = FormTuning(*given, clock=lambda: now[0])
    now[0] = 4.0
    assert tuning.measure([], []) == {}
    assert tuning.how.tuning.budget == Budget(6.0, 9)
    now[0] = 30.0
    assert tuning.measure([], []) == {}
    assert tuning.how.tuning.budget == Budget(0.0, 9)


def test_what_a_form_lacks_after_all_is_not_measured() -> None:
    def lower(changed: frozenset[str]) -> Any:
        if "refused" in changed:
            raise UnsupportedError("no kernel computes it", fix="")
        return SimpleNamespace(program=SimpleNamespace(problems=["a"]))

    nothing: Any = None
    tuning = FormTuning(nothing, lower, nothing, nothing, nothing)
    forms: Any = {p: frozenset({k}) for p, k in (("a", "x"), ("b", "x"), ("c", "refused"))}
    assert list(tuning._holding(forms)) == ["a"]
