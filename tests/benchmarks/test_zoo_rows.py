"""The zoo: which networks it has, what a commit draws, and what rows are held to together."""

from __future__ import annotations

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import summary
from rows import zoo as zoo_rows
from rows.base import Context, Outcome, RowError
from rows.goals import Goal
from rows.networks import WHAT
from rows.tuned import RefusedError
from rows.zoo import Together, ZooCase, counted, judge, refused, rows
from zoo import drawing
from zoo.catalogue import zoo
from zoo.drawing import COUNT, Draw

from wpk.dtypes import Precision
from wpk.plan.measurement import Ratio

COMMIT = "bfc01fc0aa"
CASES = tuple(ZooCase(name, Precision.FP16, 1) for name in ("resnet", "bert", "dlrm"))
GROUP = Together("zoo.mean.x", "", CASES, mean=2.0, least=1.1)


def test_the_zoo_has_a_network_of_each_of_many_families() -> None:
    networks = zoo()
    assert len(networks) >= 30
    names = [each.architecture.name for each in networks.values()]
    assert len(set(names)) == len(names)
    kinds = {each.architecture.kind for each in networks.values()}
    assert kinds >= {
        "classification",
        "segmentation",
        "detection",
        "super-resolution",
        "encoder",
        "decoder",
        "speech",
        "recommendation",
    }
    lengths = {given.shape[1:] for each in networks.values() for given in each.architecture.inputs}
    assert {(128,), (384,)} <= lengths
    for network in networks.values():
        assert all(given.shape[0] == "batch" for given in network.architecture.inputs)
        assert 1 < network.large_batch <= 32


def test_a_network_of_many_tokens_is_measured_at_fewer_inputs() -> None:
    networks = zoo()
    assert (networks["ast"].large_batch, networks["vit"].large_batch) == (4, 32)
    group = zoo_rows._groups(("ast", "vit"), ())[2]
    assert [str(case) for case in group.cases] == ["ast.fp16.b4", "vit.fp16.b32"]
    names = {row.name for row in rows()}
    assert {"zoo.ast.fp16.b4", "zoo.vit.fp16.b32"} <= names
    assert "zoo.ast.fp16.b32" not in names


def test_a_commit_chooses_the_same_networks_again_and_another_commit_others() -> None:
    families = list(zoo())
    chosen = drawing.chosen(COMMIT, families)
    assert chosen == drawing.chosen(COMMIT[:8], families[::-1])
    assert chosen != drawing.chosen("0" * 8, families)
    assert len(set(chosen)) == COUNT
    for wrong in ("bfc01fc", "HEAD", "not a commit"):
        with pytest.raises(ValueError, match="invalid literal"):
            drawing.chosen(wrong, families)


def test_networks_are_drawn_family_first_and_what_is_skipped_says_why() -> None:
    families = {f"family{n}": [f"net{n}_{k}" for k in range(1 + 40 * (n == 0))] for n in range(20)}

    def why_not(name: str) -> str:
        return "too large" if name.startswith("net7_") else ""

    found, skipped = drawing.drawn(COMMIT, families, why_not)
    assert (found, skipped) == drawing.drawn(COMMIT, families, why_not)
    assert len({name.split("_")[0] for name in found}) == len(found) == COUNT
    assert not [name for name in found if name.startswith("net7_")]
    assert set(skipped) <= {"net7_0"}
    everything, none = drawing.drawn(COMMIT, families, lambda _name: "never")
    assert not everything
    assert len(none) == 60


def test_what_was_drawn_is_kept_once(tmp_path: Path) -> None:
    path, draw = tmp_path / "drawn.json", Draw(COMMIT, ("a",), ("b",), {"c": "why"}, {"timm": "1"})
    assert drawing.kept(path) is None
    drawing.keep(draw, path)
    assert drawing.kept(path) == draw
    with pytest.raises(FileExistsError):
        drawing.keep(draw, path)


def test_what_was_drawn_here_is_what_its_commit_draws() -> None:
    found = drawing.kept()
    if found is None:
        pytest.skip("nothing is drawn yet")
    assert found.chosen == drawing.chosen(found.commit, list(zoo()))
    assert len(found.drawn) == COUNT


def test_a_draw_adds_rows_and_goals_stay_where_there_is_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(zoo_rows, "kept", lambda: None)
    before = {row.name: row for row in rows()}
    assert len(before) == 3 * len(zoo()) + 4
    assert [goal.asked for goal in before["zoo.mean.drawn"].goals] == [1.9, 1.0]
    assert [goal.asked for goal in before["zoo.mean.fp16.b1"].goals] == [2.2, 1.15]
    drawn = Draw(COMMIT, ("bert", "unet"), ("lite0",), {}, {})
    monkeypatch.setattr(zoo_rows, "kept", lambda: drawn)
    after = {row.name: row for row in rows()}
    assert set(after) - set(before) == {"zoo.drawn.lite0.fp16.b1"}
    assert [goal.asked for goal in after["zoo.bert.fp32.b1"].goals] == [1.15]
    large = f"zoo.unet.fp16.b{zoo()['unet'].large_batch}"
    assert [goal.asked for goal in after[large].goals] == [1.0]
    held = {group.name: [str(case) for case in group.cases] for group in zoo_rows.groups()}
    assert held["zoo.mean.fp32.b1"] == ["bert.fp32.b1", "unet.fp32.b1"]
    assert [f"zoo.{case}" for case in held["zoo.mean.fp16.large"]] == ["zoo.bert.fp16.b32", large]


