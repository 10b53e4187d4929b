"""A sample of damaged and forged files: refused in words, or used without harm."""

from pathlib import Path

from fuzzing.campaign import Budget, open_log, run_campaign, seeds
from fuzzing.plan_worker import GOOD, KINDS, PlanSettings, serve

CASES = 60


def test_damaged_files_are_refused_or_do_no_harm(tmp_path: Path) -> None:
    settings = PlanSettings(tmp_path / "failures", ("fp16",))
    with open_log(tmp_path, "rows.jsonl.gz") as log:
        rows = run_campaign(serve, settings, seeds(0, (0, 1)), Budget(None, CASES), 1, log)
    assert len(rows) == CASES
    assert [row for row in rows if row["outcome"] not in GOOD] == []
    refused = {row["kind"] for row in rows if row["outcome"] == "refused"}
    assert refused == {kind for kind, weight in KINDS.items() if weight}
