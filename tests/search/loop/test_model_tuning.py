"""Tuning a model: what is measured decides, and nothing is measured twice."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
from support.devices.dummy_gpu import DummyGpu
from support.devices.gpus import H200

from wpk.assembly.assemble import Setting, assemble
from wpk.assembly.evidence import EvidenceBook, with_evidence
from wpk.beside import Beside
from wpk.build import CompilePool, KernelCache
from wpk.checks.operator_reference import GraphReference, Reference
from wpk.device import MemoryRange
from wpk.dtypes import Precision
from wpk.errors import EngineError
from wpk.execution import BoundLaunch, Work
from wpk.lowering.lowered_model import LoweredModel
from wpk.lowering.model import lower_model
from wpk.options import BuildOptions, SearchOptions
from wpk.phases import Phases
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import read_plan, write_plan
from wpk.plan.provenance import Provenance
from wpk.progress import Progress, silent
from wpk.schedules.registry import TEMPLATES
from wpk.search.loop import model_tuning
from wpk.search.loop.budget import Budget, Effort
from wpk.search.loop.choices import Choices, static_choices
from wpk.search.loop.evidence import evidence_of
from wpk.search.loop.model_tuning import (
    ModelTuning,
    cases_of,
    deciding_regime,
    tune_model,
)
from wpk.search.loop.runs import entered
from wpk.search.loop.task import Task
from wpk.search.loop.tuning import Equipment, Tuning
from wpk.search.loop.twins import SHARED
from wpk.search.models.model_search import search_model
from wpk.search.searchers import Experience, Searcher, SearchSpace
from wpk.search.searchers.random_search import RandomSearch
from wpk.search.store import RunState, TuningStore
from wpk.search.store.records import RunRequest
from wpk.targets.registry import find_target
from wpk.trial import Regime
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.offers import Offers

TARGET = find_target("h200")
EFFORT = Effort(trials=3, patience=10, finalists=2, rounds=1, seconds=None, library=2)
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[3, 40] x) => (float[3, 1] y)
{ a = Softmax<axis = 1>(x)  b = Sigmoid(a)  y = ReduceMax<axes = [1]>(b) }
"""

