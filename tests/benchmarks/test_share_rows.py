"""Shares of generated kernels: of a plan, in records, and over all of them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import evidence
import pytest
from rows import share
from rows.base import Context, Outcome, Row, RowError
from rows.catalogue import all_rows
from rows.networks import tuned_beside
from rows.plan_share import Share, share_in, share_of, tuned_figures
from rows.result_file import Record, ResultFile
from rows.share import Tuned, judge, newest
from rows.tuned import Case, measure_tuned, plans_folder
from support.plans.candidates import kernel, library_call

from wpk.dtypes import Precision
from wpk.plan.measurement import Contestant, Measurement
from wpk.plan.plan import Evidence, Step
from wpk.plan.plan_file import read_plan, write_plan

LIBRARY, GENERATED = library_call((), version="9.19"), kernel("conv_mma", ())
CASE = Case("resnet50", Precision.FP16, 1)


def contestant(*, is_library: bool) -> Contestant:
    candidate = LIBRARY if is_library else GENERATED
    return Contestant(candidate, 2e-6, 1e-6, 3e-6, 11, side_by_side=True)


OURS, THEIRS = contestant(is_library=False), contestant(is_library=True)


@pytest.fixture(name="step", scope="module")
def fixture_step(small_plan: Path) -> Step:
    return read_plan(small_plan).plan.steps[0]


def measured(
    step: Step, *, ours: bool, alone: bool = False, in_engine: float | None = None
) -> Step:
    """The step, chosen between a kernel and a library, or alone."""
    chosen, other = (OURS, THEIRS) if ours else (THEIRS, OURS)
    others = () if alone else (other,)
    found = Measurement(chosen, others, "warm", (), 0, "")
    evidence = Evidence(1e-6, "L2", 1e-6, 0.5, measurement=found, in_engine_seconds=in_engine)
    return replace(step, candidate=GENERATED if ours else LIBRARY, evidence=evidence)


def plans(**shares: Share) -> dict[str, Tuned]:
    return {case: Tuned(each, f"mixed.{case}", "2026", "abc") for case, each in shares.items()}


def record(figures: dict[str, Any], date: str, commit: str = "abc") -> Record:
    said = {"passed": True, "summary": "", "figures": figures, "seconds": 1.0}
    return said | {"date": date, "commit": commit}


@pytest.fixture(name="context")
def fixture_context(tmp_path: Path) -> Context:
    return Context(tmp_path / "store", tmp_path, time.monotonic() + 60.0)


def test_only_operators_that_the_library_computes_correctly_count(step: Step) -> None:
    steps = [
        measured(step, ours=True, in_engine=6e-6),
        measured(step, ours=False),
        measured(step, ours=True, alone=True, in_engine=1.0),
        replace(step, evidence=Evidence(1e-6, "L2", 1e-6, 0.5)),
    ]
    total = share_of(steps)
    assert (total.operators, total.generated) == (2, 1)
    assert total.by_number == 0.5
    assert total.by_time == pytest.approx(6 / 8)


def test_all_plans_together_are_held_to_the_goals() -> None:
    most = Share(90, 75, 1.0, 0.7)
    assert judge(plans(a=most, b=Share(10, 5, 0.1, 0.0))).passed
    few = judge(plans(a=most, b=Share(10, 0, 0.1, 0.0)))
    assert few.passed  # 75 of 100, 64 % of the time
    assert few.summary.endswith("in 2 plans")
    assert not judge(plans(a=most, b=Share(11, 0, 0.1, 0.0))).passed
    slow = judge(plans(a=most, b=Share(10, 5, 0.2, 0.0)))
    assert [goal["reached"] for goal in slow.figures["goals"]] == [True, False]


def test_without_a_library_there_is_no_share(step: Step) -> None:
    alone = share_of([measured(step, ours=True, alone=True)])
    assert (alone.by_number, alone.by_time) == (None, None)
    with pytest.raises(RowError, match="no operator that cuDNN could compute is in a"):
        judge(plans(a=alone))


def test_the_newest_record_of_a_case_counts_whichever_row_holds_it() -> None:
    old, new, other = Share(4, 1, 4.0, 1.0), Share(4, 3, 4.0, 3.0), Share(2, 2, 0.1, 0.1)
    records = {
        "mixed.a": record(tuned_figures("a", old), "2026-01-01", "one"),
        "network.a": record(tuned_figures("a", new), "2026-01-03", "three"),
        "autotuned.a": record(tuned_figures("a", old), "2026-01-02", "two"),
        "mixed.b": record(tuned_figures("b", other), "2026-01-02", "two"),
    }
    for given in (records, dict(reversed(records.items()))):
        assert newest(given) == {
            "a": Tuned(new, "network.a", "2026-01-03", "three"),
            "b": Tuned(other, "mixed.b", "2026-01-02", "two"),
        }


def test_records_without_a_share_are_left_out(context: Context) -> None:
    records: dict[str, Record] = {
        "mixed.a": record({"chosen": "mixed"}, "2026-01-02"),
        "mixed.b": {"error": "no GPU", "date": "2026-01-02", "commit": "abc"},
    }
    (row,) = share.rows()
    with pytest.raises(RowError, match="no record holds the share of a plan"):
        row.measure(replace(context, records=records))
    records["network.b"] = record(tuned_figures("b", Share(4, 4, 1.0, 1.0)), "2026-01-01")
    outcome = row.measure(replace(context, records=records))
    assert list(outcome.figures["plans"]) == ["b"]
    assert outcome.summary == "100% of 4 operators, 100% of their time, in 1 plans"


def test_what_tunes_a_case_keeps_its_plans_share(small_plan: Path, context: Context) -> None:
    bundle = read_plan(small_plan)
    first, *rest = bundle.plan.steps
    assert first.image is None
    found = Measurement(OURS, (THEIRS,), "warm", (), 0, "")
    evidence = replace(first.evidence, measurement=found, in_engine_seconds=0.1)
    steps = (replace(first, evidence=evidence), *rest)
    kept = plans_folder(context) / f"{CASE}.plan"
    kept.parent.mkdir(parents=True)
    write_plan(kept, replace(bundle, plan=replace(bundle.plan, steps=steps)))

    def measure(path: Path, _context: Context) -> Outcome:
        assert path == kept
        return Outcome(True, "measured", {"seconds": 1.0})

    outcome = measure_tuned(CASE, measure, context)
    assert outcome.figures["seconds"] == 1.0
    assert 0 < outcome.figures["tuning_seconds"] < 1.0  # the plan was there
    written = json.loads(json.dumps({"figures": outcome.figures}))
    assert share_in(written) == ("resnet50.fp16.b1", Share(1, 1, 0.1, 0.1))


def test_every_row_that_tunes_a_network_keeps_its_share() -> None:
    names = [n for n in all_rows() if n.startswith(("mixed.", "network.", "autotuned.", "floor."))]
    assert len(names) == 16 + 24 + 2 + 2
    for name in names:
        measure = all_rows()[name].measure
        assert isinstance(measure, partial)
        assert measure.func in (measure_tuned, tuned_beside)
        kind, _, case = name.partition(".")
        assert str(measure.args[0]) == (case.replace(".b", ".fp16.b") if kind == "floor" else case)


def test_shares_are_added_up_over_merged_files_without_plans(tmp_path: Path) -> None:
    shares = {"a": Share(90, 75, 1.0, 0.7), "b": Share(10, 5, 0.1, 0.0)}
    for case, each in shares.items():
        kept = ResultFile(tmp_path / f"{case}.json")
        kept.add(f"mixed.{case}", record(tuned_figures(case, each), "2026-01-01", f"from {case}"))
    output = ["--output", str(tmp_path / "all.json"), "--store", str(tmp_path / "empty")]
    assert evidence.main([*output, "--merge", *(str(tmp_path / f"{c}.json") for c in shares)]) == 0
    assert evidence.main([*output, "--only", "share", "--again", "--commit", "abc"]) == 0
    found = ResultFile(tmp_path / "all.json").records["share"]
    assert found["summary"] == "80% of 100 operators, 64% of their time, in 2 plans"
    assert {case: each["commit"] for case, each in found["figures"]["plans"].items()} == {
        "a": "from a",
        "b": "from b",
    }
    assert found["figures"]["plans"]["b"]["by_number"] == 0.5
    assert found["figures"]["plans"]["b"]["date"] == "2026-01-01"


TUNES = """
from rows.base import Outcome
from rows.plan_share import Share, tuned_figures

def tunes(context):
    assert not context.records
    return Outcome(True, "", tuned_figures("a", Share(2, 2, 1.0, 1.0)))
"""


def test_the_share_holds_what_was_measured_in_the_same_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "row_that_tunes.py").write_text(TUNES)
    monkeypatch.syspath_prepend(tmp_path)
    import row_that_tunes  # type: ignore[import-not-found]

    rows = [*share.rows(), Row("mixed.a", "", row_that_tunes.tunes)]
    monkeypatch.setattr(evidence, "all_rows", lambda: {row.name: row for row in rows})
    paths = ["--output", str(tmp_path / "results.json"), "--store", str(tmp_path / "store")]
    assert evidence.main([*paths, "--commit", "abc"]) == 0
    (plan,) = ResultFile(tmp_path / "results.json").records["share"]["figures"]["plans"].values()
    assert (plan["row"], plan["commit"], plan["by_time"]) == ("mixed.a", "abc", 1.0)
