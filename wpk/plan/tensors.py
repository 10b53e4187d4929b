"""Where tensors lie and what constants hold: all that executing single steps needs of a plan."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from wpk.lowering.program import Buffer, Value
from wpk.plan.plan import PlanBundle, Weight


@dataclass(frozen=True)
class Tensors:
    """The tensors of a plan, or of one operator.

    Attributes:
        values: Activations by name.
        buffers: Memory by name.
        weights: Constants by name, as they are stored.
        arrays: Their contents.
    """

    values: Mapping[str, Value]
    buffers: Mapping[str, Buffer]
    weights: Mapping[str, Weight]
    arrays: Mapping[str, NDArray[Any]]


def tensors_of(bundle: PlanBundle) -> Tensors:
    """The tensors of a plan."""
    plan = bundle.plan
    return Tensors(plan.values, plan.buffers, plan.weights, bundle.weights)
