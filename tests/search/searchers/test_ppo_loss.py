"""Equations 3 to 7 by hand and by finite differences."""

from math import inf

import numpy as np
import pytest

from wpk.search.searchers.ppo_loss import (
    Batch,
    Coefficients,
    advantages,
    clamped,
    log_probabilities,
    loss,
    moving_average,
    reward,
)


def test_the_moving_average_of_a_constant_stays() -> None:
    average = moving_average(0.0, 2.0, 1)
    for step in range(2, 10):
        average = moving_average(average, 2.0, step)
    assert average == pytest.approx(2.0)
    assert moving_average(2.0, 1.0, 11) == pytest.approx(1.8)


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.25, 0.75), (1.0, 0.0), (1.5, -0.5), (7.0, -1.0), (inf, -1.0)]
)
def test_reward_is_equation_4(seconds: float, expected: float) -> None:
    assert reward(seconds, average=1.0) == expected
    assert clamped(seconds, average=1.0) == 1.0 - expected


def test_advantages_are_the_sum_of_equation_5() -> None:
    generator = np.random.default_rng(0)
    rewards, values, following = generator.standard_normal((3, 6))
    ends = np.asarray([False, False, True, False, False, True])
    discount, decay = 0.9, 0.7
    deltas = rewards + discount * following - values  # equation 6
    expected = []
    for t in range(6):
        last = 2 if t < 3 else 5
        expected.append(sum((discount * decay) ** (i - t) * deltas[i] for i in range(t, last + 1)))
    found = advantages(rewards, values, following, ends, discount, decay)
    assert found == pytest.approx(np.asarray(expected))


def test_forbidden_actions_have_no_probability() -> None:
    allowed = np.asarray([[True, False, True], [False, True, False]])
    logs = log_probabilities(np.asarray([[1.0, 50.0, 2.0], [0.0, -700.0, 3.0]]), allowed)
    assert np.exp(logs).sum(axis=1) == pytest.approx(1)
    assert (np.exp(logs)[~allowed] == 0).all()
    assert logs[0, 2] - logs[0, 0] == pytest.approx(1.0)


def _batch(count: int = 12, actions: int = 5) -> tuple[np.ndarray, Batch]:
    generator = np.random.default_rng(3)
    outputs = generator.standard_normal((count, actions + 1))
    allowed = generator.random((count, actions)) < 0.7
    chosen = generator.integers(actions, size=count)
    allowed[np.arange(count), chosen] = True
    logs = log_probabilities(outputs[:, :-1], allowed)[np.arange(count), chosen]
    batch = Batch(
        allowed=allowed,
        actions=chosen,
        # Older probabilities, some of them so far away that the surrogate is clipped.
        log_probabilities=logs + generator.choice([-0.5, -0.05, 0.05, 0.5], count),
        advantages=generator.standard_normal(count),
        returns=generator.standard_normal(count),
    )
    return outputs, batch


def test_the_loss_is_the_negative_of_equation_7() -> None:
    outputs, batch = _batch()
    coefficients = Coefficients(clip=0.2, value=0.15, entropy=0.3)
    terms = []
    for i in range(len(outputs)):
        weights = [np.exp(o) * a for o, a in zip(outputs[i, :-1], batch.allowed[i], strict=True)]
        chances = [weight / sum(weights) for weight in weights]
        ratio = chances[batch.actions[i]] / np.exp(batch.log_probabilities[i])
        clipped = min(max(ratio, 0.8), 1.2)
        surrogate = min(ratio * batch.advantages[i], clipped * batch.advantages[i])
        error = (outputs[i, -1] - batch.returns[i]) ** 2
        entropy = -sum(chance * np.log(chance) for chance in chances if chance)
        terms.append(surrogate - 0.15 * error + 0.3 * entropy)
    assert loss(outputs, batch, coefficients)[0] == pytest.approx(-np.mean(terms))


@pytest.mark.parametrize(
    "coefficients",
    [Coefficients(0.2, 0.0, 0.0), Coefficients(0.2, 1.0, 0.0), Coefficients(0.2, 0.15, 20.0)],
    ids=["surrogate", "value", "paper's"],
)
def test_the_gradient_is_that_of_finite_differences(coefficients: Coefficients) -> None:
    outputs, batch = _batch()
    _, gradient = loss(outputs, batch, coefficients)
    step = 1e-6
    numeric = np.zeros_like(outputs)
    for place in np.ndindex(*outputs.shape):
        shift = np.zeros_like(outputs)
        shift[place] = step
        above = loss(outputs + shift, batch, coefficients)[0]
        below = loss(outputs - shift, batch, coefficients)[0]
        numeric[place] = (above - below) / (2 * step)
    assert gradient == pytest.approx(numeric, rel=1e-5, abs=1e-8)
    assert np.abs(gradient).max() > 1e-3


def test_clipped_samples_do_not_move_the_policy() -> None:
    outputs, batch = _batch()
    rows = np.arange(len(outputs))
    logs = log_probabilities(outputs[:, :-1], batch.allowed)[rows, batch.actions]
    ratio = np.exp(logs - batch.log_probabilities)
    spent = ((ratio > 1.2) & (batch.advantages > 0)) | ((ratio < 0.8) & (batch.advantages < 0))
    assert 0 < spent.sum() < len(spent)
    _, gradient = loss(outputs, batch, Coefficients(0.2, 0.0, 0.0))
    moved = np.abs(gradient[:, :-1]).max(axis=1) > 0
    several = batch.allowed.sum(axis=1) > 1  # where one action is allowed nothing can move
    assert (moved == (~spent & several)).all()
