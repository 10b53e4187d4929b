"""Found partitions over fixed ones: when a row passes, and whether forms that stand for fixed partitions still do."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rows import fixed
from rows.base import Context, Finished, RowError
from rows.fixed import FIXED, FOUND, LEAST_NETWORKS, TOOL, Partitions, judge, judge_all, same
from rows.fixed_engines import FormsHere, Tuner, lowered_fixed
from rows.tuned import plans_folder
from rows.zoo import BUDGET, ZooCase
from support.networks.rolled_rows import MOVED, ROLLED, rolled_then, written
from zoo import operators
from zoo.catalogue import zoo
from zoo.fixed import FixedForm, FixedPartitions, fixed_partitions, keep
from zoo.lowered_forms import LoweredForms
from zoo.nearest_form import tried
from zoo.small_graphs import NAMES, small_graph

from wpk.checks.limits import OutputDistance
from wpk.cli.main import main
from wpk.dtypes import Precision
from wpk.graph_passes import every_site
from wpk.plan.plan_file import read_plan
from wpk.problems import FeedForward
from wpk.search.loop import CacheFolder
from wpk.search.store import TuningStore

PARTITIONS = Partitions(7, {FIXED: 101, FOUND: 66})
RIGHT = dict.fromkeys((FIXED, FOUND, TOOL), OutputDistance(1e-4, 1e-3))
WRONG = OutputDistance(0.3, 2.0)


def samples(**microseconds: float) -> dict[str, list[float]]:
    named = {"fixed": FIXED, "found": FOUND, "tool": TOOL}
    return {
        named[n]: [t * 1e-6 * f for f in (0.999, 1.0, 1.001) * 9] for n, t in microseconds.items()
    }


def test_a_found_partition_that_is_faster_passes_with_its_speedup_and_what_was_evaluated() -> None:
    outcome = judge(samples(fixed=120.0, found=100.0, tool=101.0), RIGHT, PARTITIONS)
    assert outcome.passed
    assert outcome.figures["speedup"]["median"] == pytest.approx(1.2)
    assert outcome.figures["partitions"] == 7
    assert outcome.figures["operators"] == {FIXED: 101, FOUND: 66}
    assert "1.20" in outcome.summary


@pytest.mark.parametrize("is_same", [True, False])
def test_a_row_says_what_its_fixed_form_leaves_out_and_how_it_still_differs(is_same: bool) -> None:
    told = replace(PARTITIONS, only_then=("x",), only_here=("y", "z"), skipped=("moved-rows",))
    times = samples(fixed=120.0, found=100.0, tool=101.0)
    figures = (same(told) if is_same else judge(times, RIGHT, told)).figures
    assert figures["fixed_form_skips"] == ["moved-rows"]
    assert figures["fixed_form_differs"] == {"only_then": ["x"], "only_here": ["y", "z"]}


def test_a_found_partition_that_is_slower_fails() -> None:
    assert judge(samples(fixed=99.5, found=100.0, tool=90.0), RIGHT, PARTITIONS).passed
    assert not judge(samples(fixed=98.0, found=100.0, tool=90.0), RIGHT, PARTITIONS).passed


@pytest.mark.parametrize("name", [FIXED, FOUND, TOOL])
def test_an_engine_that_is_wrong_fails_and_is_named(name: str) -> None:
    outcome = judge(
        samples(fixed=120.0, found=100.0, tool=100.0), RIGHT | {name: WRONG}, PARTITIONS
    )
    assert not outcome.passed
    assert outcome.summary.endswith(f"WRONG: {name}")
    assert fixed.counted(outcome.figures).median == 0.5


def test_engines_that_are_all_wrong_do_not_excuse_each_other() -> None:
    outcome = judge(
        samples(fixed=120.0, found=100.0, tool=100.0), dict.fromkeys(RIGHT, WRONG), PARTITIONS
    )
    assert not outcome.passed
    assert not outcome.figures["right"]


def test_what_rounding_does_to_one_engine_it_may_do_to_another() -> None:
    noisy = dict.fromkeys(RIGHT, OutputDistance(8e-3, 6e-2))
    assert judge(samples(fixed=120.0, found=100.0, tool=100.0), noisy, PARTITIONS).passed


def test_one_partition_twice_is_neither_faster_nor_slower() -> None:
    outcome = same(PARTITIONS)
    assert outcome.passed
    assert outcome.figures["speedup"]["median"] == 1.0
    assert outcome.figures["same"]


CASES = {
    ZooCase(f"n{number}", Precision.FP16, batch): FixedForm(
        f"n{number}", batch, "", (), (), 2, 2, 1
    )
    for batch in (1, 32)
    for number in range(LEAST_NETWORKS)
}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed, "cases", lambda: CASES)


def record(found: float, errors: dict[str, OutputDistance] | None = None) -> dict[str, Any]:
    times = samples(fixed=110.0, found=found, tool=found)
    return {"figures": judge(times, errors or RIGHT, PARTITIONS).figures}


@pytest.mark.usefixtures("known")
def test_all_networks_are_held_to_the_mean_and_the_least_and_partitions_are_counted() -> None:
    records = {f"fixed.{case}": record(100.0) for case in CASES}
    outcome = judge_all(records)
    assert outcome.passed
    assert outcome.figures["partitions"] == 7 * len(CASES)
    assert "112 partitions evaluated in 16 runs" in outcome.summary
    assert outcome.figures["means"]["batch 1"]["median"] == pytest.approx(1.1)
    assert [goal["reached"] for goal in outcome.figures["goals"]] == [True, True]


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("batch", [1, 32])
def test_too_few_networks_at_either_batch_have_no_mean(batch: int) -> None:
    records = {f"fixed.{case}": record(100.0) for case in CASES}
    del records[f"fixed.n0.fp16.b{batch}"]
    with pytest.raises(RowError, match=r"^7 networks are measured at .*, at least 8 are asked for"):
        judge_all(records)


@pytest.mark.usefixtures("known")
def test_one_network_that_is_slower_fails_whatever_the_mean() -> None:
    records = {f"fixed.{case}": record(80.0) for case in CASES} | {
        "fixed.n3.fp16.b32": record(112.0)
    }
    outcome = judge_all(records)
    assert not outcome.passed
    assert [goal["reached"] for goal in outcome.figures["goals"]] == [True, False]


@pytest.mark.usefixtures("known")
def test_a_mean_below_the_goal_fails_though_no_network_is_slower() -> None:
    outcome = judge_all({f"fixed.{case}": record(106.0) for case in CASES})
    assert not outcome.passed
    assert [goal["reached"] for goal in outcome.figures["goals"]] == [False, True]


@pytest.mark.usefixtures("known")
def test_a_wrong_engine_counts_half_and_fails_the_mean() -> None:
    wrong = record(50.0, RIGHT | {FOUND: WRONG})
    outcome = judge_all(
        {f"fixed.{case}": record(80.0) for case in CASES} | {"fixed.n3.fp16.b1": wrong}
    )
    assert not outcome.passed
    assert outcome.figures["wrong"] == ["fixed.n3.fp16.b1"]
    assert outcome.figures["speedups"]["fixed.n3.fp16.b1"] == 0.5


def test_the_file_has_enough_networks_at_both_batches_all_of_the_zoo() -> None:
    forms = fixed_partitions().forms
    for batches in ({1}, {n.large_batch for n in zoo().values()} - {1}):
        networks = {each.network for each in forms if each.batch in batches}
        assert len(networks) >= LEAST_NETWORKS
        assert networks <= set(zoo())
    assert len({row.name for row in fixed.rows()}) == len(forms) + 1
    for each in forms:
        apart = each.only_then, each.only_here
        assert each.partition
        assert (each.then == each.operators) or any(apart)
        assert all(key.count(":") == 1 for key in each.changed)
        assert not any(":" in name for name in each.skipped)


Graph = tuple[FixedForm, Path, LoweredForms]


@pytest.fixture(scope="module", params=NAMES)
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A small graph, with its fixed form."""
    (form,) = (each for each in fixed_partitions().graphs if each.network == request.param)
    model = small_graph(form.network, tmp_path_factory.mktemp("graph"))
    return form, model, LoweredForms(model)


