"""Plans with library steps: chosen where the library is faster, kept, checked, confirmed, refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from support.devices.dummy_gpu import DummyGpu, is_library
from support.devices.gpus import H200
from support.plans.candidates import library_call

from wpk.assembly import PackedConstants
from wpk.assembly.assemble import Setting, assemble
from wpk.assembly.evidence import EvidenceBook, with_evidence
from wpk.backends import open_device
from wpk.build import CompilePool, KernelCache
from wpk.candidate import GENERATED, Kind, Maker
from wpk.checks.pass_proof import prove_passes
from wpk.checks.scope import Scope
from wpk.checks.verification import verify
from wpk.device import MemoryRange
from wpk.dtypes import DType, Precision
from wpk.engine import Engine, WeightMemory
from wpk.errors import PlanError
from wpk.execution import BoundCall, LibraryImage, Work
from wpk.launch import Launch
from wpk.lowering.model import lower_model
from wpk.options import BuildOptions, SearchOptions
from wpk.phases import Phases
from wpk.plan.checks.whole_plan import check_plan
from wpk.plan.fields import MAX_BYTES
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import read_plan, write_plan
from wpk.plan.provenance import Provenance
from wpk.progress import silent
from wpk.schedules.registry import TEMPLATES
from wpk.search.loop import confirmation
from wpk.search.loop.budget import Budget, Effort
from wpk.search.loop.choices import Choices, static_choices
from wpk.search.loop.confirmation import LEAST_ROUNDS, ROUNDS, EngineForm, confirmed
from wpk.search.loop.evidence import evidence_of
from wpk.search.loop.model_tuning import ModelTuning, cases_of, tune_model
from wpk.search.loop.runs import entered
from wpk.search.loop.tuning import Equipment, Tuning
from wpk.search.models.model_search import search_model
from wpk.search.store.records import RunRequest
from wpk.targets.registry import find_target
from wpk.trial import Status
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.offers import Offers

TARGET = find_target("h200")
EFFORT = Effort(trials=2, patience=10, finalists=1, rounds=1, seconds=None, library=3)
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 8, 6, 5] x) => (float[2, 16, 6, 5] y)
<float[16, 8, 3, 3] w, float[16] b, float[16, 16, 1, 1] v>
{ c = Conv<pads = [1, 1, 1, 1]>(x, w, b)  r = Relu(c)  d = Conv(r, v)  y = Sigmoid(d) }
"""

Times = Callable[[Sequence[Work]], float]


class Bench:
    """A model of two convolutions; a launch takes 10 µs, a library call what a test says."""

    def __init__(self, folder: Path) -> None:
        self.model, self.folder = folder / "model.onnx", folder
        onnx.save(_with_weights(onnx.parser.parse_model(MODEL)), self.model)
        self.lowered = lower_model(self.model, {}, Precision.FP32)
        self.pool = CompilePool(TARGET.arch, cache=KernelCache(folder), workers=1)
        self.setting = Setting(TARGET, Precision.FP32, Provenance("model.onnx", "", 17, {}, ()))
        problems = [operator.problem for operator in self.lowered.program.operators]
        with self.pool:
            self.found = search_model(problems, TEMPLATES, TARGET, self.pool.compile, silent)
        self.choices = static_choices(self.found)
        self.static = self.plan(self.choices)

    def open(self, times: Times, engines: int = 2) -> Callable[[], Any]:
        def clock(works: Sequence[Work], regions: Sequence[MemoryRange]) -> tuple[float, ...]:
            del regions
            seconds = times(works)
            return 0.99 * seconds, seconds, 1.01 * seconds

        return lambda: DummyGpu(clock, engines=engines)

    def tune(self, open_gpu: Callable[[], Any], store: Path) -> Choices:
        tuning = Tuning("random", EFFORT, Budget(), 0, store / "trials.sqlite", H200)
        request = RunRequest("model.onnx", "0" * 64, BuildOptions("h200"), SearchOptions())
        with (
            self.pool,
            GpuLease(open_gpu) as lease,
            Offers(lease, self.found.kernels) as offers,
            entered(tuning, request) as (limited, run),
        ):
            equipment = Equipment(self.pool.submit, lease, offers)
            given = self.static.plan, TARGET, equipment, limited, run
            phases = Phases()
            how = ModelTuning(*given, phases, cases_of(self.lowered, 0, phases))
            return tune_model(self.lowered, self.found, how, lambda: limited.budget)

    def plan(self, choices: Choices) -> PlanBundle:
        program, made = self.lowered.program, choices.implementations
        bundle = assemble(program, made, choices.kernels, self.setting)
        return with_evidence(bundle, EvidenceBook(evidence_of(bundle.plan, choices)))


def _with_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    for info in list(model.graph.value_info):
        if info.name in ("w", "b", "v"):
            shape = [d.dim_value for d in info.type.tensor_type.shape.dim]
            values = rng.standard_normal(shape).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(values, info.name))
    del model.graph.value_info[:]
    return model


