"""A policy over moves that prefers schedules, wherever a move to them begins.

    preference(problem, schedule) = one output of the network     logit of a move = preference of where it leads
    value(problem, schedule)      = the other one

So its network has the same inputs and outputs for every problem of a template, and what it learnt of one
carries over to another: it begins with the schedules that were measured of other problems (`pretrained`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wpk.search.searchers.experience import Experience, encoded
from wpk.search.searchers.ppo_network import ActivationName, Adam, Array, Layers, Network, Pass
from wpk.search.searchers.space import ABSENT, Rows, SearchSpace

Hidden = tuple[tuple[int, ActivationName], ...]

PREFERENCE, VALUE = 0, 1
"""The network's outputs."""


@dataclass(frozen=True)
class Evaluation:
    """An evaluation is what a policy says of some states, and what learning from it takes.

    Attributes:
        outputs: (states, moves + 1): a logit for each move, and the value last; logits of illegal moves are 0.
        legal: (states, moves): which moves are.
        done: The network's pass over where they lead, then over the states.
    """

    outputs: Array
    legal: NDArray[np.bool_]
    done: Pass


class Policy(Protocol):
    """What a learner of moves needs of a policy."""

    def evaluate(self, states: Rows, changes: Array) -> Evaluation:
        """Evaluate states: rows, and how the average run time had changed when they were seen."""

    def rehearse(self, states: Rows, changes: Array) -> Evaluation:
        """Evaluate states to learn from them: with whatever noise an update takes."""

    def learn(self, said: Evaluation, gradient: Array) -> None:
        """Move against the gradient of a loss by an evaluation's outputs."""

    def imitate(self, rows: Rows, costs: Array) -> None:
        """Learn from trials as such: which of them were fast, however they were come by."""

    def preferences(self, rows: Rows) -> Array:
        """Return how much each row is preferred, before anything changed."""


@dataclass(frozen=True)
class Pretraining:
    """How a network learns which schedules are fast: from experience, and from the trials of its own problem.

    Attributes:
        sharpness: A schedule twice as slow as another is to be so many times less likely, as a power of two.
        steps: Gradient steps, before the first trial.
        own_steps: Gradient steps on the problem's own trials, with each update.
        lists: Lists of schedules a step, each of one problem.
        length: Schedules of a list.
        learning_rate: Adam's.
    """

    sharpness: float = 8.0
    steps: int = 400
    own_steps: int = 8
    lists: int = 8
    length: int = 16
    learning_rate: float = 3e-3


class SuccessorPolicy:
    """This policy prefers schedules: a move is as likely as the schedule that it leads to is preferred."""

    def __init__(
        self,
        space: SearchSpace,
        hidden: Hidden,
        learning_rate: float,
        pretraining: Pretraining,
        generator: np.random.Generator,
    ) -> None:
        """Begin nearly uniform, or with what experience taught."""
        self._space, self._how, self._generator = space, pretraining, generator
        layers = Layers(space.encoded.shape[1] + 1, hidden, 2)
        self.network = Network(layers, generator)
        if space.experience is not None and space.experience.lessons:
            self.network.parameters[:] = pretrained(space.experience, layers, pretraining)
        self._adam = Adam(len(self.network.parameters), learning_rate)

    def evaluate(self, states: Rows, changes: Array) -> Evaluation:
        """See `Policy.evaluate`."""
        after = self._space.after_moves(states)
        legal = after != ABSENT
        places, _ = np.nonzero(legal)
        seen = np.concatenate([changes[places], changes]).astype(np.float32)[:, None]
        rows = np.concatenate([after[legal], states])
        done = self.network.forward(np.concatenate([self._space.encoded[rows], seen], axis=1))
        outputs = np.zeros((len(states), after.shape[1] + 1), np.float32)
        outputs[:, :-1][legal] = done.outputs[: len(places), PREFERENCE]
        outputs[:, -1] = done.outputs[len(places) :, VALUE]
        return Evaluation(outputs, legal, done)

    def rehearse(self, states: Rows, changes: Array) -> Evaluation:
        """See `Policy.rehearse`: without any noise."""
        return self.evaluate(states, changes)

    def learn(self, said: Evaluation, gradient: Array) -> None:
        """See `Policy.learn`."""
        by_network = np.zeros_like(said.done.outputs)
        moves = int(said.legal.sum())
        by_network[:moves, PREFERENCE] = gradient[:, :-1][said.legal]
        by_network[moves:, VALUE] = gradient[:, -1]
        self._adam.step(self.network.parameters, self.network.backward(said.done, by_network))

    def imitate(self, rows: Rows, costs: Array) -> None:
        """See `Policy.imitate`."""
        if np.isfinite(costs).any():
            unit = (self._space.encoded[rows], wanted(costs, self._how.sharpness))
            steps = self._how.own_steps
            learn_order(self.network, self._adam, [unit], steps, self._how, self._generator)

    def preferences(self, rows: Rows) -> Array:
        """See `Policy.preferences`."""
        inputs = self._space.encoded[rows]
        unchanged = np.zeros((len(rows), 1), np.float32)
        preferred: Array = self.network.forward(np.concatenate([inputs, unchanged], axis=1)).outputs
        return preferred[:, PREFERENCE]


