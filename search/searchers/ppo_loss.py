"""Equations 3 to 7 of Woodpecker-DL are pure functions here, each gradient beside its loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def moving_average(previous: float, seconds: float, step: int) -> float:
    """Return an exponential average with equation 3's factor: ``0.8 * previous + 0.2 * seconds``.

    The first step's average is its own run time.
    """
    return seconds if step == 1 else 0.8 * previous + 0.2 * seconds


def clamped(seconds: float, average: float) -> float:
    """Return ``min(seconds, 2 * average)``: what equation 4 takes for a run time, failures included."""
    return min(seconds, 2 * average)


def reward(seconds: float, average: float) -> float:
    """Return equation 4's reward: ``average - min(seconds, 2 * average)``, in seconds."""
    return average - clamped(seconds, average)


def advantages(
    rewards: Array,
    values: Array,
    following: Array,
    ends: NDArray[np.bool_],
    discount: float,
    decay: float,
) -> Array:
    """Return equation 5's advantages: generalised advantage estimates of trajectories laid end to end.

    By equation 6 ``delta_t = r_t + gamma * V(s_{t+1}) - V(s_t)``. The advantage ``A_t`` is
    ``delta_t + gamma * mu * A_{t+1}``, and just ``delta_t`` where a trajectory ends. (The exponent printed for the last term of equation 5,
    T - t + 1, is a slip for T - t - 1: see Schulman et al. 2016, "High-dimensional continuous
    control using generalized advantage estimation", equation 16.)

    Args:
        rewards: r_t.
        values: V(s_t).
        following: V(s_{t+1}), also where a trajectory was cut off.
        ends: Where a step is the last of its trajectory.
        discount: gamma.
        decay: mu.
    """
    deltas = rewards + discount * following - values
    result = np.empty_like(deltas)
    ahead = 0.0
    for t in reversed(range(len(deltas))):
        ahead = deltas[t] + (0.0 if ends[t] else discount * decay * ahead)
        result[t] = ahead
    return result


def log_probabilities(logits: Array, allowed: NDArray[np.bool_]) -> Array:
    """Return the logarithms of the multinomial distribution over the allowed actions; -inf for the others.

    Every row must allow at least one action.
    """
    masked = np.where(allowed, logits, -np.inf)
    shifted = masked - masked.max(axis=1, keepdims=True)
    result: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return result


@dataclass(frozen=True)
class Batch:
    """A batch holds transitions to learn from, one a row.

    Attributes:
        allowed: (batch, actions): the actions that could have been taken.
        actions: The actions that were taken.
        log_probabilities: Of these actions, by the policy that took them.
        advantages: A_t.
        returns: V_t^target.
    """

    allowed: NDArray[np.bool_]
    actions: NDArray[np.int64]
    log_probabilities: Array
    advantages: Array
    returns: Array


@dataclass(frozen=True)
class Coefficients:
    """These are the coefficients of equation 7 and of the clipped surrogate in it.

    Attributes:
        clip: How far the ratio of probabilities counts (epsilon of PPO).
        value: c_1, of the squared error of the value function.
        entropy: c_2, of the entropy bonus.
    """

    clip: float
    value: float
    entropy: float


def loss(outputs: Array, batch: Batch, coefficients: Coefficients) -> tuple[float, Array]:
    """Return the negative of equation 7, to be minimised, and its gradient by the network's outputs.

    ``L = mean(min(ratio * A, clip(ratio) * A) - c_1 * (V - V^target)^2 + c_2 * entropy)``

    Args:
        outputs: (batch, actions + 1): logits, and the value last.
        batch: What was done.
        coefficients: The weights of the terms.
    """
    count = np.arange(len(outputs))
    logs = log_probabilities(outputs[:, :-1], batch.allowed)
    chances = np.exp(logs)
    ratio = np.exp(logs[count, batch.actions] - batch.log_probabilities)
    clipped = np.clip(ratio, 1 - coefficients.clip, 1 + coefficients.clip)
    plain, bounded = ratio * batch.advantages, clipped * batch.advantages
    surprise = np.where(batch.allowed, logs, 0.0)
    entropy = -(chances * surprise).sum(axis=1)
    error = outputs[:, -1] - batch.returns
    gain = (
        np.minimum(plain, bounded)
        - coefficients.value * np.square(error)
        + coefficients.entropy * entropy
    )
    # d ratio / d logit_j = ratio * ([j is the action] - chance_j), where the surrogate is not clipped.
    weight = np.where(plain <= bounded, plain, 0.0)
    gradient = np.empty_like(outputs)
    by_logit = -weight[:, None] * chances
    by_logit[count, batch.actions] += weight
    # d entropy / d logit_j = -chance_j * (log chance_j + entropy)
    by_logit -= coefficients.entropy * chances * (surprise + entropy[:, None])
    gradient[:, :-1] = -by_logit
    gradient[:, -1] = 2 * coefficients.value * error
    return -float(gain.mean()), gradient / len(outputs)
