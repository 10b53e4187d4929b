"""Forms of a model compete: what was measured decides, and the whole engine at last. The CPU stands in for the GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from support.devices.dummy_gpu import DummyGpu
from support.devices.gpus import H200

import wpk
from wpk import pipeline
from wpk.assembly import write_lock
from wpk.device import MemoryRange
from wpk.errors import EngineError, GraphError
from wpk.execution import BoundLaunch, Image, KernelImage, Work
from wpk.plan import FormOutcome, PlanBundle, TriedForm
from wpk.problems import Problem
from wpk.schedules import TEMPLATES
from wpk.search.forms import Estimates
from wpk.search.loop import form_contest, form_tuning, measuring
from wpk.search.loop.budget import Effort
from wpk.search.loop.cache_folder import CacheFolder
from wpk.search.store.store import TuningStore
from wpk.search.store.summary import summarize
from wpk.trial_bench.gpu_lease import GpuLease

BLOCKS = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 8, 4, 3] x, float[8, 8, 1, 1] w, float[8, 8, 1, 1] v) => (float[1, 8, 4, 3] z)
{
    c = Conv(x, w)  r = Relu(c)  d = Conv(x, v)  y = Add(r, d)
    e = Conv(y, w)  s = Relu(e)  f = Conv(y, v)  z = Add(s, f)
}
"""
"""Two equal blocks: of two products one computes the addition, the last by rule, and the first as well can."""

SECOND_ADDS = "Epilogue = wpk::Add<wpk::Operand<0>, wpk::Acc>;"
FIRST_ADDS = "Epilogue = wpk::Add<wpk::Relu<wpk::Acc>, wpk::Operand<0>>;"
KEPT = ("conv_simt", "elementwise")
OPTIONS: dict[str, Any] = {
    "effort": 0,
    "budget": "20 trials",
    "skip_templates": [each.name for each in TEMPLATES if each.name not in KEPT],
    "skip_passes": ["channels-last"],
    "check": "quick",
}
ONCE = Effort(trials=1, patience=1, finalists=1, rounds=1, seconds=None, library=1)


@dataclass
class Gpu:
    """Kernels take 10 µs, and 50 µs where their source says something.

    Attributes:
        slow: What it says.
        texts: Sources that were loaded, by digest.
    """

    slow: str = "-"
    texts: dict[str, str] = field(default_factory=dict)

    def seconds(self, work: Work) -> float:
        text = self.texts[work.kernel] if isinstance(work, BoundLaunch) else ""
        return 5e-5 if self.slow in text else 1e-5

    def clock(self, works: Sequence[Work], regions: Sequence[MemoryRange]) -> tuple[float, ...]:
        del regions
        seconds = sum(map(self.seconds, works))
        return 0.999 * seconds, seconds, 1.001 * seconds

    def open(self) -> Any:
        gpu = self

        class Reading(DummyGpu):
            def load(self, image: Image) -> None:
                if isinstance(image, KernelImage):
                    gpu.texts[image.digest] = image.source.text
                super().load(image)

        return Reading(self.clock)


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    stand_in = Gpu()
    monkeypatch.setattr(measuring, "read_gpu", lambda: H200)
    monkeypatch.setattr("wpk.pipeline.from_model.GpuLease", partial(GpuLease, stand_in.open))
    monkeypatch.setattr(measuring, "effort_of", lambda level: ONCE)
    monkeypatch.setattr(form_tuning, "LEAST_TRIALS", 1)
    _let_measuring_take_hours(monkeypatch)
    return stand_in


def _let_measuring_take_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contest's clock stands still but while something is measured: looking at forms is what it limits."""
    now = [0.0]

    def slowly(measure: Callable[..., Any]) -> Callable[..., Any]:
        def measured(*given: Any) -> Any:
            now[0] += 1e4
            return measure(*given)

        return measured

    clock = SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(form_contest, "time", clock)
    module = import_module("wpk.search.loop.measured_model")  # the door has a function of this name
    monkeypatch.setattr(module, "tune_model", slowly(module.tune_model))
    tuning = form_tuning.FormTuning
    monkeypatch.setattr(tuning, "measure", slowly(tuning.measure))


