"""The network's gradients against finite differences, and its optimiser by hand."""

from collections.abc import Callable

import numpy as np
import pytest
from papers.ppo import dropped

from wpk.search.searchers.ppo_network import Adam, Layers, Network, Pass

LAYERS = Layers(5, ((7, "tanh"), (6, "selu"), (4, "selu")), 3)


def _network(layers: Layers = LAYERS, seed: int = 0) -> Network:
    """In double precision, with biases and an output layer that matter."""
    generator = np.random.default_rng(seed)
    network = Network(layers, generator, np.float64)
    network.parameters += 0.3 * generator.standard_normal(len(network.parameters))
    return network


def _seeded_drop(network: Network, done: Pass) -> Pass:
    return dropped(network, done, 0.5, np.random.default_rng(2))


@pytest.mark.parametrize("drop", [None, _seeded_drop], ids=["whole", "dropout"])
@pytest.mark.parametrize("last", ["tanh", "selu"])
def test_the_gradient_is_that_of_finite_differences(
    last: str, drop: Callable[[Network, Pass], Pass] | None
) -> None:
    layers = Layers(5, ((7, "tanh"), (6, "selu"), (4, last)), 3)  # type: ignore[arg-type]
    network = _network(layers)
    generator = np.random.default_rng(1)
    observations = generator.standard_normal((8, 5))
    direction = generator.standard_normal((8, 3))  # the scalar is sum(direction * outputs)

    def forward() -> Pass:
        done = network.forward(observations)
        return done if drop is None else drop(network, done)

    def scalar() -> float:
        return float((direction * forward().outputs).sum())

    gradient = network.backward(forward(), direction)
    step = 1e-6
    for place in range(len(network.parameters)):
        before = network.parameters[place]
        network.parameters[place] = before + step
        above = scalar()
        network.parameters[place] = before - step
        below = scalar()
        network.parameters[place] = before
        # Error of a central difference: about step^2 plus rounding / step.
        assert gradient[place] == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-8)


def test_the_first_policy_is_nearly_uniform() -> None:
    generator = np.random.default_rng(0)
    network = Network(Layers(17, ((64, "tanh"), (64, "selu")), 20), generator)
    outputs = network.forward(generator.standard_normal((50, 17)).astype(np.float32)).outputs
    assert outputs.dtype == np.float32
    assert 0 < np.abs(outputs).max() < 0.2


def test_selu_keeps_mean_and_variance() -> None:
    # What its constants are for: standard normal in, mean 0 and variance 1 out.
    one = Network(Layers(1, ((1, "selu"),), 1), np.random.default_rng(0), np.float64)
    one.parameters[:] = [1.0, 0.0, 1.0, 0.0]
    values = one.forward(np.random.default_rng(1).standard_normal((200_000, 1))).outputs
    assert values.mean() == pytest.approx(0, abs=0.01)  # 4.5 standard errors
    assert values.var() == pytest.approx(1, abs=0.02)


def test_adam_moves_by_the_learning_rate_at_first_and_finds_a_minimum() -> None:
    parameters = np.asarray([3.0, -2.0])
    adam = Adam(2, learning_rate=0.1, dtype=np.float64)
    adam.step(parameters, np.asarray([0.5, -40.0]))
    assert parameters == pytest.approx([2.9, -1.9])
    for _ in range(500):
        adam.step(parameters, 2 * (parameters - [1.0, 5.0]))
    assert parameters == pytest.approx([1.0, 5.0], abs=1e-2)