def _each(library: float) -> Times:
    return lambda works: sum(library if is_library(work) else 1e-5 for work in works)


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def mixed(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Choices:
    return bench.tune(bench.open(_each(5e-6)), tmp_path_factory.mktemp("mixed"))


def test_the_library_computes_what_it_is_faster_at(mixed: Choices, bench: Bench) -> None:
    plan = bench.plan(mixed).plan
    for step in plan.steps:
        measured = step.evidence.measurement
        assert step.candidate.maker == Maker("cuDNN", "9.19.0", Kind.LIBRARY)
        assert step.workspace_bytes == DummyGpu.scratch
        assert step.launches == ()
        assert measured is not None
        assert measured.library is not None
        assert measured.generated is not None
        assert measured.chosen == measured.library
    assert not plan.kernels


@pytest.mark.parametrize("library", [2e-5, 1e-5], ids=["slower", "within noise"])
def test_generated_kernels_stay_where_it_is_not(
    bench: Bench, library: float, tmp_path: Path
) -> None:
    found = bench.tune(bench.open(_each(library)), tmp_path)
    assert set(found.families.values()) == {GENERATED}
    assert set(found.libraries) == set(found.results)
    for step in bench.plan(found).plan.steps:
        measured = step.evidence.measurement
        assert measured is not None
        assert measured.library is not None
        assert measured.library.median_seconds == library


def test_one_that_is_not_made_ready_is_rejected_and_the_next_one_tried(
    bench: Bench, tmp_path: Path
) -> None:
    class Broken(DummyGpu):
        broken = 0

    fast = _each(5e-6)
    found = bench.tune(lambda: Broken(lambda works, _: (fast(works),), engines=2), tmp_path)
    for tuned in found.results.values():
        assert [each.status for each in tuned.library] == [Status.REJECTED, Status.OK]
        assert "not made ready" in tuned.library[0].detail
        assert dict(found.options[tuned.problem]["cuDNN"].candidate.configuration)["engine"] == 1


def test_without_a_library_the_plan_says_why(bench: Bench, tmp_path: Path) -> None:
    class Absent(DummyGpu):
        version = ""

    found = bench.tune(lambda: Absent(lambda works, _: (1e-5,)), tmp_path)
    for step in bench.plan(found).plan.steps:
        assert step.evidence.measurement is not None
        assert step.evidence.measurement.refusals == ("cuDNN is not installed",)


def test_a_plan_with_library_steps_is_written_read_and_right_on_the_cpu(
    mixed: Choices, bench: Bench, tmp_path: Path
) -> None:
    bundle = bench.plan(mixed)
    write_plan(tmp_path / "mixed.plan", bundle)
    again = read_plan(tmp_path / "mixed.plan")
    assert again.plan == bundle.plan
    with open_device("cpu") as device:
        outcome = verify(again, prove_passes(bench.lowered, Scope(seeds=1), silent), device, silent)
    assert outcome.passed, outcome.failures()
    assert all("cuDNN 9.19.0 is not executed here" in o.check.detail for o in outcome.operators)


def test_wrong_weights_of_a_library_step_are_found(mixed: Choices, bench: Bench) -> None:
    bundle = bench.plan(mixed)
    name = bundle.plan.steps[0].inputs[1]
    spoiled = {**bundle.weights, name: np.multiply(bundle.weights[name], np.float32(1.02))}
    with open_device("cpu") as device:
        wrong = replace(bundle, weights=spoiled)
        outcome = verify(wrong, prove_passes(bench.lowered, Scope(seeds=1), silent), device, silent)
    assert not outcome.passed


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"candidate": library_call((("graph", 7),))}, "candidate.configuration: graph 7 of"),
        ({"workspace_bytes": -1}, "workspace_bytes"),
        ({"workspace_bytes": MAX_BYTES + 1}, "workspace_bytes"),
    ],
)
def test_a_plan_whose_library_step_is_damaged_is_refused(
    mixed: Choices, bench: Bench, change: dict[str, Any], field: str
) -> None:
    bundle = bench.plan(mixed)
    *before, last = bundle.plan.steps
    damaged = replace(last, **change)
    plan = replace(bundle.plan, steps=(*before, damaged))
    with pytest.raises(PlanError, match=field):
        check_plan(plan)


def test_a_library_reads_a_weight_that_is_there_in_its_layout(mixed: Choices, bench: Bench) -> None:
    bundle = bench.plan(mixed)
    *before, last = bundle.plan.steps
    weight = bundle.plan.weights[last.inputs[1]]
    first, *sizes = weight.shape
    fewer = replace(weight, shape=(first - 1, *sizes))
    for changed, said in (
        (replace(weight, packing=None), f"{weight.dtype}, packing None; cuDNN reads"),
        (replace(weight, dtype=DType.INT8), f"int8, packing {weight.packing}; cuDNN reads"),
        (fewer, f"cuDNN reads {prod(weight.shape) * weight.dtype.bytes} bytes, "),
    ):
        weights = {**bundle.plan.weights, weight.name: changed}
        with pytest.raises(PlanError, match=rf"inputs\[1\]: {said}"):
            check_plan(replace(bundle.plan, weights=weights))
    launch = Launch("ab" * 32, "wpk_none", (1, 1, 1), (32, 1, 1), 0, ())
    with pytest.raises(PlanError, match=r"launches: 1, and cuDNN computes it"):
        check_plan(replace(bundle.plan, steps=(*before, replace(last, launches=(launch,)))))