Graded = tuple[Array, Array]
"""Schedules of one problem, encoded, and the logarithm of how likely each is to be, but for a summand."""


@lru_cache(maxsize=64)
def pretrained(experience: Experience, layers: Layers, how: Pretraining) -> Array:
    """Return parameters of a network that prefers what was fast."""
    generator = np.random.default_rng(0)
    network = Network(layers, generator)
    adam = Adam(len(network.parameters), how.learning_rate)
    known = [
        (encoded(each.features, each.columns, each.estimates), wanted(each.costs, how.sharpness))
        for each in experience.lessons
        if np.isfinite(each.costs).any()
    ]
    learn_order(network, adam, known, how.steps if known else 0, how, generator)
    return network.parameters


def wanted(costs: Array, sharpness: float) -> Array:
    """Return what preferences of one problem's schedules are to be, the fastest's being 0.

    A schedule twice as slow is to be ``2 ** sharpness`` times less likely; what failed counts as very slow.
    """
    tiny = np.finfo(float).tiny  # a clock too coarse for a kernel gives zeros
    fastest = costs[np.isfinite(costs)].min() + tiny
    slow = np.minimum((costs + tiny) / fastest, _FAILED)
    result: Array = -sharpness * np.log(slow)
    return result


def learn_order(
    network: Network,
    adam: Adam,
    known: Sequence[Graded],
    steps: int,
    how: Pretraining,
    generator: np.random.Generator,
) -> None:
    """Teach a network to prefer schedules as is wanted.

    The loss is the cross entropy between the softmax of what is wanted and that of the preferences, over lists of
    schedules that are drawn from one problem each.
    """
    for _ in range(steps):
        inputs, grades = _lists(known, how, generator)
        done = network.forward(inputs.reshape(-1, inputs.shape[-1]))
        said = done.outputs[:, PREFERENCE].reshape(grades.shape)
        gradient = np.zeros_like(done.outputs)
        gradient[:, PREFERENCE] = (_softmax(said) - _softmax(grades)).reshape(-1) / len(grades)
        adam.step(network.parameters, network.backward(done, gradient))


_FAILED = 8.0
"""What failed counts as so many times slower than the fastest."""


def _lists(
    known: Sequence[Graded], how: Pretraining, generator: np.random.Generator
) -> tuple[Array, Array]:
    """Draw lists: inputs with an unchanged average run time, and what is wanted of each schedule."""
    inputs, grades = [], []
    for place in generator.integers(0, len(known), how.lists).tolist():
        rows = generator.integers(0, len(known[place][1]), how.length)
        inputs.append(known[place][0][rows])
        grades.append(known[place][1][rows])
    drawn = np.stack(inputs)
    unchanged = np.zeros((*drawn.shape[:2], 1), np.float32)
    return np.concatenate([drawn, unchanged], axis=-1), np.stack(grades)


def _softmax(values: Array) -> Array:
    weights = np.exp(values - values.max(axis=-1, keepdims=True))
    result: Array = weights / weights.sum(axis=-1, keepdims=True)
    return result
