"""Engines of two commits: what counts as slower, as noise, and as right; and how the earlier one is made."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from export import weights_of
from rows import since
from rows.base import EARLIER, Context, Outcome, RowError
from rows.networks import OURS
from rows.since import (
    AGAIN,
    ASKED,
    BEFORE,
    LOADS,
    MOST_NOISE,
    Samples,
    earlier_plan,
    judge,
    judge_all,
    rows,
)
from rows.tuned import Case, RefusedError
from rows.turns import Side, take_turns
from subjects.earlier import first_on_path, unpacked
from support.commits.checkouts import Checkout, edit
from support.commits.pretended_wpk import pretend_wpk
from support.plans.quick_search import compile_one

from wpk.checks.limits import LIMITS, OutputDistance
from wpk.dtypes import Precision
from wpk.pipeline import optimize

FP16 = Precision.FP16
SMALL = OutputDistance(1e-4, 1e-3)
RIGHT = dict.fromkeys((BEFORE, OURS, AGAIN), SMALL)
CASE = Case("resnet50", FP16, 1)

TOO_FAR = 2.0 * LIMITS[FP16].worst
FAR = OutputDistance(1e-4, TOO_FAR)
NAN = OutputDistance(float("nan"), float("nan"))
BLURRED, SPOILT = OutputDistance(0.2, 0.4), OutputDistance(0.05, 0.8)


def loads(before: float, again: float = 1.0, spread: float = 0.0) -> list[Samples]:
    """Of an engine that takes 100 µs, itself again, and an earlier one, whose time differs between loads."""
    turns = [100e-6 * (1 + turn / 100) for turn in range(12)]
    moves = [1 + spread * (2 * number / (LOADS - 1) - 1) for number in range(LOADS)]
    return [
        {
            BEFORE: [each * before * moved for each in turns],
            OURS: turns,
            AGAIN: [each * again for each in turns],
        }
        for moved in moves
    ]


@pytest.mark.parametrize(
    ("measured", "slower"),
    [
        (loads(1.2), False),  # faster
        (loads(1.0), False),
        (loads(0.95), True),
        (loads(0.99), True),  # nothing else moves: 1 % is no noise
        (loads(0.99, spread=0.012), False),  # in some loads it is faster
        (loads(0.97, spread=0.012), True),
        (loads(0.98, again=1.025), False),  # the same engine is as far from itself
        (loads(0.96, again=1.025), True),
    ],
)
def test_slower_is_what_lies_below_the_noise(measured: list[Samples], *, slower: bool) -> None:
    outcome = judge(EARLIER, FP16, measured, RIGHT)
    assert outcome.figures["slower"] is slower
    assert outcome.passed is not slower
    assert ("SLOWER" in outcome.summary) is slower
    assert outcome.figures["since"] == EARLIER


def test_drift_of_clocks_is_in_both_of_a_turn() -> None:
    figures = judge(EARLIER, FP16, loads(0.9), RIGHT).figures
    assert [figures["speedup"][each] for each in ("low", "high")] == pytest.approx([0.9, 0.9])
    assert figures["noise"] == pytest.approx(0.0)
    assert figures["times"][OURS]["high_seconds"] > 1.01 * figures["times"][OURS]["low_seconds"]


def test_a_control_that_differs_from_itself_is_no_measurement() -> None:
    assert judge(EARLIER, FP16, loads(1.0, again=1 + 0.9 * MOST_NOISE), RIGHT).passed
    with pytest.raises(RowError, match=r"(?s)same engine in two processes differs by 6.*fix:"):
        judge(EARLIER, FP16, loads(1.0, again=1.06), RIGHT)


@pytest.mark.parametrize(
    ("errors", "wrong"),
    [
        ({OURS: FAR}, [OURS]),
        ({BEFORE: FAR}, [BEFORE]),  # what was wrong may well have been faster
        ({OURS: NAN}, [OURS]),
        ({OURS: NAN, BEFORE: NAN}, [OURS, BEFORE]),
        ({OURS: BLURRED, BEFORE: BLURRED}, [OURS, BEFORE]),  # each would excuse the other
        ({OURS: SPOILT, BEFORE: SPOILT}, [OURS, BEFORE]),
        ({OURS: FAR, BEFORE: OutputDistance(1e-4, 0.6 * TOO_FAR)}, []),  # rounding does this much
    ],
)
def test_wrong_outputs_do_not_pass(errors: dict[str, OutputDistance], wrong: list[str]) -> None:
    outcome = judge(EARLIER, FP16, loads(1.5), RIGHT | errors)
    assert outcome.passed is (not wrong)
    assert outcome.figures["right"] is (not wrong)
    assert [name for name in (OURS, BEFORE) if f"WRONG: {name}," in outcome.summary] == wrong


def record(speedup: float, **more: Any) -> dict[str, Any]:
    outcome = judge(EARLIER, FP16, loads(speedup), RIGHT)
    return {"passed": outcome.passed, "figures": outcome.figures | more}


def records(**given: dict[str, Any]) -> dict[str, Any]:
    found = {f"since.{case}": record(1.1) for case in ASKED}
    return found | {f"since.{name.replace('_fp', '.fp')}.b1": each for name, each in given.items()}


def test_all_rows_are_held_to_none_slower() -> None:
    assert len(ASKED) == 6
    outcome = judge_all(records(), EARLIER)
    assert outcome.passed
    assert outcome.figures["goals"][0]["value"] == 0
    assert outcome.figures["mean"]["median"] == pytest.approx(1.1)
    slower = judge_all(records(resnet50_fp16=record(0.9)), EARLIER)
    assert not slower.passed
    assert slower.figures["bad"] == ["since.resnet50.fp16.b1"]
    assert "since.resnet50.fp16.b1" in slower.summary
    wrong = judge_all(records(resnet50_fp16=record(2.0, right=False)), EARLIER)
    assert wrong.figures["bad"] == ["since.resnet50.fp16.b1"]
    assert not wrong.passed


def test_rows_that_are_not_asked_for_count_where_they_were_measured() -> None:
    assert not judge_all(records(resnet50_fp32=record(0.9)), EARLIER).passed
    assert judge_all(records(resnet50_fp32=record(0.9, since="0" * 8)), EARLIER).passed


@pytest.mark.parametrize("bad", [{"error": "no GPU"}, record(1.1, since="0" * 8)])
def test_nothing_is_said_of_all_before_all_are_compared(bad: dict[str, Any]) -> None:
    with pytest.raises(
        RowError, match=r"not compared with bfc01fc0 yet: since\.resnet50\.fp16\.b1"
    ):
        judge_all(records(resnet50_fp16=bad), EARLIER)


@pytest.fixture(name="context")
def fixture_context(tmp_path: Path) -> Context:
    networks = tmp_path / "store" / "networks"
    networks.mkdir(parents=True)
    (networks / "resnet50.onnx").write_text("a model")
    weights_of(networks / "resnet50.onnx").write_text("its weights")
    folder = tmp_path / "row"
    folder.mkdir()
    return Context(tmp_path / "store", folder, time.monotonic() + 200.0, budget="77s")


def test_the_earlier_wpk_tunes_the_same_model_as_today_within_the_budget_in_a_store_of_its_own(
    context: Context, tmp_path: Path
) -> None:
    plan = earlier_plan(CASE, pretend_wpk(tmp_path / "old"), context)
    said = plan.read_text()
    who, *command = said.split()
    assert who == "old"
    assert command[:2] == ["optimize", str(context.store / "networks" / "resnet50.onnx")]
    given = dict(zip(command[2::2], command[3::2], strict=True))
    assert (given["--budget"], given["--effort"], given["--precision"]) == ("77s", "1", "fp16")
    assert given["--shapes"] == "image:1x3x224x224"
    assert Path(given["--cache"]) == context.store / "earlier" / f"{EARLIER}.store"
    assert earlier_plan(CASE, pretend_wpk(tmp_path / "not again"), context) == plan
    assert plan.read_text() == said


def test_what_the_earlier_wpk_refuses_is_said_to_be_its_refusal(
    context: Context, tmp_path: Path
) -> None:
    package = pretend_wpk(tmp_path / "old", refuses=True)
    with pytest.raises(
        RefusedError, match=r"(?s)the wpk of bfc01fc0: exit code 1.*old does not know"
    ):
        earlier_plan(CASE, package, context)


def test_a_row_compares_with_the_commit_that_it_is_told(
    context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    packages, ours = {"1234567": pretend_wpk(tmp_path / "old")}, tmp_path / "todays.plan"

    def beside(case: Case, earlier: Side, plan: Path, _context: Context) -> Outcome:
        assert (str(case), plan) == ("resnet50.fp16.b1", ours)
        assert (earlier.package, earlier.plan.read_text()[:4]) == (packages["1234567"], "old ")
        return Outcome(True, "measured", {"slower": False})

    def tuned(case: Case, measure: Callable[[Path, Context], Outcome], given: Context) -> Outcome:
        assert str(case) == "resnet50.fp16.b1"
        return measure(ours, given)

    monkeypatch.setattr(since, "unpacked", lambda commit, _folder: packages[commit])
    monkeypatch.setattr(since, "_measure_beside", beside)
    monkeypatch.setattr(since, "measure_tuned", tuned)
    (row,) = (each for each in rows() if each.name == "since.resnet50.fp16.b1")
    figures = row.measure(replace(context, since="1234567")).figures
    assert figures["slower"] is False
    assert figures["before_tuning_seconds"] > 0


@pytest.fixture(name="on_cpu")
def fixture_on_cpu(
    monkeypatch: pytest.MonkeyPatch, small_model: Path, tmp_path: Path
) -> Callable[[Path], Any]:
    """Compares the small network's plan, executed on the CPU, where times are noise, with one by another package."""
    plan = tmp_path / "small.plan"
    compile_one(monkeypatch)
    optimize(small_model, plan, target="h200", precision="fp32", check="off")
    monkeypatch.setattr(since, "LOADS", 1)
    monkeypatch.setattr(since, "MOST_NOISE", float("inf"))
    monkeypatch.setattr(since, "take_turns", partial(take_turns, device="cpu", turns=3))
    monkeypatch.setattr(Case, "model", lambda *_given: small_model)
    context = Context(tmp_path, tmp_path, time.monotonic() + 200.0)

    def compare(package: Path, before: Path = plan) -> Any:
        earlier = Side(BEFORE, before, package)
        return since._measure_beside(Case("small", Precision.FP32, 1), earlier, plan, context)

    return compare


