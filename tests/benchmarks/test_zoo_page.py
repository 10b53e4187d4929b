"""The page of the zoo: what it says of a record, which record counts, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zoo_page
from rows.goals import Goal
from rows.networks import WHAT
from rows.result_file import SCHEMA
from rows.zoo import refused

_ROOT = Path(__file__).parents[2]


def record(speedup: float, date: str = "2026-01-01", **more: Any) -> dict[str, Any]:
    ratio = {"median": speedup, "low": speedup, "high": speedup}
    figures = {
        "right": True,
        "speedup": ratio,
        "times": {"wpk": {"median_seconds": 1e-4}, "eager": {"median_seconds": speedup * 1e-4}},
        "plan": {"inconclusive": [], "operators": 7, "operators_seconds": 9e-5},
        "beyond_bound": [{"operators": 3, "problem": "matmul | odd", "seconds": 4.5e-5}],
    }
    machine = {"gpu": "NVIDIA H999", "driver": "1"}
    return {"figures": figures | more, "machine": machine, "date": date, "commit": "0123456789ab"}


def written(folder: Path, *files: dict[str, Any]) -> str:
    paths = [folder / f"{place}.json" for place in range(len(files))]
    for path, rows in zip(paths, files, strict=True):
        path.write_text(json.dumps({"schema": SCHEMA, "rows": rows}), encoding="utf-8")
    page = folder / "zoo.md"
    assert zoo_page.main([*map(str, paths), str(page)]) == 0
    return page.read_text(encoding="utf-8")


def test_networks_stand_in_the_order_of_their_speedups_and_new_records_count(
    tmp_path: Path,
) -> None:
    old = {"zoo.bert.fp16.b1": record(9.0), "zoo.vit.fp16.b1": record(4.0, tuning_seconds=50.0)}
    new = {"zoo.bert.fp16.b1": record(1.0, "2026-02-02", forms={"speedup": {"median": 1.07}})}
    text = written(tmp_path, new, old)
    bert, vit = text.index("| bert | H999 |"), text.index("| vit | H999 |")
    assert bert < vit
    assert "2 measured; geometric mean 2.00, least 1.00. Tuning took 50 s (median)" in text
    assert "| bert | H999 | 100.0 | 100.0 | 1.00 | 1.07 |  | 7 | 3 of matmul \\| odd: 50% |" in text


def test_a_failure_does_not_hide_what_was_measured_before(tmp_path: Path) -> None:
    failed = {"error": "no memory", "date": "2026-02-02", "commit": "0" * 12}
    text = written(tmp_path, {"zoo.bert.fp16.b1": record(2.0)}, {"zoo.bert.fp16.b1": failed})
    assert "| bert | H999 |" in text


def test_settings_have_tables_of_their_own_and_what_is_refused_counts_as_half(
    tmp_path: Path,
) -> None:
    half = {"figures": refused(Goal(WHAT, 1.0), "no kernel").figures}
    rows = {
        "zoo.vit.fp32.b1": record(2.0),
        "zoo.vit.fp16.b32": record(1.5),
        "zoo.bert.fp16.b1": record(2.0),
        "zoo.swin.fp16.b1": record(2.0) | half,
    }
    text = written(tmp_path, rows)
    assert "## strict fp32, batch 1" in text
    assert "| vit, 32 | H999 |" in text
    assert "2 measured; geometric mean 1.00, least 0.50." in text
    assert "| swin | H999 | refused |" in text


def test_files_that_are_missing_or_hold_no_network_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no"):
        zoo_page.main([str(tmp_path / "none.json"), str(tmp_path / "zoo.md")])
    with pytest.raises(SystemExit, match="hold no row of zoo"):
        written(tmp_path, {"floor.x": record(1.0)})


def test_the_page_in_the_documentation_is_what_the_kept_results_say(tmp_path: Path) -> None:
    results = [_ROOT / "benchmarks" / "results" / f"{gpu}-zoo.json" for gpu in ("h200", "h100")]
    page = tmp_path / "zoo.md"
    zoo_page.main([*map(str, results), str(page)])
    kept = (_ROOT / "docs" / "zoo.md").read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == kept
