"""Outputs that are the same whatever the inputs are: an engine that ignored these would be right."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from wpk.checks.disturbed import DisturbedModel, parameters
from wpk.checks.float64_nodes import Array, widened
from wpk.dtypes import Precision, is_float
from wpk.lowering.flat_graph import FlatGraph, read_names
from wpk.operators import OperatorKind, of_kind

Arrays = Mapping[str, Array]

INPUTS = 4
"""For how many inputs an output must be the same before it is said to be the same for all."""

_REDRAWS = 2
_SHAPES = of_kind(OperatorKind.SHAPE)
_SPREAD = 2.0  # of the logarithm: half of the numbers change fourfold, or more


def unmoved_outputs(expected: Sequence[Arrays], further: Iterable[Arrays]) -> frozenset[str]:
    """Return the names of the outputs that are the same for all inputs.

    Args:
        expected: Outputs for some inputs, at least one.
        further: For others, computed only as far as they are needed.
    """
    first, *others = expected
    names = frozenset(first)
    for other in chain(others, further):
        names = frozenset(
            name for name in names if np.array_equal(first[name], other[name], equal_nan=True)
        )
        if not names:
            break
    return names


def moving_tensors(
    model: FlatGraph, is_empty: Callable[[str], bool] = lambda _: False
) -> frozenset[str]:
    """Return the names of the tensors that are computed from the elements of a model's inputs.

    Args:
        model: The model, or some of its nodes.
        is_empty: Tells of a tensor whether it has no elements.
    """
    moving = set(model.inputs)
    for node in model.nodes:
        reads = any(name in moving and not is_empty(name) for name in read_names(node.proto))
        if reads and node.proto.op_type not in _SHAPES:
            moving.update(node.proto.output)
    return frozenset(moving)


def moved_with_other_weights(
    model: FlatGraph, inputs: Sequence[Arrays], names: Iterable[str]
) -> frozenset[str]:
    """Return the outputs that the inputs move when the weights are others.

    The rest is decided by the model's architecture, as a softmax over one element is: whatever is
    computed before it, nothing else is right.

    Args:
        model: The model as it was loaded.
        inputs: To execute it on, two.
        names: The names of the outputs to look at.
    """
    still, kept = frozenset(names), parameters(model)
    for seed in range(_REDRAWS):
        rng = np.random.default_rng(seed)
        constants = {
            name: array if name in kept else _redrawn(array, rng)
            for name, array in model.constants.items()
        }
        other = replace(model, constants=constants)
        made = [DisturbedModel(other, Precision.FP32, each).outputs() for each in inputs]
        still = frozenset(
            name for name in still if np.array_equal(made[0][name], made[1][name], equal_nan=True)
        )
    return frozenset(names) - still


def _redrawn(array: Array, rng: np.random.Generator) -> Array:
    """Return quite different numbers; those of a tensor that is positive, like a variance, stay positive."""
    if not is_float(widened(array).dtype):
        return array
    value = array.astype(np.float64)
    if (value > 0.0).all():
        return np.asarray(rng.lognormal(np.log(value), _SPREAD))
    return np.asarray(np.where(value == 0.0, 1.0, value) * rng.standard_normal(value.shape))