@pytest.mark.slow
def test_another_commits_engine_runs_beside_todays_and_its_wrong_outputs_are_seen(
    on_cpu: Callable[[Path], Any], checkout: Checkout, tmp_path: Path
) -> None:
    package = unpacked(checkout.commit("today's"), tmp_path / "packages", checkout.root)
    right = on_cpu(package)
    assert right.figures["right"], right.summary
    assert right.figures["errors"][BEFORE] == right.figures["errors"][OURS]
    edit(
        package / "wpk/engine/arrays_file.py",
        "raw = array.view",
        "array = array * 2; raw = array.view",
    )
    wrong = on_cpu(package)
    assert not wrong.passed
    assert f"WRONG: {BEFORE}," in wrong.summary
    assert f"WRONG: {OURS}," not in wrong.summary


@pytest.mark.slow
def test_the_engine_of_the_commit_that_rows_name_runs_beside_todays(
    on_cpu: Callable[..., Any], history: Path, small_model: Path, tmp_path: Path
) -> None:
    package = unpacked(EARLIER, tmp_path / "packages", history)
    environment = first_on_path(package)
    own = Context(tmp_path, tmp_path, time.monotonic() + 200.0, environment=environment)
    plan = tmp_path / "before.plan"
    how = ["--target", "h200", "--search", "static", "--check", "off"]
    own.wpk("optimize", small_model, "-o", plan, *how, "--cache", tmp_path / "store")
    outcome = on_cpu(package, plan)
    assert outcome.figures["right"], outcome.summary
    assert min(outcome.figures["times"][BEFORE].values()) > 0


def test_every_row_has_a_case() -> None:
    names = [row.name for row in rows()]
    assert names[-1] == "since.all"
    assert len(names) == len(set(names)) == 13