def test_todays_passes_still_make_the_fixed_partition_of_a_small_graph(graph: Graph) -> None:
    form, _, forms = graph
    lowered = lowered_fixed(form, forms)
    partition = operators.partition_of(lowered.program)
    assert (partition.total(), form.operators) == (form.operators, len(lowered.program.operators))
    assert tried(forms.lowered()).partition.total() == form.today < form.operators
    # Where no operator differs from those that the commit made, their number is theirs as well.
    if not form.only_then:
        assert form.operators == form.then
        assert not form.only_here
    # Whatever is left out or decided otherwise is needed.
    for name in form.skipped:
        with pytest.raises(RowError, match=f"json says {form.partition}, of"):
            lowered_fixed(replace(form, skipped=tuple({*form.skipped} - {name})), forms)


@pytest.mark.parametrize(
    "graph",
    [NAMES[0], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NAMES[1:])],
    indirect=True,
)
def test_a_form_that_passes_outgrew_is_noticed(graph: Graph) -> None:
    form, model, forms = graph
    stale = replace(form, changed=(*form.changed, "fuse-operators:0123456789abcdef"))
    with pytest.raises(RowError, match=r"is called fuse-operators:0123456789abcdef.*fix: python"):
        lowered_fixed(stale, forms)
    with pytest.raises(RowError, match=rf"json says {form.partition}, of .*fix: python"):
        lowered_fixed(replace(form, changed=(), skipped=()), forms)
    with pytest.raises(RowError, match="fix: python benchmarks/fix_partition"):
        FormsHere.of(model, stale, ())


