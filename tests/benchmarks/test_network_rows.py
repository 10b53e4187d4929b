"""Whole networks beside PyTorch: what counts as reached, as right, and as already tuned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from export import NETWORKS, weights_of
from rows import networks, tuned
from rows.base import Context, Outcome, RowError
from rows.networks import AUTOTUNED_CASES, OURS, goal_of, judge, rows, tuned_beside
from rows.side_by_side import MOST_STARTS, SAMPLE_SECONDS, time_starts
from rows.torch_baselines import AUTOTUNED, EAGER, MODES, USUAL, in_float64
from rows.tuned import Case, Subject, plans_folder, sources_digest, tuned_plan
from subjects.served_engine import Repeated

from wpk.checks.limits import LIMITS, OutputDistance
from wpk.dtypes import Precision
from wpk.execution import Replay

CASE = Case("resnet50", Precision.FP16, 1)
SMALL = OutputDistance(1e-4, 1e-3)
COMPILED = "torch.compile, frozen"


def around(seconds: float) -> tuple[float, ...]:
    return tuple(seconds * (0.99 + place / 1000) for place in range(21))


@pytest.mark.parametrize(("ours", "reached"), [(45e-6, True), (55e-6, False)])
def test_the_best_baseline_is_what_counts(ours: float, *, reached: bool) -> None:
    samples = {OURS: around(ours), EAGER: around(300e-6), COMPILED: around(100e-6)}
    outcome = judge(Precision.FP16, goal_of(CASE), samples, dict.fromkeys(samples, SMALL))
    assert outcome.passed is reached
    (goal,) = outcome.figures["goals"]
    assert goal["value"] == pytest.approx(100e-6 / ours)
    assert goal["low"] < goal["value"] < goal["high"]
    assert outcome.figures["best_baseline"] == COMPILED
    assert outcome.figures["times"][OURS]["samples"] == 21


@pytest.mark.parametrize(
    ("ours", "theirs", "right"),
    [
        (OutputDistance(1e-3, 1e-2), SMALL, True),
        (OutputDistance(1e-3, 2 * LIMITS[Precision.FP16].worst), SMALL, False),
        (OutputDistance(2 * LIMITS[Precision.FP16].median, 1e-2), SMALL, False),
        (
            OutputDistance(0.019, 0.19),
            OutputDistance(0.01, 0.1),
            True,
        ),  # rounding alone does half of it
        (OutputDistance(0.019, 0.21), OutputDistance(0.01, 0.1), False),
        (OutputDistance(float("inf"), float("inf")), SMALL, False),
    ],
)
def test_a_fast_engine_that_is_wrong_does_not_pass(
    ours: OutputDistance, theirs: OutputDistance, *, right: bool
) -> None:
    samples = {OURS: around(1e-6), EAGER: around(300e-6), COMPILED: around(100e-6)}
    outcome = judge(
        Precision.FP16, goal_of(CASE), samples, {OURS: ours, EAGER: theirs, COMPILED: theirs}
    )
    assert outcome.passed is right
    assert ("WRONG" in outcome.summary) is not right


def test_every_network_is_asked_what_the_goals_say() -> None:
    asked = {
        (network, precision, batch): goal_of(Case(network, precision, batch)).asked
        for network in NETWORKS
        for precision in (Precision.FP16, Precision.FP32)
        for batch in (1, 32)
    }
    assert asked["distilbert", Precision.FP16, 1] == 2.0
    assert asked["resnet18", Precision.FP32, 1] == 3.0
    assert asked["densenet121", Precision.FP32, 1] == 1.5
    assert asked["inception_v3", Precision.FP16, 32] == 1.15
    assert asked["resnet50", Precision.FP32, 32] == 1.5
    assert len(asked) == 24


def test_only_two_networks_are_autotuned_at_length_in_rows_of_their_own() -> None:
    assert USUAL == (EAGER, COMPILED)
    assert (*USUAL, *AUTOTUNED) == tuple(MODES)
    names = [row.name for row in rows() if row.name.startswith("autotuned.")]
    assert names == ["autotuned.resnet50.fp16.b1", "autotuned.distilbert.fp16.b1"]
    assert {f"network.{case}" for case in AUTOTUNED_CASES} <= {row.name for row in rows()}


class Started:
    """Counts its starts; a clock that knows what one start costs."""

    def __init__(self, cost: float) -> None:
        self.cost, self.count = cost, 0

    def replay(self) -> None:
        self.count += 1


class StepClock:
    """Seconds of a replay are those of the starts that it makes."""

    def seconds(self, replay: Replay) -> float:
        started = replay.once if isinstance(replay, Repeated) else replay
        assert isinstance(started, Started)
        before = started.count
        replay.replay()
        return (started.count - before) * started.cost


def test_a_sample_is_many_starts_of_what_is_short() -> None:
    subjects = {"short": Started(20e-6), "middle": Started(1e-3), "long": Started(0.01)}
    timings = time_starts(StepClock(), subjects)
    assert {name: timing.median for name, timing in timings.items()} == pytest.approx(
        {"short": 20e-6, "middle": 1e-3, "long": 0.01}
    )
    samples = len(timings["short"].seconds)
    # A start to look, three to see how long it takes, then rounds with one start before each sample.
    times = min(MOST_STARTS, round(SAMPLE_SECONDS / 20e-6))
    assert subjects["short"].count == 4 + (samples + 1) * (times + 1)
    assert subjects["long"].count == 4 + (samples + 1) * 2


@pytest.fixture(name="context")
def fixture_context(tmp_path: Path) -> Context:
    return Context(tmp_path / "store", tmp_path, time.monotonic() + 60.0)


def test_a_plan_that_another_row_wrote_is_not_tuned_again(context: Context) -> None:
    kept = plans_folder(context) / f"{CASE}.plan"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"a plan")
    assert tuned_plan(CASE, context) == kept
    more = Context(context.store, context.folder, context.deadline, budget="10s")
    assert plans_folder(more) != plans_folder(context)


def test_a_tuning_that_fails_leaves_no_plan(context: Context) -> None:
    networks = context.store / "networks"
    networks.mkdir(parents=True)
    (networks / "resnet50.onnx").write_text("no model")
    weights_of(networks / "resnet50.onnx").write_text("no weights")
    with pytest.raises(RowError, match="optimize"):
        tuned_plan(CASE, context)
    assert not list(plans_folder(context).glob("*.plan"))


def test_a_module_is_loaded_while_its_network_is_tuned(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    loading, order = threading.Event(), []

    def load(_case: Case, _context: Context) -> Subject:
        loading.set()
        return Subject("the module", {})

    def tune(_case: Case, measure: Callable[[Path, Context], Outcome], given: Context) -> Outcome:
        assert loading.wait(10.0)  # before anything is measured
        return measure(Path("a.plan"), given)

    def beside(*given: Any) -> Outcome:
        loaded = given[3]
        return Outcome(True, loaded().module, {})

    monkeypatch.setattr(Case, "model", lambda *_given: order.append("exported"))
    monkeypatch.setattr(Case, "subject", load)
    monkeypatch.setattr(networks, "measure_tuned", tune)
    monkeypatch.setattr(networks, "_measure_beside", beside)
    assert tuned_beside(CASE, USUAL, goal_of(CASE), context).summary == "the module"
    assert order == ["exported"]


def test_other_sources_make_other_plans(
    context: Context, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "template.cuh"
    monkeypatch.setattr(tuned, "_source_files", lambda: iter([source]))
    folders = []
    for text in ("// one", "// two", "// one"):
        source.write_text(text)
        sources_digest.cache_clear()
        folders.append(plans_folder(context))
    sources_digest.cache_clear()
    assert folders[0] == folders[2] != folders[1]


def test_sources_of_all_three_folders_count() -> None:
    names = {path.parts[-2] for path in tuned._source_files()}
    assert {"schedules", "search", "graph_passes", "kernels"} <= names


@pytest.mark.slow
def test_the_right_output_is_the_modules_own() -> None:
    torch = pytest.importorskip("torch")
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    inputs = torch.randn(2, 3, 8, 8)
    (right,) = in_float64(module, [inputs], "cpu")
    with torch.no_grad():
        near = module(inputs).numpy()
    assert right.dtype == np.float64
    assert next(module.parameters()).dtype == torch.float32
    np.testing.assert_allclose(near, right, rtol=1e-5, atol=1e-6)
