"""Woodpecker-DL 2.4 with the settings that it states."""

from dataclasses import replace

import numpy as np
import pytest
from papers.ppo import KEEP, PAPER_SETTINGS, MovesPolicy, PaperPpoSearch, dropped, paper_average
from support.plans.candidates import kernel

from wpk.search.searchers.ppo_loss import reward
from wpk.search.searchers.ppo_network import Layers, Network
from wpk.search.searchers.replay import Recording, replay
from wpk.trial import Status, Trial


def test_observes_problem_schedule_and_average(bowl: Recording) -> None:
    searcher = PaperPpoSearch(bowl.space, 1)
    schedule = searcher.space.schedule(700).parameters()
    searcher.tell([Trial(kernel("none", schedule), Status.OK, (3e-5,))])
    expected = [64, 1000, *bowl.space.genomes[123], 3e-5]
    policy = searcher.policy
    assert isinstance(policy, MovesPolicy)
    assert policy.observe(123, searcher.change) == pytest.approx(np.asarray(expected, np.float32))


def test_the_average_is_equation_3_as_printed() -> None:
    assert paper_average(0.0, 6.0, 1) == 6.0
    assert paper_average(6.0, 3.0, 2) == pytest.approx((6 * 0.8 + 3) / 2)


def test_the_average_of_a_constant_falls_to_nothing() -> None:
    average = 0.0
    for step in range(1, 51):
        average = paper_average(average, 1.0, step)
    assert average < 0.03
    assert reward(1.0, average) == -average  # so equation 4 says the same of every run time


def test_dropout_keeps_the_share_and_the_mean() -> None:
    network = Network(Layers(1, ((1000, "tanh"),), 1), np.random.default_rng(0))
    done = network.forward(np.ones((100, 1), np.float32))
    factors = dropped(network, done, KEEP, np.random.default_rng(0)).slopes[-1] / done.slopes[-1]
    kept = factors > 0
    assert factors[kept] == pytest.approx(1 / KEEP, rel=1e-6)
    assert factors.mean() == pytest.approx(1, abs=0.04)  # five standard errors


def test_the_network_is_the_papers() -> None:
    assert PAPER_SETTINGS.hidden == ((512, "tanh"), (1024, "tanh"), (1024, "selu"), (512, "selu"))
    assert (PAPER_SETTINGS.value, PAPER_SETTINGS.entropy, KEEP) == (0.15, 20.0, 0.15)


def test_the_settings_run(beds: list[Recording]) -> None:
    smallest = min(beds, key=lambda bed: bed.space.size)
    searcher = PaperPpoSearch(
        smallest.space, 1, replace(PAPER_SETTINGS, epochs=2)
    )  # 30 take seconds
    assert isinstance(searcher.policy, MovesPolicy)
    learnt = searcher.policy.network.parameters
    before = learnt.copy()
    assert len(replay(searcher, smallest, 48)) == 48
    assert np.isfinite(learnt).all()
    assert (before != learnt).mean() > 0.5
