"""Proximal policy optimisation over schedule parameters learns as Woodpecker-DL 2.4 describes it.

    observation of problem, schedule and average run time (eq. 3) -> network -> multinomial draw of
    an action that sets one parameter -> run time -> reward (eq. 4) -> advantages (eq. 5, 6)
    -> clipped surrogate + value + entropy (eq. 7)

Several walkers step through the space, so that a batch of schedules can be measured together; all
share one network. Actions that lead to an illegal schedule, or to one already taken, are masked. Unlike the paper's,
the network judges where an action leads, so that it serves every problem of a template, and begins with what was
measured of others (`wpk.search.searchers.ppo_policy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from wpk.search.searchers.ledger import Ledger
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
from wpk.search.searchers.ppo_network import Array
from wpk.search.searchers.ppo_policy import Hidden, Policy, Pretraining, SuccessorPolicy
from wpk.search.searchers.space import ABSENT, Rows, SearchSpace
from wpk.search.searchers.space_searcher import SpaceSearcher


@dataclass(frozen=True)
class PpoOptions:
    """These options say how to learn; the defaults are tuned for some dozens of trials.

    Attributes:
        hidden: Width and activation of each hidden layer.
        clip: How far a ratio of probabilities counts in the surrogate (epsilon).
        value: c_1 of equation 7, of the value function's squared error.
        entropy: c_2 of equation 7, of the entropy bonus.
        discount: gamma of equations 5 and 6.
        decay: mu of equation 5.
        learning_rate: Adam's.
        batch: Transitions of an update.
        epochs: Gradient steps on each batch.
        start: Schedules tried, at random, before the first action.
        taught_start: The same where experience taught the policy, which draws them.
        fastest: An episode starts at one of so many fastest schedules.
        horizon: Actions of an episode at most.
        pretraining: How the policy learns from experience, where the space has any.
    """

    hidden: Hidden = (
        (32, "tanh"),
        (64, "tanh"),
        (64, "selu"),
        (32, "selu"),
    )
    clip: float = 0.5
    value: float = 0.15
    entropy: float = 0.01
    discount: float = 0.5
    decay: float = 0.95
    learning_rate: float = 3e-3
    batch: int = 8
    epochs: int = 8
    start: int = 16
    taught_start: int = 8
    fastest: int = 2
    horizon: int = 8
    pretraining: Pretraining = field(default_factory=Pretraining)


@dataclass
class _Step:
    """A transition; its reward is known when the outcome is."""

    row: int
    change: float
    allowed: NDArray[np.bool_]
    action: int
    log_probability: float
    reward: float = 0.0
    after: int = ABSENT  # the row where the walker stands then
    last: bool = False  # the episode ended with it


@dataclass
class _Walker:
    """A place in the space and how it was reached."""

    row: int | None = None
    waiting: _Step | None = None  # its outcome is outstanding
    steps: list[_Step] = field(default_factory=list)  # since the last update
    left: int = 0  # actions until the episode ends


class PpoSearch(SpaceSearcher):
    """Walkers share a policy, which learns after every batch of outcomes."""

    method = "ppo"

    def __init__(
        self,
        space: SearchSpace,
        seed: int,
        options: PpoOptions | None = None,
        ledger: Ledger | None = None,
    ) -> None:
        """Begin with a policy that is nearly uniform."""
        super().__init__(space, ledger)
        self.options = PpoOptions() if options is None else options
        self._generator = np.random.default_rng(seed)
        self.policy = self.make_policy(self._generator)
        self._walkers: list[_Walker] = []
        self._waiting: dict[int, _Walker] = {}  # by the row that a walker waits for
        self._fresh = 0  # transitions since the last update
        self._average, self._first_average, self._outcomes = 0.0, 0.0, 0

    def make_policy(self, generator: np.random.Generator) -> Policy:
        """Return the policy to begin with."""
        how = self.options
        return SuccessorPolicy(
            self.space, how.hidden, how.learning_rate, how.pretraining, generator
        )

    def propose(self) -> int:
        """Return a random schedule at first, then the one to which a walker's action leads."""
        taught = self.space.experience is not None
        start = self.options.taught_start if taught else self.options.start
        if self.ledger.taken.sum() >= start:
            walker = self._free_walker()
            row = self._act(walker)
            if row is not None:
                self._waiting[row] = walker
                return row
        if not taught:
            return self.ledger.draw(1, self._generator)[0]
        free = self.ledger.free()
        noise = self._generator.gumbel(size=len(free))
        return int(free[int(np.argmax(self.policy.preferences(free) + noise))])

    def learn(self, rows: Sequence[int]) -> None:
        """Reward the walkers' actions, and update the policy when a batch of them is complete."""
        for row in rows:
            self._outcome(row, float(self.ledger.costs[row]))
        if self._fresh >= self.options.batch:
            self._fresh = 0
            self._update()

    @property
    def change(self) -> float:
        """How the average run time has changed, as a power of two; the problem and the schedule stand beside it."""
        return float(np.log2(self._average / self._first_average)) if self._average else 0.0

    def next_average(self, seconds: float, outcomes: int) -> float:
        """Return the average run time, alpha, after so many outcomes, of which the last took ``seconds``."""
        return moving_average(self._average, seconds, outcomes)

    def reward(self, seconds: float) -> float:
        """Return the reward of equation 4 relative to the average, where there is one."""
        return reward(seconds, self._average) / (self._average or 1.0)

    def ends_episode(self, seconds: float, before: float) -> bool:
        """Tell whether an action that led from ``before`` to ``seconds`` is its episode's last: it gained nothing."""
        return not seconds < before

    def _free_walker(self) -> _Walker:
        for walker in self._walkers:
            if walker.waiting is None:
                return walker
        self._walkers.append(_Walker())
        return self._walkers[-1]

    def _act(self, walker: _Walker) -> int | None:
        """Return the row to which an action of the policy leads; None where there is nothing to start from."""
        fastest = self.ledger.best(self.options.fastest)
        starts: list[int] = self._generator.permutation(fastest).astype(int).tolist()
        if walker.row is None or walker.left <= 0:
            walker.row, walker.left = None, self.options.horizon
        for row in [*([] if walker.row is None else [walker.row]), *starts]:
            after = self.space.after_moves(np.asarray([row]))[0]
            allowed = (after != ABSENT) & ~self.ledger.taken[after]
            if allowed.any():
                if walker.steps and walker.steps[-1].after != row:
                    walker.steps[-1].last = True  # there was no way on from where it stood
                walker.row = row
                walker.waiting = self._decide(row, allowed)
                walker.left -= 1
                return int(after[walker.waiting.action])
        return None

    def _decide(self, row: int, allowed: NDArray[np.bool_]) -> _Step:
        change = self.change
        said = self.policy.evaluate(np.asarray([row]), np.asarray([change]))
        logs = log_probabilities(said.outputs[:, :-1], allowed[None])[0]
        # The largest of the logarithms with Gumbel noise is a draw of the multinomial distribution.
        action = int(np.argmax(logs + self._generator.gumbel(size=len(logs))))
        return _Step(row, change, allowed, action, float(logs[action]))

    def _outcome(self, row: int, seconds: float) -> None:
        walker = self._waiting.pop(row, None)
        if walker is not None:
            self._arrive(walker, row, seconds)
        if self._outcomes or isfinite(seconds):  # failures before any run time say nothing
            self._outcomes += 1
            seconds = clamped(seconds, self._average) if self._outcomes > 1 else seconds
            self._average = self.next_average(seconds, self._outcomes)
            self._first_average = self._first_average or self._average

    def _arrive(self, walker: _Walker, row: int, seconds: float) -> None:
        """Complete a walker's step; the walker stays where it was if the schedule failed."""
        step, walker.waiting = walker.waiting, None
        if step is None:
            return
        if self.ends_episode(seconds, self.ledger.costs[step.row]):
            walker.left = 0
        walker.row = row if isfinite(seconds) else step.row
        step.reward, step.after, step.last = self.reward(seconds), walker.row, walker.left <= 0
        walker.steps.append(step)
        self._fresh += 1

    def _update(self) -> None:
        options = self.options
        coefficients = Coefficients(options.clip, options.value, options.entropy)
        walked = [walker for walker in self._walkers if walker.steps]
        for walker in walked:
            walker.steps[-1].last = True  # the next batch knows nothing of this one
        steps = [step for walker in walked for step in walker.steps]
        states = np.asarray([step.row for step in steps])
        changes = np.asarray([step.change for step in steps])
        batch = self._batch(steps, states, changes)
        for _ in range(options.epochs):
            said = self.policy.rehearse(states, changes)
            _, gradient = loss(said.outputs, batch, coefficients)
            self.policy.learn(said, gradient)
        known = np.flatnonzero(~np.isnan(self.ledger.costs))
        self.policy.imitate(known, self.ledger.costs[known])
        for walker in walked:
            walker.steps.clear()

    def _batch(self, steps: Sequence[_Step], states: Rows, changes: Array) -> Batch:
        options = self.options
        arrived = np.asarray([step.after for step in steps])
        now = np.full(len(steps), self.change)
        values = self.policy.evaluate(states, changes).outputs[:, -1]
        gains = advantages(
            rewards=np.asarray([step.reward for step in steps]),
            values=values,
            following=self.policy.evaluate(arrived, now).outputs[:, -1],
            ends=np.asarray([step.last for step in steps]),
            discount=options.discount,
            decay=options.decay,
        )
        return Batch(
            allowed=np.stack([step.allowed for step in steps]),
            actions=np.asarray([step.action for step in steps]),
            log_probabilities=np.asarray([s.log_probability for s in steps], np.float32),
            advantages=((gains - gains.mean()) / (gains.std() + 1e-12)).astype(np.float32),
            returns=(gains + values).astype(np.float32),
        )
