"""What each group takes in an engine, with the copies that TensorRT inserted around it.

A copy is charged to those of its neighbours that are compared: all of it, in equal shares, by the
same rule in the native engine and in the one with plugins. So a plugin whose layout nobody else
uses pays for the copies on both of its sides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wpk.tensorrt.choosing.placement import PlacedLayer, Role


@dataclass(frozen=True)
class Cost:
    """Seconds that a group takes in one engine.

    Attributes:
        work: Of its own layers.
        copies: Its shares in inserted layers.
    """

    work: float
    copies: float

    @property
    def seconds(self) -> float:
        """Both."""
        return self.work + self.copies


def costs(
    placed: Sequence[PlacedLayer],
    seconds: Sequence[float | None],
    groups: Sequence[frozenset[str]],
) -> list[Cost | None]:
    """What each group takes; None where the profile lacks one of its layers.

    Args:
        placed: The engine's layers.
        seconds: What each takes.
        groups: Those that are compared; no layer computes parts of two of them.
    """
    member = {unit: index for index, group in enumerate(groups) for unit in group}
    work, copies = [0.0] * len(groups), [0.0] * len(groups)
    lacking: set[int] = set()
    for at, (each, time) in enumerate(zip(placed, seconds, strict=True)):
        if each.role is Role.WORK:
            charged = {member[unit] for unit in each.units if unit in member}
            account = work
        elif each.role is Role.INSERTED:
            charged = _neighbours(placed, at, member)
            account = copies
        else:
            continue
        for group in charged:
            if time is None:
                lacking.add(group)
            else:
                account[group] += time / len(charged)
    return [
        None if index in lacking else Cost(work[index], copies[index])
        for index in range(len(groups))
    ]


def _neighbours(placed: Sequence[PlacedLayer], at: int, member: Mapping[str, int]) -> set[int]:
    """The groups that an inserted layer stands beside, past other inserted ones."""
    found: set[int] = set()
    reached, waiting = {at}, [at]
    while waiting:
        here = placed[waiting.pop()].layer
        read = {tensor.name for tensor in here.inputs}
        made = {tensor.name for tensor in here.outputs}
        for index, other in enumerate(placed):
            beside = not read.isdisjoint(tensor.name for tensor in other.layer.outputs)
            beside |= not made.isdisjoint(tensor.name for tensor in other.layer.inputs)
            if not beside or index in reached:
                continue
            reached.add(index)
            if other.role is Role.INSERTED:
                waiting.append(index)
            else:
                found.update(member[unit] for unit in other.units if unit in member)
    if not placed[at].layer.inputs:
        found.update(member[unit] for unit in placed[at].units if unit in member)
    return found
