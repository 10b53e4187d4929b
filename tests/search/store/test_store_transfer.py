"""Export and import of the tuning store."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.plans.candidates import kernel

from wpk.options import BuildOptions, SearchOptions
from wpk.problems import Matmul
from wpk.search.store.key import Setup, StoreKey
from wpk.search.store.lookup import look_up
from wpk.search.store.records import RunRequest, RunState, Stage
from wpk.search.store.schema import StoreError
from wpk.search.store.store import TuningStore
from wpk.search.store.summary import summarize
from wpk.search.store.transfer import ImportCounts, export_lines, import_lines
from wpk.trial import Regime, Status, Trial

SETUP = Setup("h200", "sm_90a", "nvrtc 13.0.88", "580.65")
HERE = ("h200", "sm_90a")


@pytest.fixture
def key(make_product: Callable[[int, int, int], Matmul]) -> StoreKey:
    return StoreKey(make_product(64, 32, 16), kernel("tiled", version="1").maker, SETUP)


@pytest.fixture
def lines(tmp_path: Path, key: StoreKey) -> list[str]:
    """An export: a run, a problem, three trials."""
    with TuningStore(tmp_path / "source.sqlite") as store:
        run = store.begin_run(seed=1)
        store.record(
            run.id,
            key,
            Trial(kernel("tiled", (("m", 8),)), Status.OK, (0.1 + 0.2, 1e-7)),
            Regime.COLD,
        )
        store.record(
            run.id,
            key,
            Trial(kernel("tiled", (("m", 8),)), Status.OK, (0.3,)),
            Regime.WARM,
            Stage.FINAL,
        )
        store.record(
            run.id,
            key,
            Trial(kernel("tiled", (("m", 9),)), Status.TIMED_OUT, (), "5 s"),
            Regime.COLD,
        )
        return list(export_lines(store))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TuningStore]:
    with TuningStore(tmp_path / "destination.sqlite") as opened:
        yield opened


def test_an_import_holds_what_was_exported(
    store: TuningStore, lines: list[str], key: StoreKey
) -> None:
    assert import_lines(store, lines, "t.jsonl", HERE) == ImportCounts(3, 0)
    assert look_up(store, key, Regime.COLD).histories[0].trial.seconds == (0.1 + 0.2, 1e-7)
    (run,) = store.runs()
    assert run.state is RunState.INTERRUPTED  # it runs, but not here
    assert list(export_lines(store))[2:] == lines[2:]


def test_importing_again_adds_nothing(store: TuningStore, lines: list[str]) -> None:
    import_lines(store, lines, "t.jsonl", HERE)
    assert import_lines(store, lines, "t.jsonl", HERE) == ImportCounts(0, 3)


def test_the_header_tells_schema_version_and_targets(lines: list[str]) -> None:
    header = json.loads(lines[0])
    assert header["tuning_store"] == 9
    assert header["targets"] == [["h200", "sm_90a"]]
    assert (header["runs"], header["problems"], header["trials"]) == (1, 1, 3)


def test_lines_of_the_first_schema_are_imported(lines: list[str], tmp_path: Path) -> None:
    header, run = json.loads(lines[0]), json.loads(lines[1])
    del run["run"]["request"]
    run["run"]["argv"] = ["wpk", "optimize"]
    trials = [json.loads(line) for line in lines[3:]]
    for each in trials:
        del each["trial"]["searcher"]
    old = [json.dumps({**header, "tuning_store": 1}), json.dumps(run), lines[2]]
    old += map(json.dumps, trials)
    with TuningStore(tmp_path / "other.sqlite") as other:
        assert import_lines(other, old, "old.jsonl", HERE) == ImportCounts(3, 0)
        assert other.runs()[0].request is None


def test_runs_of_the_third_schema_left_no_template_out(store: TuningStore, tmp_path: Path) -> None:
    build = BuildOptions("h200", "fp16", skip_passes=("layout",), fallback="off")
    request = RunRequest("m.onnx", "0" * 64, build, SearchOptions("ppo", seed=5, forms="fixed"))
    store.begin_run(5, request)
    header, run = map(json.loads, export_lines(store))
    run["run"] |= {
        "argv": ["wpk", "optimize", "m.onnx"],
        "request": {
            "model": "m.onnx",
            "model_digest": "0" * 64,
            "target": "h200",
            "precision": "fp16",
            "shapes": {},
            "skipped_passes": ["layout"],
            "searcher": "ppo",
            "effort": 1,
            "budget": None,
            "operators": [],
        },
    }

    def lines_of(schema: int) -> list[str]:
        return [json.dumps({**header, "tuning_store": schema}), json.dumps(run)]

    with TuningStore(tmp_path / "other.sqlite") as other:
        import_lines(other, lines_of(3), "old.jsonl", HERE)
        assert other.runs()[0].request == request
        with pytest.raises(StoreError, match=r"run\.request\.skipped_templates: missing"):
            import_lines(other, lines_of(4), "older.jsonl", HERE)
        with pytest.raises(StoreError, match=r"run\.argv: unknown field"):
            import_lines(other, lines_of(5), "now.jsonl", HERE)


def test_runs_of_the_sixth_schema_were_pruned_by_waves(store: TuningStore, tmp_path: Path) -> None:
    request = RunRequest(
        "m.onnx", "0" * 64, BuildOptions("h200"), SearchOptions("ppo", seed=5, forms="fixed")
    )
    store.begin_run(5, request)
    header, run = map(json.loads, export_lines(store))
    del run["run"]["request"]["search"]["prune"]

    def lines_of(schema: int) -> list[str]:
        return [json.dumps({**header, "tuning_store": schema}), json.dumps(run)]

    with TuningStore(tmp_path / "other.sqlite") as other:
        import_lines(other, lines_of(6), "old.jsonl", HERE)
        assert other.runs()[0].request == request
        with pytest.raises(StoreError, match=r"run\.request\.search\.prune: missing"):
            import_lines(other, lines_of(7), "now.jsonl", HERE)


def test_runs_of_the_eighth_schema_were_given_no_form(store: TuningStore, tmp_path: Path) -> None:
    request = RunRequest("m.onnx", "0" * 64, BuildOptions("h200"), SearchOptions("ppo", seed=5))
    store.begin_run(5, request)
    header, run = (json.loads(line) for line in export_lines(store))
    del run["run"]["request"]["build"]["changed_sites"]

    def lines_of(schema: int) -> list[str]:
        return [json.dumps({**header, "tuning_store": schema}), json.dumps(run)]

    with TuningStore(tmp_path / "new.sqlite") as other:
        import_lines(other, lines_of(8), "t.jsonl", HERE)
        assert other.runs()[0].request == request
        with pytest.raises(StoreError, match=r"build\.changed_sites: missing"):
            import_lines(other, lines_of(9), "t.jsonl", HERE)


def test_an_empty_store_is_exported_and_imported(store: TuningStore, tmp_path: Path) -> None:
    with TuningStore(tmp_path / "other.sqlite") as other:
        assert import_lines(other, export_lines(store), "t.jsonl", HERE) == ImportCounts(0, 0)


def test_another_device_is_refused_naming_both(store: TuningStore, lines: list[str]) -> None:
    words = r"t\.jsonl was measured on h200 \(sm_90a\), this device is a100 \(sm_80\)"
    with pytest.raises(StoreError, match=words):
        import_lines(store, lines, "t.jsonl", ("a100", "sm_80"))
    assert not summarize(store).trials


def test_foreign_history_is_kept_but_not_used(
    store: TuningStore, lines: list[str], key: StoreKey
) -> None:
    here = replace(SETUP, target="a100", arch="sm_80")
    assert import_lines(store, lines, "t.jsonl", None).added == 3
    found = look_up(store, replace(key, setup=here), Regime.COLD)
    assert not found.histories
    assert "target (stored h200, now a100)" in found.why


def _edited(line: str, path: tuple[str, ...], value: Any) -> str:
    data = json.loads(line)
    at = data
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return json.dumps(data) + "\n"


@pytest.mark.parametrize(
    ("number", "path", "value", "words"),
    [
        (0, ("tuning_store",), 10, "has schema 10, this wpk reads 1 to 9"),
        (0, ("trials",), 4, "line 6: is the last: 1 runs, 1 problems and 3 trials were read"),
        (0, ("targets",), [], "'h200', 'sm_90a'. is in no line before"),
        (1, ("run", "seed"), "1", "line 2: run.seed: expected int"),
        (2, ("problem", "json"), "{}", "line 3: problem.digest: .* is not that of its text"),
        (3, ("trial", "seconds"), [-1.0], "line 4: trial: ValueError: seconds"),
        (3, ("trial", "seconds"), [], "line 4: trial: ValueError: an ok trial has seconds"),
        (3, ("trial", "status"), "fine", "line 4: trial.status: 'fine' is none of"),
        (4, ("trial", "run"), "unknown", "line 5: trial.run: 'unknown' is in no line before"),
        (5, ("trial", "surprise"), 1, "line 6: trial.surprise: unknown field"),
        (5, ("surprise",), 1, "line 6: is neither a run nor a problem nor a trial"),
    ],
)
def test_a_damaged_line_is_named_and_nothing_is_imported(
    store: TuningStore, lines: list[str], number: int, path: tuple[str, ...], value: Any, words: str
) -> None:
    lines[number] = _edited(lines[number], path, value)
    with pytest.raises(StoreError, match=words):
        import_lines(store, lines, "t.jsonl", HERE)
    assert not summarize(store).trials
    assert not store.runs()


@pytest.mark.parametrize("cut", [1, 2, 5])
def test_a_file_that_lost_its_end_is_refused(
    store: TuningStore, lines: list[str], cut: int
) -> None:
    with pytest.raises(StoreError, match=r"line \d: is the last"):
        import_lines(store, lines[:-cut], "t.jsonl", HERE)
    with pytest.raises(StoreError, match="line 6: is no JSON"):
        import_lines(store, [*lines[:-1], lines[-1][: 30 * cut]], "t.jsonl", HERE)
    assert not summarize(store).trials


@pytest.mark.parametrize("text", ["", "[]", "{}", "NaN", "PK\x03\x04", "[" * 10**5])
def test_another_file_is_refused(store: TuningStore, text: str) -> None:
    with pytest.raises(StoreError, match=r"t\.jsonl, line 1: is no"):
        import_lines(store, [text] if text else [], "t.jsonl", HERE)