@pytest.mark.parametrize(
    "gone", [{"skipped": ("magic",)}, {"changed": ("magic:0123456789abcdef",)}], ids=str
)
def test_a_form_that_names_a_pass_which_is_gone_is_refused(
    gone: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    (form,) = (each for each in fixed_partitions().graphs if each.network == NAMES[1])
    model = small_graph(form.network, tmp_path)
    again = rf"fix: python benchmarks/fix_partition.py --only {form.network}"
    with pytest.raises(RowError, match=rf"^no pass is called 'magic'; {again}"):
        FormsHere.of(model, replace(form, **gone), ())


def test_only_the_fixed_form_leaves_passes_out(tmp_path: Path) -> None:
    (form,) = (each for each in fixed_partitions().graphs if each.network == NAMES[2])
    assert form.skipped
    forms = FormsHere.of(small_graph(form.network, tmp_path), form, ())
    out = {record.name for record in forms.fixed.passes if record.skipped}
    assert out == {*form.skipped}
    assert not any(record.skipped for record in forms.found.passes)
    assert len(forms.fixed.program.operators) == form.operators
    assert len(forms.found.program.operators) == form.today


def test_the_file_is_written_as_it_is_read(tmp_path: Path) -> None:
    form = FixedForm(
        *("vit", 1, "pytorch 2", ("a:1",), ("b", "c"), 3, 3, 2, "ab"),
        *(("1 times x",), ("1 times y",)),
    )
    partitions = FixedPartitions("bfc01fc0", (form,), (form,))
    keep(partitions, tmp_path / "f.json")
    assert fixed_partitions(tmp_path / "f.json") == partitions


CASE = ZooCase("vit", Precision.FP16, 1)


class Tools:
    """Stands in for ``wpk optimize``: remembers what it was asked, and writes a file."""

    def __init__(self, context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[list[str]] = []
        monkeypatch.setattr(ZooCase, "model", lambda *_: context.folder / "m.onnx")
        monkeypatch.setattr(Context, "wpk", self)

    def __call__(self, *arguments: object) -> Finished:
        self.asked.append(list(map(str, arguments)))
        Path(self.asked[-1][3]).write_text(str(len(self.asked)))
        return Finished(0.0, "")

    def cache(self) -> Path:
        (folder,) = {Path(each[each.index("--cache") + 1]) for each in self.asked}
        return folder


@pytest.fixture
def context(tmp_path: Path) -> Context:
    (tmp_path / "row").mkdir()
    return Context(tmp_path / "store", tmp_path / "row", 1e12)


@pytest.fixture
def tools(context: Context, monkeypatch: pytest.MonkeyPatch) -> Tools:
    return Tools(context, monkeypatch)


def given(asked: list[str], flag: str) -> list[str]:
    """What follows a flag."""
    return [asked[n + 1] for n, each in enumerate(asked) if each == flag]


def of_zoo(context: Context) -> Path:
    """A plan that the row of the zoo has made, and a trial store that it learned."""
    plan = plans_folder(replace(context, budget=BUDGET)) / f"{CASE}.plan"
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.write_text("zoo")
    with TuningStore(CacheFolder(CASE.cache(context)).store) as store:
        store.begin_run(7)
    kernel = CASE.cache(context) / "cubin" / "ab" / "kernel.cubin"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("code")
    return plan


def _runs(folder: Path) -> int:
    with closing(sqlite3.connect(CacheFolder(folder).store)) as connection:
        (count,) = connection.execute("SELECT COUNT(*) FROM runs").fetchone()
        return int(count)


def test_what_the_zoo_tuned_is_the_found_engine_and_its_store_is_copied(
    context: Context, tools: Tools
) -> None:
    plan = of_zoo(context)
    before = CacheFolder(CASE.cache(context)).store.read_bytes()
    tuner = Tuner(CASE, context)
    assert tuner.found() == plan
    assert not tools.asked
    form = FixedForm("vit", 1, "", ("a:1", "b:2"), ("c", "d"), 3, 3, 2)
    made = tuner.fixed(form)
    (asked,) = tools.asked
    assert asked[asked.index("--budget") + 1] == BUDGET
    assert given(asked, "--change-site") == ["a:1", "b:2"]
    assert given(asked, "--skip-pass") == ["c", "d"]
    assert given(asked, "--forms") == ["fixed"]
    assert tools.cache() != CASE.cache(context)
    assert _runs(tools.cache()) == 1
    assert (tools.cache() / "cubin" / "ab" / "kernel.cubin").read_text() == "code"
    with TuningStore(CacheFolder(tools.cache()).store) as store:
        store.begin_run(8)
    assert _runs(tools.cache()) == 2
    assert _runs(CASE.cache(context)) == 1
    assert CacheFolder(CASE.cache(context)).store.read_bytes() == before
    assert tuner.fixed(form) == made  # kept
    assert tuner.fixed(replace(form, partition="ab")) != made  # of another file
    tools.asked.pop()
    assert tuner.found() == plan
    assert len(tools.asked) == 1
    assert _runs(tools.cache()) == 2


def test_the_fixed_form_is_tuned_without_its_passes_and_with_its_sites(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command itself, without a GPU: the plan has the form's operators and computes what the model does."""
    forms, model = written(ROLLED, context.folder), context.folder / "m.onnx"
    wanted = rolled_then(forms)
    (key,) = wanted.decisions.changed
    size, name = wanted.partition.total(), operators.digest(wanted.partition)
    form = FixedForm("vit", 1, "", (key,), (MOVED,), size, size, 3, name)
    monkeypatch.setattr(ZooCase, "model", lambda *_: model)

    def by_models(_: Context, *arguments: object) -> Finished:
        asked = [*map(str, arguments), "--target", "h200", "--search", "static"]
        assert main(asked) == 0
        return Finished(0.0, "")

    monkeypatch.setattr(Context, "wpk", by_models)
    plan = Tuner(CASE, context).fixed(form)
    written_plan = read_plan(plan).plan
    assert written_plan.provenance.skipped_passes == (MOVED,)
    assert written_plan.provenance.changed_sites == (key,)
    assert len(written_plan.steps) == size
    assert main(["verify", str(plan), str(model)]) == 0
    here = FormsHere.of(model, form, ())
    assert len(here.fixed.program.operators) == size > len(here.found.program.operators)
    assert not here.are_same


def test_without_the_zoo_a_row_tunes_in_a_store_of_its_own_that_the_zoo_does_not_see(
    context: Context, tools: Tools
) -> None:
    found = Tuner(CASE, context).found()
    (asked,) = tools.asked
    assert "--change-site" not in asked
    assert "--skip-pass" not in asked
    assert "--forms" not in asked
    assert not CASE.cache(context).exists()
    assert not (plans_folder(replace(context, budget=BUDGET)) / f"{CASE}.plan").exists()
    of_zoo(context)
    assert Tuner(CASE, context).found() == found  # what was begun is gone on with
    assert len(tools.asked) == 1


def test_a_found_form_keeps_only_keys_that_name_a_place_of_it(tmp_path: Path) -> None:
    (form,) = (each for each in fixed_partitions().graphs if each.network == NAMES[0])
    found = (*form.changed, "fuse-operators:0123456789abcdef", "channels-last:*")
    forms = FormsHere.of(small_graph(NAMES[0], tmp_path), form, found)
    assert set(forms.found_sites) == {*form.changed, "channels-last:*"}
    assert not forms.are_same
    again = FormsHere.of(small_graph(NAMES[0], tmp_path), form, form.changed)
    assert again.are_same


def test_a_found_form_has_what_warpgroups_alone_compute(tmp_path: Path) -> None:
    """Both products of a feed-forward block may be one kernel there, as they may in the plan that is compared."""
    (form,) = (each for each in fixed_partitions().graphs if each.network == NAMES[2])
    joined = every_site("fuse-feed-forwards")
    forms = FormsHere.of(small_graph(NAMES[2], tmp_path), form, (*form.changed, joined))
    assert joined in forms.found_sites
    assert any(isinstance(each, FeedForward) for each in forms.found.program.problems)
    assert not any(isinstance(each, FeedForward) for each in forms.fixed.program.problems)
