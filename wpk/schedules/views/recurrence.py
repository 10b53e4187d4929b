"""Recurrences as their templates see them: what their units are told of a problem."""

import math

from wpk.expression import Acc, cpp_type
from wpk.problems import Cell, Recurrence, Tensor
from wpk.schedules.strided import cpp_tensor, why_unaddressable
from wpk.schedules.unit import Enumerator, Member, Type, fp32_bits

_NOTHING = "wpk::Tensor<float, 4, 0>"
_FIRST_OPTIONAL = 2


def why_not_recurrence(problem: Recurrence) -> str | None:
    """Say why no template computes the problem; None if nothing stands in the way."""
    inputs, output = problem.accesses()
    for access in (*inputs, output):
        assert access is not None  # nothing is packed
        reason = why_unaddressable([access.tensor], access.sizes)
        if reason is not None:
            return reason
    for name, tensor in _floating(problem):
        if not tensor.dtype.is_float:
            return f"{name} is {tensor.dtype.value}; recurrences take floating point"
    return None


def _floating(problem: Recurrence) -> list[tuple[str, Tensor]]:
    optional = [(name, each.tensor) for name, each in problem.optional() if name != "lengths"]
    return [("p", problem.p), ("r", problem.r), ("y", problem.y), *optional]


def recurrence_members(problem: Recurrence) -> dict[str, Member]:
    """Return the members of ``Problem`` that all templates of recurrences have."""
    places = {name: _FIRST_OPTIONAL + i for i, (name, _) in enumerate(problem.optional())}
    optional = {name: access.tensor for name, access in problem.optional()}
    functions = [cpp_type(each) for each in problem.activations]
    functions += [cpp_type(Acc())] * (3 - len(functions))
    members: dict[str, Member] = {
        "cell": Enumerator(f"wpk::Cell::{problem.cell.lower()}"),
        "P": Type(cpp_tensor(problem.p, (0, 1, 2))),
        "R": Type(cpp_tensor(problem.r, (0, 1))),
        "Y": Type(cpp_tensor(problem.y, (0, 1, 2))),
        "F": Type(functions[0]),
        "G": Type(functions[1]),
        "H": Type(functions[2]),
        "hidden": problem.hidden,
        "gates": problem.gates,
        "steps": problem.steps,
        "slots": problem.slots,
        "isReverse": problem.reverse,
        "linearBeforeReset": problem.linear_before_reset,
        "isClipped": math.isfinite(problem.clip),
        "clip": fp32_bits(problem.clip),
        "inputs": len(problem.accesses()[0]),
    }
    names = {"bias": "Bias", "lengths": "Lengths", "h0": "H0", "c0": "C0", "peepholes": "Peepholes"}
    for name, member in names.items():
        tensor = optional.get(name)
        order = () if tensor is None else tuple(range(len(tensor.strides)))
        members[member] = Type(_NOTHING if tensor is None else cpp_tensor(tensor, order))
        members[f"{name}At"] = places.get(name, 0)
    return members


def resets_first(problem: Recurrence) -> bool:
    """Tell whether r multiplies h in front of its product, so that a step has two products."""
    return problem.cell is Cell.GRU and not problem.linear_before_reset