QUANTISED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[3, 40] x, float[3, 40] w, float[3, 80] v) => (uint8[3, 40] a, uint8[3, 40] b, uint8[3, 80] c)
<float s = {0.25}, uint8 z = {3}, float t = {0.125}, uint8 u = {101}>
{ a = QuantizeLinear(x, s, z)  b = QuantizeLinear(w, t, u)  c = QuantizeLinear(v, s, z) }
"""

measured: list[int] = []
was_measured = threading.Event()


def _clock(works: Sequence[Work], regions: Sequence[MemoryRange]) -> tuple[float, ...]:
    """A block takes as long as it has threads, so large blocks lose."""
    del regions
    measured.append(len(works))
    was_measured.set()
    seconds = 1e-3 * sum(work.block[0] for work in works if isinstance(work, BoundLaunch))
    return seconds, 1.5 * seconds, 2 * seconds


class Bench:
    """A model with its static plan, to tune again and again."""

    def __init__(self, folder: Path, text: str = MODEL) -> None:
        model = folder / "model.onnx"
        onnx.save(onnx.parser.parse_model(text), model)
        self.folder = folder
        self.lowered: LoweredModel = lower_model(model, {}, Precision.FP32)
        self.pool = CompilePool(TARGET.arch, cache=KernelCache(folder), workers=1)
        self.setting = Setting(TARGET, Precision.FP32, Provenance("model.onnx", "", 17, {}, ()))
        problems = [operator.problem for operator in self.lowered.program.operators]
        with self.pool:
            self.found = search_model(problems, TEMPLATES, TARGET, self.pool.compile, silent)
        self.static = self.plan(static_choices(self.found))

    def plan(self, choices: Choices) -> PlanBundle:
        program, made = self.lowered.program, choices.implementations
        bundle = assemble(program, made, choices.kernels, self.setting)
        return with_evidence(bundle, EvidenceBook(evidence_of(bundle.plan, choices)))

    def tune(self, tell: Progress = silent, **changes: object) -> tuple[Choices, PlanBundle]:
        tuning = Tuning("random", EFFORT, Budget(), 0, self.folder / "trials.sqlite", H200)
        measured.clear()
        was_measured.clear()
        problems = [step.operator.problem for step in self.static.plan.steps]
        how = replace(tuning, **changes)  # type: ignore[arg-type]
        request = RunRequest("model.onnx", "0" * 64, BuildOptions("h200"), SearchOptions())
        with (
            self.pool,
            GpuLease(lambda: DummyGpu(_clock)) as lease,  # type: ignore[arg-type,return-value]
            Offers(lease, problems) as offers,
            entered(how, request) as (limited, run),
            Beside("references") as references,
        ):
            equipment = Equipment(self.pool.submit, lease, offers)
            phases = Phases(tell)
            cases = cases_of(self.lowered, 0, phases)
            for each in cases:
                each.begin(references)
            given = self.static.plan, TARGET, equipment, limited, run
            asked = ModelTuning(*given, phases, cases)
            budget = lambda: limited.budget  # noqa: E731
            choices = tune_model(self.lowered, self.found, asked, budget)
        return choices, self.plan(choices)


def test_only_the_operators_that_are_named_are_measured(bench: Bench, tmp_path: Path) -> None:
    first, other = bench.lowered.program.operators
    found, bundle = bench.tune(operators=(f"{first.name[:-1]}?",), store=tmp_path / "t.sqlite")
    assert set(found.results) == {first.problem}
    named, left = bundle.plan.steps
    assert named.evidence.measurement is not None
    assert left.evidence.measurement is None
    assert left.candidate == bench.static.plan.steps[1].candidate
    assert found.schedules[other.problem] is bench.found.kernels[other.problem]


def test_a_pattern_that_matches_no_operator_is_refused_naming_them(bench: Bench) -> None:
    with pytest.raises(EngineError, match=r"no operator matches 'conv_\*'; there are ") as error:
        bench.tune(operators=("conv_*",))
    assert bench.static.plan.steps[0].operator.name in error.value.what


def test_a_run_begins_with_what_others_measured_and_shares_by_measured_time(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taught: list[Experience | None] = []
    shared: list[Task] = []

    def make(space: SearchSpace, seed: int) -> Searcher:
        taught.append(space.experience)
        return RandomSearch(space, seed)

    def tune(tasks: Sequence[Task], *others: object) -> object:
        shared.extend(tasks)
        return tuned(tasks, *others)  # type: ignore[arg-type]

    tuned = model_tuning.tune
    monkeypatch.setattr(model_tuning, "find_searcher", lambda name: make)
    monkeypatch.setattr(model_tuning, "tune", tune)
    bench.tune(store=tmp_path / "t.sqlite")
    assert taught
    assert set(taught) == {None}  # its own trials are no lessons
    assert all(task.measured is not None and task.measured >= 1e-3 for task in shared)
    assert all(
        task.gain > task.count * task.estimate for task in shared
    )  # the models expect microseconds
    taught.clear()
    bench.tune(store=tmp_path / "t.sqlite", effort=replace(EFFORT, trials=6))
    lessons = [lesson for each in taught if each is not None for lesson in each.lessons]
    assert lessons
    assert all(len(lesson.costs) >= 3 for lesson in lessons)


def last_node(bench: Bench) -> str:
    return str(bench.lowered.graph.nodes[-1].name)


def test_a_problem_is_measured_while_the_references_of_others_are_computed(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = GraphReference.of

    def waiting(reference: GraphReference, node: Any, memory: Any) -> Reference:
        if node.name == last_node(bench):
            assert was_measured.wait(60)
        return of(reference, node, memory)

    monkeypatch.setattr(GraphReference, "of", waiting)
    found, _ = bench.tune(store=tmp_path / "t.sqlite")
    assert len(found.results) == 2
    assert all(result.best is not None for result in found.results.values())


def test_a_reference_that_fails_late_ends_tuning_with_its_words_and_no_trial_is_lost(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = GraphReference.of

    def failing(reference: GraphReference, node: Any, memory: Any) -> Reference:
        if node.name == last_node(bench):
            assert was_measured.wait(60)
            raise EngineError(f"nobody executes '{node.name}'", fix="")
        return of(reference, node, memory)

    monkeypatch.setattr(GraphReference, "of", failing)
    path = tmp_path / "t.sqlite"
    with pytest.raises(EngineError, match=f"nobody executes '{last_node(bench)}'"):
        bench.tune(store=path)
    assert not [each for each in threading.enumerate() if each.name.startswith("wpk-references")]
    with TuningStore(path) as store:
        assert [run.state for run in store.runs()] == [RunState.FAILED]
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM trials").fetchone() == (1,)


def test_tuning_tells_how_long_it_will_take(bench: Bench, tmp_path: Path) -> None:
    told: list[tuple[int, int, float | None]] = []

    def tell(stage: str, done: int, total: int, left: float | None = None) -> None:
        if stage == "tuning problems":
            told.append((done, total, left))

    bench.tune(tell, store=tmp_path / "t.sqlite")
    assert told[-1][:2] == (2, 2)
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert any(left is not None and left > 0 for _, _, left in told)


def test_layers_that_differ_in_scales_only_are_tuned_as_one(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    def tell(stage: str, done: int, total: int, left: float | None = None) -> None:
        del left
        if stage == "tuning problems":
            told.append((done, total))

    bench = Bench(tmp_path, QUANTISED)
    found, bundle = bench.tune(tell)
    one, also, other = sorted(bundle.plan.steps, key=lambda step: step.operator.outputs)
    twins = one.operator.problem, also.operator.problem
    assert len({*twins, other.operator.problem}) == 3
    assert told[-1] == (2, 2), "the twins are one task"
    assert set(found.results) == {*twins, other.operator.problem}
    first, second = (found.results[problem] for problem in twins)
    assert first.tried == second.tried
    assert (first.lookups[-1] == SHARED) + (second.lookups[-1] == SHARED) == 1
    assert one.candidate == also.candidate
    assert one.launches[0].kernel == also.launches[0].kernel, "one kernel"
    assert one.launches[0].arguments != also.launches[0].arguments, "with other numbers"
    assert also.evidence.measurement is not None
    assert len(bundle.plan.kernels) == 2


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("tuning"))


@pytest.mark.slow
def test_the_fastest_that_was_measured_is_chosen_and_the_plan_says_so(
    bench: Bench, tmp_path: Path
) -> None:
    found, bundle = bench.tune()
    assert set(found.results) == {step.operator.problem for step in bundle.plan.steps}
    for step in bundle.plan.steps:
        tuned, measured = found.results[step.operator.problem], step.evidence.measurement
        assert measured is not None
        assert measured.trials == EFFORT.trials
        assert measured.failed == 0
        costs = [each.cost for each in tuned.tried]
        assert measured.median_seconds == min(costs)
        static = bench.found.kernels[step.operator.problem].finalist
        assert any(trial.candidate == static.candidate for trial in tuned.tried)
        assert measured.regime == "warm"
    write_plan(tmp_path / "tuned.plan", bundle)
    assert read_plan(tmp_path / "tuned.plan").plan == bundle.plan


@pytest.mark.slow
def test_the_same_again_measures_nothing_and_chooses_the_same(bench: Bench) -> None:
    _, first = bench.tune()
    _, second = bench.tune()
    assert not measured
    assert [s.candidate for s in second.plan.steps] == [s.candidate for s in first.plan.steps]
    assert [s.evidence for s in second.plan.steps] == [s.evidence for s in first.plan.steps]


def test_what_fits_in_l2_is_measured_warm(bench: Bench) -> None:
    plan = bench.static.plan
    assert deciding_regime(plan, TARGET) is Regime.WARM
    large = replace(plan.memory, weight_bytes=TARGET.l2_bytes + 1)
    assert deciding_regime(replace(plan, memory=large), TARGET) is Regime.COLD
