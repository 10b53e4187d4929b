"""Reinforcement learning with the settings that Woodpecker-DL 2.4 states, to compare with."""

import numpy as np
from numpy.typing import NDArray

from wpk.search.searchers.ppo import PpoOptions, PpoSearch
from wpk.search.searchers.ppo_loss import reward
from wpk.search.searchers.ppo_network import Adam, Array, Layers, Network, Pass
from wpk.search.searchers.ppo_policy import Evaluation, Policy
from wpk.search.searchers.space import ABSENT, Rows, SearchSpace

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


class MovesPolicy:
    """The paper's network: it observes a state, and answers with a logit for each move and a value."""

    def __init__(
        self, space: SearchSpace, options: PpoOptions, generator: np.random.Generator
    ) -> None:
        """Begin with a policy that is nearly uniform."""
        self._space, self._generator = space, generator
        self._problem = np.asarray(list(space.features.values()), np.float64)
        inputs = len(self._problem) + len(space.shape) + 1
        self.network = Network(Layers(inputs, options.hidden, space.moves + 1), generator)
        self._adam = Adam(len(self.network.parameters), options.learning_rate)

    def observe(self, row: int, average: float) -> NDArray[np.float32]:
        """The problem, the schedule's parameters and the average run time, as they are."""
        parameters = [value for _, value in self._space.schedule(row).parameters()]
        return np.concatenate([self._problem, parameters, [average]]).astype(np.float32)

    def evaluate(self, states: Rows, changes: Array) -> Evaluation:
        """See `Policy.evaluate`; a change is the average itself."""
        return self._said(states, self.network.forward(self._seen(states, changes)))

    def rehearse(self, states: Rows, changes: Array) -> Evaluation:
        """See `Policy.rehearse`: activations are dropped."""
        done = self.network.forward(self._seen(states, changes))
        return self._said(states, dropped(self.network, done, KEEP, self._generator))

    def learn(self, said: Evaluation, gradient: Array) -> None:
        """See `Policy.learn`."""
        self._adam.step(self.network.parameters, self.network.backward(said.done, gradient))

    def imitate(self, rows: Rows, costs: Array) -> None:
        """See `Policy.imitate`: the paper's learns from its own moves only."""

    def preferences(self, rows: Rows) -> Array:
        """See `Policy.preferences`: this one knows moves only."""
        return np.zeros(len(rows), np.float32)

    def _seen(self, states: Rows, averages: Array) -> Array:
        seen = zip(states.tolist(), averages.tolist(), strict=True)
        return np.stack([self.observe(row, average) for row, average in seen])

    def _said(self, states: Rows, done: Pass) -> Evaluation:
        return Evaluation(done.outputs, self._space.after_moves(states) != ABSENT, done)


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

    def make_policy(self, generator: np.random.Generator) -> Policy:
        """The paper's."""
        return MovesPolicy(self.space, self.options, generator)

    @property
    def change(self) -> float:
        """The average run time itself."""
        return self._average

    def next_average(self, seconds: float, outcomes: int) -> float:
        """Equation 3 as printed."""
        return paper_average(self._average, seconds, outcomes)

    def reward(self, seconds: float) -> float:
        """Equation 4, in seconds."""
        return reward(seconds, self._average)

    def ends_episode(self, seconds: float, before: float) -> bool:
        """An episode goes on until its horizon."""
        return False


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
