"""What was measured of other problems, and what searchers make of it."""

from dataclasses import replace

import numpy as np
import pytest

from wpk.search.searchers.experience import PLACES, Experience, Lesson, encoded
from wpk.search.searchers.genetic import GeneticOptions, GeneticSearch
from wpk.search.searchers.ppo import PpoOptions, PpoSearch
from wpk.search.searchers.ppo_network import Layers
from wpk.search.searchers.ppo_policy import PREFERENCE, Pretraining, SuccessorPolicy, pretrained
from wpk.search.searchers.random_search import RandomSearch
from wpk.search.searchers.replay import Recording, best_so_far, replay
from wpk.search.searchers.space import SearchSpace


def _columns(recording: Recording) -> dict[str, np.ndarray]:
    return dict(zip(recording.space.names, recording.space.genomes.T, strict=True))


def _lesson(recording: Recording, rows: float, count: int = 64, seed: int = 0) -> Lesson:
    """Some trials of a problem of so many rows, whose costs are those of a recording."""
    drawn = np.random.default_rng(seed).choice(len(recording.trials), count, replace=False)
    costs = np.asarray([trial.cost for trial in recording.trials])[drawn]
    columns = {name: values[drawn] for name, values in _columns(recording).items()}
    return Lesson({"rows": rows, "columns": 1000.0}, columns, costs, np.full(count, 1e-5))


@pytest.fixture
def taught(bowl: Recording) -> SearchSpace:
    """A bowl, when two like it were searched before."""
    experience = Experience((_lesson(bowl, 32.0), _lesson(bowl, 128.0, seed=1)))
    kind = type(bowl.space.schedule(0))
    return SearchSpace(kind, _columns(bowl), bowl.features, experience=experience)


def test_similar_problems_come_first(bowl: Recording) -> None:
    far, near, same = (_lesson(bowl, rows, 4) for rows in (4096.0, 128.0, 64.0))
    found = Experience((far, near, same)).nearest({"rows": 64.0, "columns": 1000.0})
    assert found == [same, near, far]


def test_the_best_of_a_lesson_ran() -> None:
    columns = {"m": np.asarray([1, 2, 4]), "n": np.asarray([8, 8, 16])}
    lesson = Lesson({"k": 1.0}, columns, np.asarray([3e-6, np.inf, 1e-6]), np.ones(3))
    assert lesson.best(5) == [{"m": 4, "n": 16}, {"m": 1, "n": 8}]


def test_schedules_are_encoded_by_problem_parameters_and_estimate() -> None:
    columns = {"m": np.asarray([1, 15, 255])}
    given = encoded({"k": 255.0}, columns, np.asarray([2e-6, 1e-6, 1.0]))
    assert given.shape == (3, 1 + PLACES + 1)
    assert given[:, 0] == pytest.approx(1.0)
    assert given[:, 1:-1].argmax(axis=1).tolist() == [1, 4, 8]  # log2 of 2, 16 and 256
    assert given[:, -1] == pytest.approx([0.5, 0.0, 2.0])


def test_a_network_learns_which_schedules_are_fast(bowl: Recording, taught: SearchSpace) -> None:
    assert taught.experience is not None
    layers = Layers(taught.encoded.shape[1] + 1, PpoOptions().hidden, 2)
    costs = np.asarray([trial.cost for trial in bowl.trials])

    def correlation(how: Pretraining) -> float:
        policy = SuccessorPolicy(taught, layers.hidden, 1e-3, how, np.random.default_rng(0))
        preferred = policy.preferences(np.arange(taught.size))
        return float(np.corrcoef(preferred, -np.log(costs))[0, 1])

    assert correlation(Pretraining()) > 0.8
    assert abs(correlation(Pretraining(steps=0))) < 0.5
    again = pretrained(taught.experience, layers, Pretraining())
    assert again is pretrained(taught.experience, layers, Pretraining())  # taught once


def test_lessons_of_failures_alone_teach_nothing(bowl: Recording) -> None:
    failed = replace(_lesson(bowl, 32.0, 8), costs=np.full(8, np.inf))
    layers, how = Layers(9, ((4, "tanh"),), 2), Pretraining()
    untaught = pretrained(Experience(()), layers, how)
    assert pretrained(Experience((failed,)), layers, how).tolist() == untaught.tolist()


def test_a_policy_learns_from_the_trials_of_its_own_problem(bowl: Recording) -> None:
    policy = PpoSearch(bowl.space, 1).policy
    rows = np.arange(0, bowl.space.size, 37)
    costs = np.asarray([trial.cost for trial in bowl.trials])[rows]
    for _ in range(20):
        policy.imitate(rows, costs)
    preferred = policy.preferences(rows)
    assert np.corrcoef(preferred, -np.log(costs))[0, 1] > 0.9


def test_the_first_generation_is_like_the_fastest_of_similar_problems(taught: SearchSpace) -> None:
    searcher = GeneticSearch(taught, 1, GeneticOptions(population=8, founders=4, similar=1))
    assert taught.experience is not None
    (nearest, *_) = taught.experience.nearest(taught.features)
    asked = [dict(schedule.parameters()) for schedule in searcher.ask(8)]
    assert asked[:4] == nearest.best(4)
    assert asked[4:] != nearest.best(8)[4:]


def test_a_founder_that_is_no_schedule_here_stands_for_the_one_most_like_it(
    bowl: Recording,
) -> None:
    columns = {"axis_0": 3, "axis_1": 7, "axis_2": 200, "axis_3": 0}
    row = bowl.space.like(columns, np.arange(bowl.space.size))
    assert dict(bowl.space.schedule(row).parameters()) == columns | {"axis_2": 5}


@pytest.mark.parametrize("make", [GeneticSearch, PpoSearch])
def test_who_was_taught_is_better_than_chance_at_once(
    make: type[GeneticSearch] | type[PpoSearch],
    bowl: Recording,
    taught: SearchSpace,
) -> None:
    found = {
        who: np.mean(
            [np.log(best_so_far(replay(each(space, seed), bowl, 24))[-1]) for seed in range(4)]
        )
        for who, each, space in (
            ("taught", make, taught),
            ("untaught", make, bowl.space),
            ("random", RandomSearch, bowl.space),
        )
    }
    assert found["taught"] < found["untaught"] - 0.05
    assert found["taught"] < found["random"] - 0.1
    assert PREFERENCE == 0
