"""The tuning store: what it keeps, what it finds, and how it words what is wrong."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.plans.candidates import kernel

from wpk.candidate import Maker
from wpk.options import BuildOptions, SearchOptions
from wpk.problems import Matmul
from wpk.search.store.key import Setup, StoreKey, problem_digest
from wpk.search.store.lookup import look_up
from wpk.search.store.records import RunRequest, RunState, Stage
from wpk.search.store.schema import StoreError
from wpk.search.store.store import LONGEST_GAP, MODELS, TuningStore
from wpk.search.store.summary import summarize
from wpk.trial import Regime, Status, Trial

SETUP = Setup("h200", "sm_90a", "nvrtc 13.0.88", "580.65")
COLD, WARM = Regime.COLD, Regime.WARM


@pytest.fixture
def store(tmp_path: Path) -> Iterator[TuningStore]:
    with TuningStore(tmp_path / "deep" / "tuning.sqlite") as opened:
        yield opened


@pytest.fixture
def key(make_product: Callable[[int, int, int], Matmul]) -> StoreKey:
    return StoreKey(make_product(64, 32, 16), kernel("tiled", version="1").maker, SETUP)


def ok(block: int, *seconds: float) -> Trial:
    return Trial(kernel("tiled", (("block_m", block),)), Status.OK, seconds)


def failed(block: int, status: Status = Status.WRONG_RESULT) -> Trial:
    return Trial(kernel("tiled", (("block_m", block),)), status, (), "element 3 is 2.0, not 1.0")


def test_a_stored_trial_is_found_by_another_opening(store: TuningStore, key: StoreKey) -> None:
    run = store.begin_run(seed=7)
    store.record(run.id, key, ok(8, 1e-6, 0.1 + 0.2), COLD)
    store.record(run.id, key, failed(16), COLD)
    with TuningStore(store.path) as other:
        found = look_up(other, key, COLD)
    assert [each.trial for each in found.histories] == [ok(8, 1e-6, 0.1 + 0.2), failed(16)]
    assert found.why.startswith("hit: 2 schedules of tiled version 1 on h200, 1 ok, best")


def test_a_schedule_belongs_to_the_searcher_that_proposed_it_first(
    store: TuningStore, key: StoreKey
) -> None:
    run = store.begin_run(seed=7).id
    store.record(run, key, replace(ok(8, 1e-6), proposer="genetic"), COLD)
    store.record(run, key, replace(ok(8, 2e-6), proposer="ppo"), COLD, Stage.FINAL)
    store.record(run, key, ok(16, 1e-6), COLD)
    store.record(run, key, replace(failed(32), proposer="ppo"), COLD)
    known = look_up(store, key, COLD).histories
    assert [each.trial.proposer for each in known] == ["genetic", "", "ppo"]


def test_equal_problems_share_a_digest_and_others_do_not(
    make_product: Callable[[int, int, int], Matmul],
) -> None:
    digests = {problem_digest(make_product(m, 8, 8)) for m in (1, 1, 2)}
    assert len(digests) == 2
    assert all(len(digest) == 64 for digest in digests)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"template": "other"}, "the problem is known for tiled, not for other"),
        ({"version": "2"}, "another template version (stored 1, now 2)"),
        ({"target": "a100"}, "another target (stored h200, now a100)"),
        ({"arch": "sm_80"}, "another architecture (stored sm_90a, now sm_80)"),
        ({"compiler": "nvrtc 13.1"}, "another compiler (stored nvrtc 13.0.88, now nvrtc 13.1)"),
        ({"driver": "590.1"}, "another driver (stored 580.65, now 590.1)"),
        (
            {"version": "3", "driver": "590.1"},
            "another template version (stored 1, now 3); driver (stored 580.65, now 590.1)",
        ),
    ],
)
def test_a_miss_names_the_part_of_the_key_that_differs(
    store: TuningStore, key: StoreKey, change: dict[str, str], words: str
) -> None:
    store.record(store.begin_run(0).id, key, ok(8, 1e-6), COLD)
    setup = replace(SETUP, **{k: v for k, v in change.items() if k not in ("template", "version")})
    maker = Maker(change.get("template", "tiled"), change.get("version", "1"))
    asked = StoreKey(key.problem, maker, setup)
    found = look_up(store, asked, COLD)
    assert not found.histories
    assert found.why.startswith("miss: ")
    assert found.why.endswith(words)


def test_a_miss_names_the_nearest_trials(store: TuningStore, key: StoreKey) -> None:
    run = store.begin_run(0).id
    store.record(run, key, ok(8, 1e-6), COLD)
    far = replace(SETUP, target="a100", arch="sm_80", driver="1")
    store.record(run, replace(key, setup=far), ok(8, 1e-6), COLD)
    asked = replace(key, setup=replace(SETUP, driver="590.1"))
    assert look_up(store, asked, COLD).why.endswith("another driver (stored 580.65, now 590.1)")


def test_an_unknown_problem_is_a_miss_that_says_so(
    store: TuningStore, key: StoreKey, make_product: Callable[[int, int, int], Matmul]
) -> None:
    store.record(store.begin_run(0).id, key, ok(8, 1e-6), COLD)
    other = replace(key, problem=make_product(1, 1, 2))
    assert "miss: no trial of problem" in look_up(store, other, COLD).why
    assert "among 1 problem" in look_up(store, other, COLD).why


def test_regimes_are_kept_apart_but_failures_count_in_both(
    store: TuningStore, key: StoreKey
) -> None:
    run = store.begin_run(0).id
    store.record(run, key, ok(8, 3e-6), COLD)
    assert look_up(store, key, WARM).why == "miss: tiled was measured cold only, asked is warm"
    store.record(run, key, failed(16), COLD)
    assert [each.trial for each in look_up(store, key, WARM).histories] == [failed(16)]


def test_a_schedule_that_failed_once_has_failed(store: TuningStore, key: StoreKey) -> None:
    run = store.begin_run(0).id
    for trial in (ok(8, 1e-6), failed(8), ok(8, 1e-6)):
        store.record(run, key, trial, COLD)
    (known,) = look_up(store, key, COLD).histories
    assert known.trial == failed(8)


def test_searches_are_pooled_and_finals_are_those_of_the_latest_run(
    store: TuningStore, key: StoreKey
) -> None:
    first, second = store.begin_run(0).id, store.begin_run(0).id
    store.record(first, key, ok(8, 4e-6), COLD)
    store.record(first, key, ok(8, 9e-6), COLD, Stage.FINAL)
    store.record(second, key, ok(8, 6e-6), COLD)
    for seconds in (1e-6, 2e-6):
        store.record(second, key, ok(8, seconds), COLD, Stage.FINAL)
    (known,) = look_up(store, key, COLD).histories
    assert known.trial.seconds == (4e-6, 6e-6)
    assert known.final == ok(8, 1e-6, 2e-6)
    assert (known.final_run, known.final_rounds) == (second, 2)


@pytest.mark.parametrize("seconds", [(), (0.0,), (-1e-6,), (float("nan"),), (float("inf"),)])
def test_refuses_measurements_that_are_none(
    store: TuningStore, key: StoreKey, seconds: tuple[float, ...]
) -> None:
    run = store.begin_run(0).id
    with pytest.raises(ValueError, match="seconds"):
        store.record(run, key, ok(8, *seconds), COLD)
    assert not store.trials(key)


def test_runs_are_resumed_with_their_seed(store: TuningStore) -> None:
    run = store.begin_run(seed=3)
    store.end_run(run.id, RunState.INTERRUPTED)
    assert store.runs() == (replace(run, state=RunState.INTERRUPTED),)
    assert store.resume_run(run.id) == run
    assert run.seed == 3


REQUEST = RunRequest(
    model="m.onnx",
    model_digest="0" * 64,
    build=BuildOptions(
        target="h200",
        precision="fp16",
        shapes={"x": (1, 3)},
        skip_passes=("layout",),
        skip_templates=("gemm_mma",),
    ),
    search=SearchOptions(
        search="genetic",
        effort=2,
        budget="400 trials",
        seed=3,
        operators=("conv_*",),
        forms="fixed",
    ),
)
OLDER_REQUEST = {
    "model": "m.onnx",
    "model_digest": "0" * 64,
    "target": "h200",
    "precision": "fp16",
    "shapes": {"x": [1, 3]},
    "skipped_passes": ["layout"],
    "skipped_templates": ["gemm_mma"],
    "searcher": "genetic",
    "effort": 2,
    "budget": "400 trials",
    "operators": ["conv_*"],
}
"""The same as schema 4 had it; the seed stood in the run alone."""


def make_older(store: TuningStore, schema: int, request: str) -> None:
    """Bring the tables, and the request of every run that has one, back to an older schema."""
    with store.writing() as connection:
        connection.execute("UPDATE runs SET request = ? WHERE request IS NOT NULL", (request,))
        connection.execute("ALTER TABLE runs ADD COLUMN argv TEXT NOT NULL DEFAULT '[]'")
        connection.execute(f"PRAGMA user_version = {schema}")
    store.close()


def test_a_run_remembers_what_it_was_asked_to_do(store: TuningStore) -> None:
    run = store.begin_run(seed=3, request=REQUEST)
    assert run.request == REQUEST
    assert store.find_run(run.id) == run


def test_a_run_is_found_by_the_beginning_of_its_name_or_of_its_last_part(
    store: TuningStore,
) -> None:
    run = store.begin_run(seed=3)
    assert store.find_run(run.id[:-2]) == run
    assert store.find_run(run.id.rpartition("-")[2][:4]) == run


def test_a_name_short_for_several_runs_is_refused_naming_them(store: TuningStore) -> None:
    first, second = store.begin_run(seed=3), store.begin_run(seed=4)
    with pytest.raises(StoreError, match="2 runs '20'") as error:
        store.find_run("20")
    assert first.id in error.value.what
    assert second.id in error.value.what


def test_a_store_of_the_first_schema_is_brought_up_to_date(
    store: TuningStore, key: StoreKey
) -> None:
    run = store.begin_run(seed=3)
    store.record(run.id, key, ok(8, 1e-6), COLD)
    with store.writing() as connection:
        connection.execute("ALTER TABLE runs DROP COLUMN request")
        connection.execute("ALTER TABLE trials DROP COLUMN searcher")
        connection.execute("ALTER TABLE runs ADD COLUMN argv TEXT NOT NULL DEFAULT '[]'")
        connection.execute("PRAGMA user_version = 1")
    store.close()
    with TuningStore(store.path) as opened:
        assert opened.runs() == (run,)
        assert look_up(opened, key, COLD).histories
        assert opened.begin_run(0, REQUEST).request == REQUEST


def test_a_run_of_the_third_schema_left_no_template_out(store: TuningStore) -> None:
    asked, unsaid = store.begin_run(3, REQUEST), store.begin_run(4)
    older = {name: value for name, value in OLDER_REQUEST.items() if name != "skipped_templates"}
    make_older(store, 3, json.dumps(older))
    with TuningStore(store.path) as opened:
        build = replace(REQUEST.build, skip_templates=(), fallback="off")
        assert opened.find_run(asked.id).request == replace(REQUEST, build=build)
        assert opened.find_run(unsaid.id).request is None


def test_a_run_of_the_fourth_schema_keeps_its_options(store: TuningStore) -> None:
    run = store.begin_run(3, REQUEST)
    make_older(store, 4, json.dumps(OLDER_REQUEST))
    with TuningStore(store.path) as opened:
        build = replace(REQUEST.build, fallback="off")
        assert opened.runs() == (replace(run, request=replace(REQUEST, build=build)),)


def test_a_run_of_the_sixth_schema_was_pruned_by_waves(store: TuningStore) -> None:
    run = store.begin_run(3, REQUEST)
    with store.writing() as connection:
        connection.execute("UPDATE runs SET request = json_remove(request, '$.search.prune')")
        connection.execute("PRAGMA user_version = 6")
    store.close()
    with TuningStore(store.path) as opened:
        assert opened.runs() == (run,)


def test_a_run_of_the_eighth_schema_was_given_no_form(store: TuningStore) -> None:
    run = store.begin_run(3, REQUEST)
    with store.writing() as connection:
        connection.execute(
            "UPDATE runs SET request = json_remove(request, '$.build.changed_sites')"
        )
        connection.execute("PRAGMA user_version = 8")
    store.close()
    with TuningStore(store.path) as opened:
        assert opened.runs() == (run,)


def test_a_damaged_run_of_the_third_schema_is_damage(store: TuningStore) -> None:
    store.begin_run(3, REQUEST)
    make_older(store, 3, "{")
    store.close()
    with TuningStore(store.path) as opened, pytest.raises(StoreError, match="is damaged"):
        opened.runs()


def test_what_a_run_spent_is_its_search_without_the_time_it_was_interrupted(
    store: TuningStore, key: StoreKey
) -> None:
    run, other = store.begin_run(0).id, store.begin_run(0).id
    for each, searcher, stage in (
        (run, MODELS, Stage.SEARCH),
        (run, "genetic", Stage.SEARCH),
        (run, "ppo", Stage.SEARCH),
        (run, "ppo", Stage.FINAL),
        (other, "ppo", Stage.SEARCH),
    ):
        store.record(each, key, replace(ok(8, 1e-6), proposer=searcher), COLD, stage)
    moments = (100.0, 101.0, 103.0 + LONGEST_GAP, 104.0 + LONGEST_GAP, 200.0)
    with store.writing() as connection:
        for number, at in enumerate(moments, start=1):
            connection.execute("UPDATE trials SET at = ? WHERE number = ?", (at, number))
    assert store.spent(run) == (2, 1.0)
    assert store.spent(other) == (1, 0.0)
    assert store.pace("h200") == pytest.approx(1.0)  # of gaps of 1 s and 1 s
    assert store.pace("a100") is None


def test_an_unknown_run_is_refused_naming_the_latest(store: TuningStore) -> None:
    run = store.begin_run(seed=3)
    with pytest.raises(StoreError, match=f"no run 'yesterday'; its latest: {run.id}"):
        store.resume_run("yesterday")


def test_clearing_leaves_what_was_not_named(store: TuningStore, key: StoreKey) -> None:
    run = store.begin_run(0).id
    foreign = replace(key, setup=replace(SETUP, target="a100", arch="sm_80"))
    for each in (key, foreign, replace(key, maker=Maker("other", "1"))):
        store.record(run, each, ok(8, 1e-6), COLD)
    assert store.clear(target="a100") == 1
    assert store.clear(target="h200", template="other") == 1
    assert look_up(store, key, COLD).histories
    groups = summarize(store).groups
    assert [(g.target, g.template, g.trials, g.statuses.get("ok", 0)) for g in groups] == [
        ("h200", "tiled", 1, 1)
    ]
    store.end_run(run, RunState.FINISHED)
    assert store.clear() == 1
    assert not store.runs()
    assert not summarize(store).groups


def test_a_damaged_file_is_named_and_left_as_it_is(store: TuningStore, key: StoreKey) -> None:
    run = store.begin_run(0).id
    for block in range(200):
        store.record(run, key, ok(block, 1e-6), COLD)
    store.close()
    data = bytearray(store.path.read_bytes())
    data[4096 : 4096 + 2048] = b"\xff" * 2048  # the root of a table
    store.path.write_bytes(data)
    with pytest.raises(StoreError, match="is damaged") as raised, TuningStore(store.path) as other:
        look_up(other, key, COLD)
    assert "does not overwrite" in raised.value.fix
    assert store.path.read_bytes() == data


@pytest.mark.parametrize("content", [b"not a database, but long enough to be one" * 20, b"\0" * 99])
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tuning.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="is damaged"):
        TuningStore(path)
    assert path.read_bytes() == content


def test_a_row_that_no_wpk_writes_is_damage(store: TuningStore, key: StoreKey) -> None:
    store.record(store.begin_run(0).id, key, ok(8, 1e-6), COLD)
    with store.writing() as connection:
        connection.execute("UPDATE trials SET status = 'splendid'")
    with pytest.raises(StoreError, match="is damaged: 'splendid' is not a valid Status"):
        store.trials(key)


def test_the_database_of_another_program_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "photos.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE photos (name TEXT)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="SQLite file of another program"):
        TuningStore(path)
    assert path.read_bytes() == before


def test_another_schema_is_refused_naming_both(store: TuningStore) -> None:
    with store.reading() as connection:
        pass
    connection.execute("PRAGMA user_version = 10")
    store.close()
    with pytest.raises(StoreError, match="has schema 10, this wpk reads and writes 9"):
        TuningStore(store.path)


def test_a_path_that_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "tuning.sqlite"):
        with pytest.raises(StoreError, match="cannot be used"):
            TuningStore(path)


def test_an_error_within_a_change_undoes_it(store: TuningStore, key: StoreKey) -> None:
    run = store.begin_run(0).id
    store.record(run, key, ok(8, 1e-6), COLD)

    def interrupted() -> None:
        with store.writing() as connection:
            connection.execute("DELETE FROM trials")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert look_up(store, key, COLD).histories


def test_two_that_create_a_store_together_both_can(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.sqlite" for number in range(5)]
    raised: list[BaseException] = []
    barrier = threading.Barrier(2)

    def create() -> None:
        try:
            for path in paths:
                barrier.wait(timeout=60)
                with TuningStore(path) as store:
                    store.begin_run(0)
        except BaseException as error:
            raised.append(error)
            barrier.abort()

    threads = [threading.Thread(target=create) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not raised
    for path in paths:
        with TuningStore(path) as store:
            assert len(store.runs()) == 2