@pytest.fixture(scope="module")
def cubins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled kernels, which all tests share."""
    return tmp_path_factory.mktemp("cubin")


@pytest.fixture
def optimize(tmp_path: Path, cubins: Path) -> Callable[..., PlanBundle]:
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "cubin").symlink_to(cubins)
    model = onnx.parser.parse_model(BLOCKS)
    rng = np.random.default_rng(0)
    for info in list(model.graph.input)[1:]:
        values = rng.standard_normal([d.dim_value for d in info.type.tensor_type.shape.dim])
        array = onnx.numpy_helper.from_array(values.astype(np.float32), info.name)
        model.graph.initializer.append(array)
        model.graph.input.remove(info)

    path = tmp_path / "m.onnx"
    onnx.save(model, path)

    def run(**options: Any) -> PlanBundle:
        return wpk.optimize(
            path, tmp_path / "m.plan", cache=tmp_path / "c", **{**OPTIONS, **options}
        )

    return run


def _trials(folder: Path) -> int:
    with TuningStore(CacheFolder(folder).store) as store:
        return summarize(store).trials


def _moved(bundle: PlanBundle) -> TriedForm:
    """The form in which the first product adds."""
    assert bundle.plan.forms is not None
    (tried,) = (each for each in bundle.plan.forms.tried if each.measured is not None)
    return tried


def test_a_merge_that_is_slower_is_taken_back_in_all_equal_places_and_proven(
    gpu: Gpu, optimize: Callable[..., PlanBundle], tmp_path: Path
) -> None:
    gpu.slow = SECOND_ADDS
    bundle = optimize()
    plan, tried = bundle.plan, _moved(bundle)
    assert plan.forms is not None
    assert (tried.outcome, tried.places) == (FormOutcome.TAKEN, 2)
    assert tried.measured_usual == pytest.approx(2 * 6e-5, rel=0.01)
    assert tried.measured == pytest.approx(2 * 2e-5, rel=0.01)
    assert plan.forms.found == plan.forms.chosen == plan.provenance.changed_sites == (tried.site,)
    assert plan.measurement is not None
    assert plan.measurement.chosen.startswith("found")
    assert plan.forms.begun is not None
    assert plan.forms.begun.changed == ()
    assert plan.forms.begun.estimate == plan.forms.begun.passes_estimate
    times = {each.name: each.median_seconds for each in plan.measurement.variants}
    assert "passes" not in times  # it is the one that tuning began with
    assert times[plan.measurement.chosen] == pytest.approx(4e-5)
    assert times["models"] == pytest.approx(12e-5)
    assert times["unfused"] == pytest.approx(6e-5)
    phases = plan.measurement.phases
    assert {"graph passes", "tuning problems", "comparing engines", "looking at forms"} <= set(
        phases
    )
    assert all(seconds >= 0 for seconds in phases.values())
    assert not any(SECOND_ADDS in text for text in bundle.sources.values())
    assert any(FIRST_ADDS in text for text in bundle.sources.values())
    assert plan.checks
    assert not any(check.failed for check in plan.checks)
    write_lock(tmp_path / "m.lock", bundle)
    given = tmp_path / "m.onnx", tmp_path / "again.plan", tmp_path / "m.lock"
    pipeline.rebuild(*given, cache=tmp_path / "c", check="off")
    assert (tmp_path / "again.plan").read_bytes() == (tmp_path / "m.plan").read_bytes()
    before = _trials(tmp_path / "c")
    again = optimize()
    assert _trials(tmp_path / "c") == before
    assert again.plan.forms == plan.forms


def test_a_merge_that_is_faster_stays_and_what_the_models_rule_out_is_not_tried(
    gpu: Gpu, optimize: Callable[..., PlanBundle], tmp_path: Path
) -> None:
    gpu.slow = FIRST_ADDS
    bundle = optimize()
    plan, tried = bundle.plan, _moved(bundle)
    assert plan.forms is not None
    assert tried.outcome is FormOutcome.SLOWER
    assert plan.forms.found == plan.forms.chosen == plan.provenance.changed_sites == ()
    outcomes = [each.outcome for each in plan.forms.tried]
    assert outcomes.count(FormOutcome.HOPELESS) == len(outcomes) - 1 > 0
    assert plan.forms.partitions == len(outcomes) + 1
    with TuningStore(CacheFolder(tmp_path / "c").store) as store, store.reading() as connection:
        (templates,) = zip(*connection.execute("SELECT DISTINCT template FROM trials"), strict=True)
    assert templates == ("conv_simt",)  # nothing element-wise was tried alone


def _let_models_dislike(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Estimates of problems that are said so are ten times as long."""
    seconds = Estimates.seconds

    def disliked(self: Estimates, problem: Problem) -> float:
        return (10.0 if problem.words().endswith(words) else 1.0) * seconds(self, problem)

    monkeypatch.setattr(Estimates, "seconds", disliked)


