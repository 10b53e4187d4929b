"""How the searcher study counts."""

import numpy as np
import pytest
from searcher_study import PAIRS, gain, trials_to
from spaces.ablations import COMPARED
from winner_study import needed


def test_a_gain_is_a_ratio_of_geometric_means_with_an_interval_over_spaces() -> None:
    generator = np.random.default_rng(0)
    first = np.exp(generator.normal(0.3, 0.1, (12, 20)))
    same, twice = gain(first, first), gain(first, first / 2)
    assert (same["ratio"], same["interval_95"]) == (1.0, [1.0, 1.0])
    assert twice["ratio"] == pytest.approx(2.0)
    assert (twice["better"], twice["worse"]) == (12, 0)
    # Half of the spaces gain: however many seeds there are, it is not known whether others would.
    half = first / np.where(np.arange(12) < 6, 2.0, 1.0)[:, None]
    low, high = gain(first, half)["interval_95"]
    assert low < 1.25 < 1.41 < 1.6 < high


def test_trials_until_a_search_is_near_the_best() -> None:
    curves = np.asarray([[[2.0, 1.005, 1.0], [2.0, 1.5, 1.5]], [[1.01, 1.0, 1.0], [1.2, 1.2, 1.0]]])
    assert trials_to(curves) == {"median": 2.5, "share": 0.75}
    assert trials_to(curves[:1, 1:]) == {"median": None, "share": 0.0}


def test_the_pairs_are_of_searchers_that_are_compared() -> None:
    assert {name for pair in PAIRS for name in pair} <= set(COMPARED)


def test_a_share_is_needed_up_to_the_first_good_one() -> None:
    assert needed(np.asarray([3, 1, 0, 2]), np.asarray([True, False, True, False])) == 0.75
