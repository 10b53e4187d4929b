"""Whether to measure: what is asked for, and what is here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support.devices.gpus import H200

from wpk.device import GpuFacts
from wpk.errors import EngineError, TargetError, WpkError
from wpk.options import SearchOptions
from wpk.search.loop import measuring
from wpk.search.loop.budget import EFFORTS, Budget
from wpk.search.loop.measuring import plan_tuning, target_here
from wpk.targets.registry import find_target

STORE = Path("trials.sqlite")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Callable[[GpuFacts | None], None]:
    """Gives this machine a GPU, or takes it away."""

    def put(gpu: GpuFacts | None) -> None:
        def read() -> GpuFacts:
            if gpu is None:
                raise EngineError("there is none", fix="buy one")
            return gpu

        monkeypatch.setattr(measuring, "read_gpu", read)

    return put


def test_auto_measures_where_the_target_is_here(here: Callable[..., None]) -> None:
    here(H200)
    tuning = plan_tuning(
        find_target("h200"), SearchOptions("auto", effort=2, budget="30m", seed=7), STORE
    )
    assert tuning is not None
    assert (tuning.searcher, tuning.effort, tuning.seed) == ("auto", EFFORTS[2], 7)
    assert tuning.budget == Budget(seconds=1800.0)


def test_a_budget_replaces_the_time_of_the_effort(here: Callable[..., None]) -> None:
    here(H200)
    for budget, expected in ((None, Budget(seconds=300.0)), ("5 trials", Budget(trials=5))):
        tuning = plan_tuning(
            find_target("h200"), SearchOptions("auto", effort=1, budget=budget), STORE
        )
        assert tuning is not None
        assert tuning.budget == expected


@pytest.mark.parametrize("target", ["h100", "a100"])
def test_auto_does_not_measure_for_another_gpu(here: Callable[..., None], target: str) -> None:
    here(H200)
    assert (
        plan_tuning(
            find_target(target), SearchOptions("auto", effort=1, budget=None, seed=0), STORE
        )
        is None
    )


def test_a_searcher_by_name_needs_the_gpu(here: Callable[..., None]) -> None:
    here(H200)
    with pytest.raises(EngineError, match=r"is NVIDIA H200 .* and the plan is for a100"):
        plan_tuning(
            find_target("a100"), SearchOptions("genetic", effort=1, budget=None, seed=0), STORE
        )
    here(None)
    with pytest.raises(EngineError, match="there is none"):
        plan_tuning(
            find_target("h200"), SearchOptions("genetic", effort=1, budget=None, seed=0), STORE
        )
    assert (
        plan_tuning(
            find_target("h200"), SearchOptions("auto", effort=1, budget=None, seed=0), STORE
        )
        is None
    )


@pytest.mark.parametrize(
    ("search", "effort", "budget", "what"),
    [
        ("gentic", 1, None, "search is 'gentic'"),
        ("auto", 4, None, "effort is 4"),
        ("auto", 1, "soon", "'soon' is no budget"),
    ],
)
def test_refuses_what_it_cannot_understand(
    here: Callable[..., None], search: str, effort: int, budget: str | None, what: str
) -> None:
    here(H200)
    with pytest.raises(WpkError, match=what):
        plan_tuning(find_target("h200"), SearchOptions(search, effort=effort, budget=budget), STORE)


def test_the_target_here_is_the_one_of_that_name(here: Callable[..., None]) -> None:
    here(H200)
    assert target_here() == find_target("h200")
    here(replace(H200, name="NVIDIA H100 80GB HBM3 (sm_90)"))
    assert target_here() == find_target("h100")
    here(None)
    with pytest.raises(TargetError, match="the GPU of this machine, and there is none"):
        target_here()


def test_a_gpu_that_is_not_what_the_table_says_is_named(
    here: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    target = find_target("h200")
    for facts, said in [(H200, []), (replace(H200, l2_bytes=30 << 20), ["31457280 bytes of L2"])]:
        caplog.clear()
        here(facts)
        plan_tuning(target, SearchOptions("auto", effort=1, budget=None, seed=0), STORE)
        assert len(caplog.messages) == len(said)
        assert all(words in caplog.text for words in said)