def record(speedup: float, **more: Any) -> dict[str, Any]:
    figures = {"right": True, "plan": {"inconclusive": []}}
    return {
        "summary": f"{speedup} times",
        "figures": figures | {"speedup": asdict(Ratio(speedup, speedup, speedup))} | more,
    }


def records(*given: dict[str, Any]) -> dict[str, Any]:
    return {f"zoo.{case}": each for case, each in zip(CASES, given, strict=True)}


def test_rows_are_held_to_a_mean_and_a_least() -> None:
    assert judge(GROUP, records(record(1.2), record(2.0), record(4.0))).passed
    assert not judge(GROUP, records(record(1.2), record(2.0), record(3.0))).passed  # the mean
    low = judge(GROUP, records(record(1.09), record(4.0), record(4.0)))
    assert not low.passed  # the least
    assert low.figures["ascending"][0] == "zoo.resnet.fp16.b1"


@pytest.mark.parametrize(
    "bad",
    [
        record(9.0, right=False),
        record(9.0, plan={"inconclusive": ["says nothing"]}),
        {"figures": refused(Goal(WHAT, 1.0), "no kernel").figures},
    ],
)
def test_what_is_refused_inconclusive_or_wrong_counts_as_half(bad: dict[str, Any]) -> None:
    assert counted(bad["figures"]).median == 0.5
    outcome = judge(GROUP, records(record(8.0), bad, record(8.0)))
    mean, least = outcome.figures["goals"]
    assert mean["value"] == pytest.approx(32 ** (1 / 3))
    assert least["value"] == 0.5
    assert outcome.figures["halves"] == ["zoo.bert.fp16.b1"]
    assert not outcome.passed


def test_no_mean_is_told_before_all_is_measured_or_drawn() -> None:
    some = records(record(2.0), record(2.0), {"error": "no GPU"})
    with pytest.raises(RowError, match=r"not measured yet: zoo\.dlrm\.fp16\.b1"):
        judge(GROUP, some)
    with pytest.raises(RowError, match="nothing is drawn"):
        judge(replace(GROUP, cases=()), some)


@pytest.fixture(name="context")
def fixture_context(tmp_path: Path) -> Context:
    return Context(tmp_path / "store", tmp_path, time.monotonic() + 60.0)


def test_a_row_tells_refusals_of_wpk_from_failures_of_others(
    monkeypatch: pytest.MonkeyPatch, context: Context
) -> None:
    (row,) = (each for each in rows() if each.name == "zoo.resnet.fp16.b1")

    def raising(error: Exception) -> Any:
        def measure(_case: Any, _ways: Any, _goal: Any, given: Context) -> Outcome:
            assert given.budget == "60s"
            raise error

        return measure

    monkeypatch.setattr(zoo_rows, "tuned_beside", raising(RefusedError("exit code 1:\nno kernel")))
    outcome = row.measure(context)
    assert not outcome.passed
    assert outcome.figures["refused"] == "exit code 1:\nno kernel"
    monkeypatch.setattr(zoo_rows, "tuned_beside", raising(RowError("PyTorch has no memory")))
    with pytest.raises(RowError, match="PyTorch has no memory"):
        row.measure(context)


def test_an_engine_that_no_check_can_judge_does_not_pass(
    monkeypatch: pytest.MonkeyPatch, context: Context
) -> None:
    (row,) = (each for each in rows() if each.name == "zoo.resnet.fp16.b1")
    for said, passes in (([], True), (["says nothing"], False)):
        fast = Outcome(True, "fast", {"plan": {"inconclusive": said}})
        monkeypatch.setattr(zoo_rows, "tuned_beside", lambda *_given, fast=fast: fast)
        assert row.measure(context).passed is passes


def test_every_network_is_tuned_from_a_store_of_its_own(context: Context) -> None:
    places = {case.cache(context) for case in CASES}
    assert len(places) == len(CASES)
    assert context.store not in places


def test_the_worst_come_first_and_say_what_they_lose_most_on() -> None:
    lost = {"problem": "conv 3x3", "operators": 7, "beyond_seconds": 12e-6}
    named = {
        "zoo.fast": record(3.0),
        "zoo.slow": record(0.7, beyond_bound=[lost]),
        "zoo.refused": {
            "summary": "refused: no kernel",
            "figures": refused(Goal(WHAT, 1), "x").figures,
        },
        "zoo.failed": {"error": "first\nno GPU"},
        "network.other": record(0.1),
    }
    table = summary.worst_table(named, "zoo.*")
    assert [line[0] for line in table] == ["zoo.failed", "zoo.refused", "zoo.slow", "zoo.fast"]
    assert [line[-1] for line in table] == ["no GPU", "refused: no kernel", "", ""]
    assert table[2][6:8] == ["7 x conv 3x3", "12.0"]
