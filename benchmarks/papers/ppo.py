"""Reinforcement learning with the settings that Woodpecker-DL 2.4 states, to compare with."""

import numpy as np
from numpy.typing import NDArray

from wpk.search.searchers.ppo import PpoOptions, PpoSearch
from wpk.search.searchers.ppo_loss import reward
from wpk.search.searchers.ppo_network import Array, Network, Pass
from wpk.search.searchers.space import SearchSpace

PAPER_SETTINGS = PpoOptions(
    hidden=((512, "tanh"), (1024, "tanh"), (1024, "selu"), (512, "selu")),
    clip=0.3,
    value=0.15,
    entropy=20.0,
    discount=0.99,
    decay=1.0,
    learning_rate=5e-5,
    batch=32,
    epochs=30,
    start=8,
    fastest=8,
    horizon=64,
)
"""What Woodpecker-DL 2.4 states, and RLlib's defaults of its time where it refers to them (clip range,
gamma, mu, learning rate, epochs). Batch, start and episodes are in neither.

An entropy bonus of 20 outweighs any advantage of order one, so the policy stays uniform; keeping 15 %
of the activations drowns what remains. The defaults of `PpoOptions` learn within the budget."""

KEEP = 0.15
"""Probability that dropout keeps an activation of the last hidden layer in an update."""


class PaperPpoSearch(PpoSearch):
    """Observes and rewards raw numbers, ends no episode early, and drops activations in updates."""

    def __init__(
        self,
        space: SearchSpace,
        seed: int,
        options: PpoOptions = PAPER_SETTINGS,
    ) -> None:
        """Begin with a policy that is nearly uniform."""
        super().__init__(space, seed, options)

    def observe(self, row: int) -> NDArray[np.float32]:
        """The problem, the schedule's parameters and the average run time, as they are."""
        parameters = [value for _, value in self.space.schedule(row).parameters()]
        return np.concatenate([self._problem, parameters, [self._average]]).astype(np.float32)

    def next_average(self, seconds: float, outcomes: int) -> float:
        """Equation 3 as printed."""
        return paper_average(self._average, seconds, outcomes)

    def reward(self, seconds: float) -> float:
        """Equation 4, in seconds."""
        return reward(seconds, self._average)

    def ends_episode(self, seconds: float, before: float) -> bool:
        """An episode goes on until its horizon."""
        return False

    def forward(self, observations: NDArray[np.float32]) -> Pass:
        """The forward pass of an update, in which activations are dropped."""
        done = self._network.forward(observations)
        return dropped(self._network, done, KEEP, self._generator)


def paper_average(previous: float, seconds: float, step: int) -> float:
    """Equation 3 as printed: ``(0.8 * previous + seconds) / step``, steps counted from 1.

    It falls as 1 / step, so after the first steps every run time is more than twice the average and
    equation 4 answers ``-previous`` to all of them.
    """
    return (0.8 * previous + seconds) / step


def dropped(network: Network, done: Pass, keep: float, generator: np.random.Generator) -> Pass:
    """A pass whose last hidden activations are multiplied by 1 / keep with probability ``keep``, else by 0."""
    last = done.activations[-1]
    factors: Array = ((generator.random(last.shape) < keep) / keep).astype(last.dtype)
    activations = (*done.activations[:-1], last * factors)
    slopes = (*done.slopes[:-1], done.slopes[-1] * factors)
    return Pass(activations, slopes, network.outputs(activations[-1]))