@pytest.mark.parametrize("slow", [SECOND_ADDS, FIRST_ADDS])
def test_tuning_begins_with_what_the_models_prefer_and_whole_engines_decide(
    slow: str,
    gpu: Gpu,
    optimize: Callable[..., PlanBundle],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    gpu.slow = slow
    _let_models_dislike("3 +res", monkeypatch)
    bundle = optimize()
    plan = bundle.plan
    assert plan.forms is not None
    assert plan.forms.begun is not None
    assert plan.measurement is not None
    (key,) = plan.forms.begun.changed
    assert plan.forms.begun.estimate < plan.forms.begun.passes_estimate
    begun = next(each for each in plan.forms.tried if each.outcome is FormOutcome.BEGUN)
    assert (begun.site, begun.places, begun.measured) == (key, 2, None)
    times = {each.name: each.median_seconds for each in plan.measurement.variants}
    models_are_right = slow == SECOND_ADDS
    assert times["models"] == pytest.approx(4e-5 if models_are_right else 12e-5)
    assert times["passes"] == pytest.approx(12e-5 if models_are_right else 4e-5)
    assert plan.forms.chosen == plan.provenance.changed_sites
    assert plan.forms.chosen == ((key,) if models_are_right else ())
    assert any(FIRST_ADDS in text for text in bundle.sources.values()) is models_are_right
    assert plan.checks
    assert not any(check.failed for check in plan.checks)
    write_lock(tmp_path / "m.lock", bundle)
    given = tmp_path / "m.onnx", tmp_path / "again.plan", tmp_path / "m.lock"
    pipeline.rebuild(*given, cache=tmp_path / "c", check="off")
    assert (tmp_path / "again.plan").read_bytes() == (tmp_path / "m.plan").read_bytes()


def test_the_half_that_gains_most_is_an_engine_of_its_own() -> None:
    def taken(site: str, gain: float) -> TriedForm:
        return TriedForm(site, "", 1, FormOutcome.TAKEN, "", 1.0, 1.0, 10.0, 10.0 - gain)

    slower = TriedForm("d", "", 1, FormOutcome.SLOWER, "", 1.0, 1.0, 1.0, 2.0)
    tried = [taken("a", 1.0), slower, taken("b", 3.0), taken("c", 2.0)]
    assert form_contest.strongest_half(tried) == ["b", "c"]
    assert form_contest.strongest_half(tried[:2]) == []


def test_fixed_forms_are_not_compared(gpu: Gpu, optimize: Callable[..., PlanBundle]) -> None:
    gpu.slow = SECOND_ADDS
    plan = optimize(forms="fixed").plan
    assert plan.forms is None
    assert plan.measurement is not None
    assert {each.name for each in plan.measurement.variants} <= {"models", "generated", "mixed"}


def test_a_form_that_is_given_is_kept_and_others_are_not_looked_at(
    gpu: Gpu, optimize: Callable[..., PlanBundle], tmp_path: Path
) -> None:
    key = _moved(optimize()).site
    gpu.slow = FIRST_ADDS  # so that the passes' own form is faster
    bundle = optimize(changed_sites=[key])
    plan = bundle.plan
    assert plan.provenance.changed_sites == (key,)
    assert plan.forms is None
    assert plan.measurement is not None
    names = {each.name for each in plan.measurement.variants}
    assert not names & {"found", "passes", "unfused"}
    assert any(FIRST_ADDS in text for text in bundle.sources.values())
    assert plan.checks
    assert not any(check.failed for check in plan.checks)
    write_lock(tmp_path / "m.lock", bundle)
    given = tmp_path / "m.onnx", tmp_path / "again.plan", tmp_path / "m.lock"
    pipeline.rebuild(*given, cache=tmp_path / "c", check="off")
    assert (tmp_path / "again.plan").read_bytes() == (tmp_path / "m.plan").read_bytes()
    with TuningStore(CacheFolder(tmp_path / "c").store) as store:
        requests = [run.request for run in store.runs() if run.request is not None]
    assert {request.build.changed_sites for request in requests} == {(), (key,)}


def test_a_form_with_keys_of_another_model_is_refused_naming_them(
    gpu: Gpu, optimize: Callable[..., PlanBundle]
) -> None:
    key = _moved(optimize()).site
    stale = "fuse-operators:0123456789abcdef"
    with pytest.raises(GraphError, match=f"called {stale}: 1 of the form's 2 keys") as error:
        optimize(changed_sites=[key, stale])
    assert error.value.fix.startswith("take keys from a report of this model")
    with pytest.raises(GraphError, match="called join-siblings:"):
        optimize(changed_sites=["join-siblings:*"])  # a pass that has no choice here
    with pytest.raises(GraphError, match="no pass is called 'magic'"):
        optimize(changed_sites=["magic:0123456789abcdef"])


def test_a_given_form_and_a_search_for_one_contradict_each_other(
    gpu: Gpu, optimize: Callable[..., PlanBundle]
) -> None:
    key = _moved(optimize()).site
    with pytest.raises(EngineError, match="--change-site gives one"):
        optimize(changed_sites=[key], forms="search")