def test_all_whole_engines_are_compared_and_the_fastest_is_kept(
    mixed: Choices, bench: Bench
) -> None:
    chosen = _confirm(bench, mixed, _each(5e-6))
    measured = chosen.plan.measurement
    assert measured is not None
    assert [each.name for each in measured.variants] == ["models", "library"]  # mixed is library
    assert measured.chosen == "library"
    assert measured.plan.library_steps == 2
    for step in chosen.plan.steps:
        assert step.evidence.measurement is not None
        assert step.evidence.in_engine_seconds == pytest.approx(4.95e-6)


def test_a_candidate_that_nobody_tried_has_its_time_in_the_engine(
    mixed: Choices, bench: Bench
) -> None:
    untried = replace(mixed, results={})
    plan = _confirm(bench, untried, _each(5e-6)).plan
    for step in plan.steps:
        assert step.evidence.measurement is None
        assert step.evidence.in_engine_seconds == pytest.approx(4.95e-6)


def test_substitutions_that_do_not_pay_in_the_engine_are_undone_weakest_first(
    bench: Bench, tmp_path: Path
) -> None:
    first, second = (step.operator for step in bench.static.plan.steps)
    images: dict[str, str] = {}  # operators by the library's image

    def alone(works: Sequence[Work]) -> float:
        """Generated kernels win, at the second operator by more."""
        calls = [work for work in works if isinstance(work, BoundCall)]
        return 1e-5 if not calls else 2e-5 if images[calls[0].image] == first.name else 4e-5

    class Known(DummyGpu):
        def prepare(self, image: LibraryImage) -> int:
            named = {each.problem: each.name for each in (first, second)}
            images[image.digest] = named[image.problem]
            return super().prepare(image)

    found = bench.tune(lambda: Known(lambda works, _: (alone(works),), engines=1), tmp_path)
    assert set(found.families.values()) == {GENERATED}

    def together(works: Sequence[Work]) -> float:
        """The best engine has the library at the first operator only."""
        calls = tuple(images[w.image] for w in works if isinstance(w, BoundCall))
        return 1e-5 if calls == (first.name,) else 2e-5

    plan = _confirm(bench, found, together).plan
    measured = plan.measurement
    assert measured is not None
    assert [each.name for each in measured.variants] == ["models", "library", "undone 2/4"]
    assert measured.chosen == "undone 2/4"
    assert measured.undone == (first.name,)
    assert [step.image is not None for step in plan.steps] == [True, False]


def test_the_models_choice_is_kept_where_nothing_else_is_faster(
    mixed: Choices, bench: Bench
) -> None:
    measured = _confirm(bench, mixed, _each(2e-5)).plan.measurement
    assert measured is not None
    assert measured.chosen == "models"
    assert measured.undone == ()


@pytest.mark.parametrize(
    ("library", "seconds", "turns"),
    [(1.04e-5, None, 2 * ROUNDS), (1.1e-5, None, ROUNDS + 1), (1.04e-5, 0.0, 2 * LEAST_ROUNDS)],
)
def test_engines_far_behind_have_one_turn_and_all_fewer_when_the_time_is_over(
    mixed: Choices, bench: Bench, library: float, seconds: float | None, turns: int
) -> None:
    measured: list[float] = []

    def counted(works: Sequence[Work]) -> float:
        measured.append(_each(library)(works))
        return measured[-1]

    plan = _confirm(bench, mixed, counted, seconds).plan
    assert plan.measurement is not None
    assert [each.name for each in plan.measurement.variants] == ["models", "library"]
    steps_in_the_engine = len(plan.steps)
    assert len(measured) == turns + steps_in_the_engine


def test_engines_of_a_round_share_their_weights(
    mixed: Choices, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[WeightMemory | None] = []

    class Recording(Engine):
        def __init__(self, *given: Any, weights: WeightMemory | None = None) -> None:
            seen.append(weights)
            super().__init__(*given, weights=weights)

    monkeypatch.setattr(confirmation, "Engine", Recording)
    _confirm(bench, mixed, _each(1.04e-5))
    rounds = [seen[start : start + 2] for start in range(0, 2 * ROUNDS, 2)]
    assert all(first is second is not None for first, second in rounds)
    assert len({id(first) for first, _ in rounds}) == ROUNDS


def _confirm(
    bench: Bench, found: Choices, times: Times, seconds: float | None = None
) -> PlanBundle:
    program, static = bench.lowered.program, bench.choices
    with bench.open(times)() as gpu:
        form = EngineForm("", program, found, bench.setting, PackedConstants(program.constants))
        best = confirmed([form], static, gpu, silent, seconds=seconds)
        return with_evidence(best.bundle, best.book)
