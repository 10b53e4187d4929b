"""Woodpecker-DL 2.4: observation, actions, learning."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.plans.candidates import kernel

from wpk.search.searchers.experience import PLACES
from wpk.search.searchers.ppo import PpoOptions, PpoSearch
from wpk.search.searchers.ppo_policy import SuccessorPolicy
from wpk.search.searchers.replay import Recording, replay
from wpk.search.searchers.space import SearchSpace
from wpk.trial import Status, Trial


def _tell(searcher: PpoSearch, row: int, seconds: float) -> None:
    schedule = searcher.space.schedule(row).parameters()
    searcher.tell([Trial(kernel("none", schedule), Status.OK, (seconds,))])


def test_observes_17_numbers_of_a_convolution_with_seven_parameters_and_the_estimate() -> None:
    # The paper's schedules: three extents of a block, three tiles and the split of the reduction, here
    # spread over places; its 17th number is the average run time.
    features = dict.fromkeys(
        ("n", "c_in", "c_out", "k_h", "k_w", "h", "w", "stride", "padding"), 3.0
    )
    names = ("t_x", "t_y", "t_z", "tile_x", "tile_y", "tile_z", "tile_rz")
    trial = Trial(kernel("none", tuple((name, 1) for name in names)), Status.OK, (1e-5,))
    recording = Recording("none", "conv", features, "none", names, (trial,))
    policy = PpoSearch(recording.space, 1).policy
    assert isinstance(policy, SuccessorPolicy)
    assert policy.network.layers.inputs == 9 + 7 * PLACES + 1 + 1


def test_observations_are_of_order_one(beds: list[Recording]) -> None:
    for bed in beds:
        searcher = PpoSearch(bed.space, 1)
        replay(searcher, bed, 40)
        assert np.abs(bed.space.encoded).max() < 3
        assert abs(searcher.change) < 3


def test_an_action_changes_one_parameter_of_a_fastest_schedule(bowl: Recording) -> None:
    options = PpoOptions(start=6, fastest=2)
    searcher = PpoSearch(bowl.space, 1, options)
    replay(searcher, bowl, 6)
    fastest = bowl.space.genomes[searcher.ledger.best(2)]
    for schedule in searcher.ask(10):
        row = bowl.space.row(schedule.parameters())
        assert 1 in (fastest != bowl.space.genomes[row]).sum(axis=1)


def test_an_episode_follows_gains_and_ends_with_a_loss(bowl: Recording) -> None:
    searcher = PpoSearch(bowl.space, 1, PpoOptions(start=1, fastest=1, batch=100))
    first = bowl.space.row(searcher.ask(1)[0].parameters())
    assert first is not None
    _tell(searcher, first, 5e-5)
    second = bowl.space.row(searcher.ask(1)[0].parameters())
    assert second is not None
    _tell(searcher, second, 4e-5)
    (walker,) = searcher._walkers
    assert (walker.row, walker.steps[-1].last) == (second, False)
    third = bowl.space.row(searcher.ask(1)[0].parameters())
    assert third in bowl.space.neighbours(second)
    assert third is not None
    _tell(searcher, third, 6e-5)
    assert walker.steps[-1].last
    assert bowl.space.row(searcher.ask(1)[0].parameters()) in bowl.space.neighbours(second)


def test_an_episode_ends_where_there_is_no_way_on(record: Callable[..., Recording]) -> None:
    # Two pairs of neighbours; one of each is known, the other is faster and a dead end.
    pairs = {(0, 0): 3e-5, (1, 0): 1e-5, (2, 1): 3e-5, (3, 1): 1e-5}
    recording = record(
        (4, 2), lambda point: pairs[tuple(point)], lambda point: tuple(point) in pairs
    )
    searcher = PpoSearch(recording.space, 1, PpoOptions(start=2, fastest=4, batch=100))
    searcher.tell([trial for trial in recording.trials if trial.cost == 3e-5])
    (first,) = searcher.ask(1)
    searcher.tell([recording.trial(first)])
    (walker,) = searcher._walkers
    assert not walker.steps[0].last  # it gained
    (second,) = searcher.ask(1)
    assert second != first
    assert walker.steps[0].last


def test_a_failure_is_not_stepped_on_and_costs_the_average(bowl: Recording) -> None:
    searcher = PpoSearch(bowl.space, 1, PpoOptions(start=1, batch=100))
    (start,) = searcher.ask(1)
    searcher.tell([Trial(kernel("none", start.parameters()), Status.OK, (2e-5,))])
    (asked,) = searcher.ask(1)
    searcher.tell([Trial(kernel("none", asked.parameters()), Status.TIMED_OUT)])
    (walker,) = searcher._walkers
    assert walker.row == bowl.space.row(start.parameters())
    assert walker.steps[-1].reward == pytest.approx(-1)  # -alpha, relative to alpha
    assert searcher._average == pytest.approx(0.8 * 2e-5 + 0.2 * 4e-5)


def test_failures_before_any_run_time_do_not_make_an_average(bowl: Recording) -> None:
    searcher = PpoSearch(bowl.space, 1)
    first, second = searcher.ask(2)
    searcher.tell([Trial(kernel("none", first.parameters()), Status.COMPILE_FAILED)])
    searcher.tell([Trial(kernel("none", second.parameters()), Status.OK, (3e-5,))])
    assert searcher._average == 3e-5


def test_walkers_do_not_share_trajectories(bowl: Recording) -> None:
    searcher = PpoSearch(bowl.space, 1, PpoOptions(start=1, batch=4))
    replay(searcher, bowl, 1)
    asked = searcher.ask(4)  # nothing is known of them: four walkers
    assert len(searcher._walkers) == 4
    steps = [walker.waiting for walker in searcher._walkers]
    searcher.tell([bowl.trial(schedule) for schedule in asked])
    assert all(step is not None and step.last for step in steps)


def test_learns_which_action_pays(record: Callable[..., Recording]) -> None:
    # The first parameter decides, the others are noise: after some batches the policy sets it to
    # its best value more often than to any other, from schedules that it has not seen.
    recording = record((4, 12, 12), lambda point: 1e-5 * (1 + abs(float(point[0]) - 2)))
    options = replace(PpoOptions(), fastest=300, horizon=1, start=300, batch=16, entropy=0.0)
    searcher = PpoSearch(recording.space, 1, options)
    before = _chances(searcher, recording.space)
    replay(searcher, recording, 300 + 160, batch=16)
    after = _chances(searcher, recording.space)
    assert after[2] > 1.5 * before[2]
    assert after[2] > max(after[0], after[1], after[3])


def _chances(searcher: PpoSearch, space: SearchSpace) -> np.ndarray:
    """Mean probability of each of the first four actions, all being allowed."""
    rows = np.random.default_rng(0).choice(space.size, 50)
    logits = searcher.policy.evaluate(rows, np.zeros(50)).outputs[:, :-1]
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    chances: np.ndarray = (weights / weights.sum(axis=1, keepdims=True)).mean(axis=0)
    return chances[:4]
