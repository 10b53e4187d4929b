"""Groups compared: TensorRT's own layers against the plugins, copies included."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic

from wpk.tensorrt.choosing.charging import Cost, costs
from wpk.tensorrt.choosing.measuring import Engine, Profiler, spread
from wpk.tensorrt.choosing.placement import PlacedLayer, seconds_of


@dataclass(frozen=True)
class Subject(Generic[Engine]):
    """An engine whose layers are known.

    Attributes:
        engine: To measure.
        placed: Its layers.
        replaced: Its operators that are plugins.
    """

    engine: Engine
    placed: tuple[PlacedLayer, ...]
    replaced: frozenset[str]


@dataclass(frozen=True)
class Comparison:
    """What a group takes either way, in seconds; None where a profile lacks one of its layers."""

    native: Cost | None
    plugin: Cost | None
    noise: float

    @property
    def gain(self) -> float | None:
        """Seconds that the plugins save, copies included; negative where they lose."""
        if self.native is None or self.plugin is None:
            return None
        return self.native.seconds - self.plugin.seconds


def compare(
    profiler: Profiler[Engine],
    native: Subject[Engine],
    trial: Subject[Engine],
    groups: Sequence[frozenset[str]],
    runs: int,
) -> list[Comparison]:
    """Profile two engines, for their noise and then for the comparison, and charge every layer.

    Args:
        profiler: Measures.
        native: The engine without these plugins.
        trial: The one with them.
        groups: To compare; no layer of either computes parts of two.
        runs: Profiles of each, for the noise and again for the comparison.
    """
    noises = [
        [_profiled(profiler, subject, groups) for _ in range(runs)] for subject in (native, trial)
    ]
    turns = [
        (_profiled(profiler, native, groups), _profiled(profiler, trial, groups))
        for _ in range(runs)
    ]
    found = []
    for index in range(len(groups)):
        noise = max(_spread([run[index] for run in side]) for side in noises)
        sides = [_median([turn[side][index] for turn in turns]) for side in (0, 1)]
        found.append(Comparison(sides[0], sides[1], noise))
    return found


def _profiled(
    profiler: Profiler[Engine], subject: Subject[Engine], groups: Sequence[frozenset[str]]
) -> list[Cost | None]:
    times = seconds_of(subject.placed, profiler.profile(subject.engine))
    return costs(subject.placed, times, groups)


def _spread(samples: Sequence[Cost | None]) -> float:
    return spread([cost.seconds for cost in samples if cost is not None] or [0.0])


def _median(samples: Sequence[Cost | None]) -> Cost | None:
    """The run in the middle; None where any run lacks the group."""
    known = [cost for cost in samples if cost is not None]
    if len(known) < len(samples):
        return None
    return sorted(known, key=lambda cost: cost.seconds)[len(known) // 2]
