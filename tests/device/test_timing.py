"""Sampling, bands and turns, with a clock whose times are known."""

from __future__ import annotations

import numpy as np
import pytest

from wpk.device import Patience, Subject, noise_band, quantile, time_side_by_side
from wpk.device.timing import repetitions_for
from wpk.trial import Regime


class DummyReplay:
    def __init__(self, name: str, seconds: float) -> None:
        self.name, self.seconds = name, seconds

    def replay(self) -> None:
        raise AssertionError("only the clock replays")


class DummyClock:
    """Takes what a replay says, with noise; every call is remembered."""

    def __init__(self, noise: float) -> None:
        self.calls: list[str] = []
        self._noise, self._rng = noise, np.random.default_rng(5)

    def seconds(self, replay: DummyReplay) -> float:  # type: ignore[override]
        self.calls.append(replay.name)
        return replay.seconds * (1 + self._noise * self._rng.standard_normal())


def subject(name: str, seconds: float, calls: list[str], repetitions: int = 1) -> Subject:
    return Subject(
        DummyReplay(name, seconds), repetitions, lambda: calls.append("prepare"), Regime.WARM
    )


def test_a_sample_is_the_time_of_one_repetition() -> None:
    clock = DummyClock(0.0)
    (timing,) = time_side_by_side(clock, [subject("a", 5e-4, [], 50)], Patience())
    assert timing.median == pytest.approx(1e-5)
    assert timing.regime is Regime.WARM


def test_a_quiet_clock_is_believed_after_the_least_samples() -> None:
    clock = DummyClock(0.0)
    (timing,) = time_side_by_side(clock, [subject("a", 1e-5, [])], Patience(least=7))
    assert len(timing.seconds) == 7
    assert timing.noise == 0.0


def test_noise_costs_more_samples_up_to_the_limit() -> None:
    few = time_side_by_side(DummyClock(0.004), [subject("a", 1e-5, [])], Patience())[0]
    many = time_side_by_side(DummyClock(0.02), [subject("a", 1e-5, [])], Patience())[0]
    most = time_side_by_side(DummyClock(0.2), [subject("a", 1e-5, [])], Patience(most=30))[0]
    assert len(few.seconds) < len(many.seconds)
    assert len(most.seconds) == 30
    assert most.noise > Patience().noise  # known, and said


def test_time_on_the_gpu_is_limited() -> None:
    patience = Patience(seconds=0.05)
    (timing,) = time_side_by_side(DummyClock(0.2), [subject("a", 0.01, [])], patience)
    assert len(timing.seconds) == patience.least


def test_subjects_take_turns_and_every_sample_is_prepared() -> None:
    clock, prepared = DummyClock(0.0), list[str]()
    both = [subject("a", 1e-5, prepared), subject("b", 2e-5, prepared)]
    first, second = time_side_by_side(clock, both, Patience(least=4))
    assert clock.calls == ["a", "b"] + ["a", "b", "b", "a"] * 2
    assert len(prepared) == len(clock.calls)
    assert second.median == pytest.approx(2 * first.median)


def test_the_noise_band_holds_the_median_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(1000):
        low, high = noise_band(rng.exponential(1.0, 25).tolist())
        hits += low <= np.log(2) <= high
    assert 930 <= hits <= 990  # 95 %, and a little more because ranks are whole numbers


def test_quantiles_are_samples() -> None:
    samples = [float(n) for n in range(100, 0, -1)]
    assert quantile(samples, 0.99) == 99.0
    assert quantile(samples, 1.0) == 100.0
    assert quantile([3.0], 0.99) == 3.0


@pytest.mark.parametrize(
    ("seconds", "expected"), [(1e-5, 20), (3e-6, 67), (0.0, 512), (1e-9, 512), (1.0, 20)]
)
def test_short_work_is_repeated_until_a_sample_is_long(seconds: float, expected: int) -> None:
    assert repetitions_for(seconds, 2e-4, 20, 512) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"), [(3e-6, 67), (5e-4, 20), (1e-3, 10), (1.6e-2, 1), (1.0, 1), (0.0, 512)]
)
def test_slow_work_is_repeated_less(seconds: float, expected: int) -> None:
    assert repetitions_for(seconds, 2e-4, 20, 512, enough=1e-2) == expected
